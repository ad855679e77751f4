// What the components of tokenizer.json share: sequences, patterns, Metaspace.
#pragma once

#include "compiler/frontend/tokenizer/ComponentReader.h"
#include "runtime/text/PreTokenizer.h"

#include <optional>
#include <string>

namespace ingot {

// Calls read for each element of component[key].
template <typename Read>
Status readSequence(const ComponentReader &component, std::string_view key,
                    Read read) {
  INGOT_RETURN_IF_ERROR(component.allowOnly({"type", key}));
  INGOT_ASSIGN_OR_RETURN(const nlohmann::json *elements, component.array(key));
  for (size_t i = 0; i < elements->size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(
        ComponentReader element,
        ComponentReader::create((*elements)[i], component.path() + "." +
                                                    std::string(key) + "[" +
                                                    std::to_string(i) + "]"));
    INGOT_RETURN_IF_ERROR(read(element));
  }
  return Status::ok();
}

// {"String": "x"} or {"Regex": "x"}; one of the two is set, the regex as PCRE2
// reads it.
struct Pattern {
  std::optional<std::string> string, regex;
};
Result<Pattern> readPattern(const ComponentReader &component);

struct Metaspace {
  std::string replacement;
  PrependScheme scheme;
  bool split;
};
Result<Metaspace> readMetaspace(const ComponentReader &component);

// "[SEP]", 102
struct TokenAndId {
  std::string token;
  int64_t id;
};
Result<TokenAndId> readTokenAndId(const ComponentReader &component,
                                  std::string_view key);

} // namespace ingot
