#include "runtime/speculate/CommonVocabulary.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace ingot {
namespace {

// What an id is: nothing, or its bytes and whether it is a control token.
struct Meaning {
  bool isThere = false;
  bool isSpecial = false;
  std::string bytes;
  bool operator==(const Meaning &) const = default;
};

Meaning meaningOf(const Tokenizer &tokenizer, std::int32_t id) {
  if (id >= tokenizer.vocabSize() || tokenizer.isMissing(id))
    return {};
  auto bytes = tokenizer.tokenBytes(id);
  if (!bytes)
    return {};
  return {true, tokenizer.isSpecial(id), std::string(*bytes)};
}

std::string text(const Meaning &meaning) {
  if (!meaning.isThere)
    return "no token";
  std::string quoted = meaning.isSpecial ? "special \"" : "\"";
  for (char c : meaning.bytes) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      quoted += c;
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
    quoted += escaped;
  }
  return quoted + "\"";
}

} // namespace

Result<std::int32_t> commonVocabulary(const Tokenizer &target,
                                      const Tokenizer &draft) {
  std::int32_t common = 0;
  std::int32_t all = std::max(target.vocabSize(), draft.vocabSize());
  for (std::int32_t id = 0; id < all; ++id) {
    Meaning ours = meaningOf(target, id), theirs = meaningOf(draft, id);
    if (ours != theirs)
      return Status::invalid("the draft's tokenizer is another one: token id " +
                             std::to_string(id) + " is " + text(theirs) +
                             " there and " + text(ours) + " in the model");
    if (ours.isThere)
      common = id + 1;
  }
  if (common == 0)
    return Status::invalid("the tokenizers have no token in common");
  return common;
}

} // namespace ingot
