// What a tokenizer is, between its source format and its compiled tables: both
// front ends (tokenizer.json, GGUF vocabulary) fill this, and compileTokenizer
// checks it and lays out the tables that the runtime maps.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/ModelTables.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot {

struct TokenSpec {
  std::string spelling; // as the source writes it
  bool present = false;
  bool isModelToken = false; // the model may put it out (not added only)
  // Put out for a byte only: text that spells it is not it.
  bool onlyForByte = false;
  double score = 0; // Unigram
};

struct AddedTokenSpec {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = false;
  bool lstrip = false;
  bool rstrip = false;
  bool singleWord = false;
  // What it matches in normalised text; absent: its content, normalised.
  std::optional<std::string> asNormalized = {};
};

struct MergeSpec {
  int32_t left;
  int32_t right;
  int32_t result;
  uint32_t rank;
};

// What decoding does to each token, before the tokens are joined.
struct DecoderStep {
  enum class Kind {
    ByteLevel,      // the byte alphabet becomes bytes
    ByteFallback,   // <0x0A> becomes a byte
    Replace,        // text, or regex, by content
    Metaspace,      // text by a space; erased in the first token if erasesFirst
    WordPiece,      // text goes; without it a space comes before; cleanup
    BytePairSuffix, // text by a space, in the last token by nothing
    Ctc,            // text goes; with cleanup, content becomes a space
    Strip,          // up to start and stop copies of text at the ends
  };
  Kind kind;
  std::string text = {}, content = {};
  std::optional<std::string> regex = {};
  bool cleanup = false;
  bool erasesFirst = false;
  uint32_t start = 0, stop = 0;
};

struct DecoderSpec {
  std::vector<DecoderStep> steps;
  bool joinWithSpaces = false;
  bool dropRepeats = false;
  // From the whole text, at its ends.
  std::string stripText;
  uint32_t stripCount = 0, stripEndCount = 0;
};

struct TokenizerSpec {
  std::vector<TokenSpec> tokens; // by id
  std::vector<AddedTokenSpec> added;
  std::vector<MergeSpec> merges;
  ModelKind model = ModelKind::BytePair;
  std::string continuingPrefix, wordSuffix;
  uint32_t longestWord = 0;     // WordPiece
  double unknownScore = 0;      // Unigram
  bool singlePrecision = false; // Unigram
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

// Ids may leave gaps, but a few tokens do not make a vocabulary of millions.
inline size_t idLimitOf(size_t numTokens) {
  return std::min<size_t>(MaxVocabSize, 65536 + 16 * numTokens);
}

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
