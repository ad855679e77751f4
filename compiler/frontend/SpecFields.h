// The fields of a model as an importer found them, before any meaning: a name
// from the descriptor, a JSON value, and the key it came from for messages.
// Reads are typed and ranged; faults are gathered so that one message lists all.
#pragma once

#include "compiler/architectures/Descriptor.h"
#include "runtime/support/Status.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ingot {

// Everything wrong with an input, by kind, for one message.
class ImportProblems {
public:
  // `kind` as in "unknown config keys".
  void add(const std::string &kind, const std::string &item);
  bool empty() const { return kinds_.empty(); }
  // "where: cannot import as llama:" and a line for each kind.
  Status status(const std::string &where, const std::string &family) const;

private:
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds_;
};

class SpecFields {
public:
  explicit SpecFields(ImportProblems &problems) : problems_(problems) {}

  // Takes what the rules say about the keys of `config`. `what` names the
  // input in messages ("config", "GGUF metadata"). `arch` replaces {arch}.
  void apply(const KeyRules &rules, const nlohmann::json &config,
             const std::string &what, const std::string &arch = "");

  // Adds a problem where the field is absent and none has been added for it.
  void require(const std::string &field);
  bool has(const std::string &field) const { return values_.count(field); }
  void set(const std::string &field, nlohmann::json value,
           const std::string &key);
  const nlohmann::json *find(const std::string &field) const;
  std::string keyOf(const std::string &field) const;

  std::optional<std::int64_t> integer(const std::string &field,
                                      std::int64_t low, std::int64_t high);
  // A number for each layer: a single one holds for all.
  std::vector<std::int64_t> integers(const std::string &field,
                                     std::int64_t layers, std::int64_t low,
                                     std::int64_t high);
  std::optional<double> number(const std::string &field, double low,
                               double high);
  std::optional<bool> boolean(const std::string &field);
  std::optional<std::string> text(const std::string &field);

  void fault(const std::string &field, const std::string &message);
  ImportProblems &problems() { return problems_; }

private:
  struct Value {
    nlohmann::json json;
    std::string key;
  };
  std::map<std::string, Value> values_;
  std::map<std::string, std::string> missing_; // field to the keys for it
  std::set<std::string> reported_;
  ImportProblems &problems_;
};

} // namespace ingot
