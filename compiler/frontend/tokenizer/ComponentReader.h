// Reads one object of tokenizer.json (a normalizer, a decoder ...) and reports
// what is missing, of the wrong kind or unknown under its path in the file.
#pragma once

#include "compiler/frontend/StrictJson.h"
#include "runtime/support/Status.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace ingot {

class ComponentReader {
public:
  // `path` as in "pre_tokenizer.pretokenizers[0]".
  static Result<ComponentReader> create(const nlohmann::json &value,
                                        std::string path);

  const std::string &path() const { return path_; }

  // Every key must be one of these.
  Status allowOnly(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const;                  // and it is not null
  const nlohmann::json &at(std::string_view key) const { // after has
    return *value_->find(std::string(key));
  }
  Result<std::string> string(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<bool> boolean(std::string_view key, bool absent) const;
  Result<int64_t> integer(std::string_view key) const;
  Result<ComponentReader> object(std::string_view key) const;
  // The array at `key`.
  Result<const nlohmann::json *> array(std::string_view key) const;

  Status unsupported(const std::string &what) const {
    return Status::unsupported(path_ + ": " + what);
  }
  Status invalid(const std::string &what) const {
    return Status::invalid(path_ + ": " + what);
  }

private:
  ComponentReader(const nlohmann::json &value, std::string path)
      : value_(&value), path_(std::move(path)) {}
  Status wrongKind(std::string_view key, const char *expected) const;

  const nlohmann::json *value_;
  std::string path_;
};

} // namespace ingot
