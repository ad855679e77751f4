// Which tokens are BOS, EOS and padding, from the files beside a tokenizer:
// tokenizer_config.json and special_tokens_map.json. For a bare SentencePiece
// model the former also names added tokens and says what goes around a text.
#pragma once

#include "compiler/frontend/tokenizer/ComponentReader.h"
#include "compiler/frontend/tokenizer/TokenizerSpec.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ingot {

class SpecialTokenReader {
public:
  using Text = std::optional<std::string_view>;

  // Fills `spec`; `idOf` are its tokens by spelling.
  SpecialTokenReader(TokenizerSpec &spec,
                     std::unordered_map<std::string, int32_t> &idOf)
      : spec_(spec), idOf_(idOf) {}

  // The configuration goes before the map.
  Status read(const Text &specialTokensMap, const Text &tokenizerConfig);

  // "added_tokens_decoder": {"32000": {"content": "<x>", ...}, ...}
  Status readAddedTokens(const Text &tokenizerConfig);

  // Behind a tokenizer.json, as transformers does: what its configuration calls an
  // added or special token and the file does not becomes one, by its id in the
  // vocabulary or, for a token of "added_tokens_decoder", by the next free one.
  // Other flags of an added token replace those of the file. Special tokens
  // that no file gives an id stay none.
  Status addConfiguredTokens(const Text &specialTokensMap,
                             const Text &tokenizerConfig);

  // Sets prefixIds and suffixIds from add_bos_token and add_eos_token. Whether
  // the dummy prefix is for the start of the input only ("legacy" is false).
  struct Around {
    bool prefixOnce = false;
  };
  Result<Around> readAround(const Text &tokenizerConfig);

private:
  Status addListedTokens(const ComponentReader &root);
  void addNamedToken(const nlohmann::json &value);
  Status readOne(const ComponentReader &root, const char *key, bool required,
                 std::optional<int32_t> &out) const;

  TokenizerSpec &spec_;
  std::unordered_map<std::string, int32_t> &idOf_;
};

// Leaves out the added tokens of id `rows` and above, for which a model of that
// many rows has no vector; a line for each goes to `leftOut`.
void dropTokensBeyond(TokenizerSpec &spec, int32_t rows,
                      std::vector<std::string> &leftOut);

// The flags of one added token, as both files write them.
Result<AddedTokenSpec> readAddedToken(const ComponentReader &token);

} // namespace ingot
