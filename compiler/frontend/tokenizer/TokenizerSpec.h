// What a tokenizer is, between its source format and its compiled tables: both
// front ends (tokenizer.json, GGUF vocabulary) fill this, and compileTokenizer
// checks it and lays out the tables that the runtime maps.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot {

struct TokenSpec {
  std::string spelling; // as the source writes it
  bool present = false;
  bool isModelToken = false; // the model may put it out (not added only)
};

struct AddedTokenSpec {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = false;
  bool lstrip = false;
  bool rstrip = false;
  bool singleWord = false;
};

struct MergeSpec {
  int32_t left;
  int32_t right;
  int32_t result;
  uint32_t rank;
};

struct DecoderSpec {
  bool byteLevel = false;
  bool byteFallback = false; // <0x0A> is a byte
  // Applied to each token's spelling, in order.
  std::vector<std::pair<std::string, std::string>> replacements;
  std::string stripText;
  uint32_t stripCount = 0;
  std::string eraseInFirst;
};

struct TokenizerSpec {
  std::vector<TokenSpec> tokens; // by id
  std::vector<AddedTokenSpec> added;
  std::vector<MergeSpec> merges;
  bool byteLevel = false;
  bool byteFallback = false;
  bool ignoreMerges = false;
  bool fuseUnknown = false;
  std::optional<int32_t> unknownId;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> preTokenizer;
  DecoderSpec decoder;
  std::vector<int32_t> prefixIds, suffixIds;
  std::optional<int32_t> bosId, eosId, padId;
  std::vector<int32_t> endIds;
};

// The space mark of SentencePiece vocabularies, U+2581.
inline constexpr const char *SpaceMark = "\xE2\x96\x81";

// Trying all cuts of a token is quadratic: longer ones are not tried.
inline constexpr size_t LongestMergedToken = 4096;

// GPT-2's split, which ByteLevel pre-tokenizers apply by themselves.
inline constexpr const char *Gpt2Regex =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
    "\\s+(?!\\S)|\\s+";

// The spelling of a byte's token: <0x0A>.
std::string byteTokenSpelling(uint8_t byte);

// The same specification gives the same bytes.
Result<std::vector<uint8_t>> compileTokenizer(TokenizerSpec spec);

} // namespace ingot
