// Verified views of compiled tokenizer tables. verifyTokenizerTables is the one
// place that decides whether bytes may be trusted: structure (FlatBuffers), then
// meaning (every id, offset and slot in range, every probe sure to end).
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/AddedTokens.h"
#include "runtime/text/ModelTables.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ingot {

// The bytes of each token, end to end; no offsets at all where there are none.
struct TokenTexts {
  std::span<const uint32_t> offsets;
  std::string_view bytes;

  bool empty() const { return offsets.empty(); }
  std::string_view operator[](int32_t id) const {
    uint32_t begin = offsets[static_cast<size_t>(id)];
    return bytes.substr(begin, offsets[static_cast<size_t>(id) + 1] - begin);
  }
};

struct TokenizerTables {
  uint32_t vocabSize = 0;
  std::span<const uint8_t> tokenFlags;
  ModelTables model;
  // How tokens read in decoded text, and where they differ as the first or the
  // last token of a text.
  TokenTexts decoded, decodedFirst, decodedLast;
  bool dropRepeats = false;
  std::string_view stripText;
  uint32_t stripCount = 0, stripEndCount = 0;

  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> preTokenizer;
  std::vector<AddedToken> addedRaw;
  std::vector<AddedToken> addedNormalized;
  std::span<const uint32_t> wordRanges;
  std::span<const int32_t> prefixIds;
  std::span<const int32_t> suffixIds;
  std::span<const int32_t> endIds;
  int32_t bosId = -1;
  int32_t eosId = -1;
  int32_t padId = -1;
};

// What decoding does beyond joining the bytes of tokens.
struct DecodeRules {
  TokenTexts first, last; // empty: as anywhere
  bool dropRepeats = false;
  std::string_view stripText;
  uint32_t stripCount = 0, stripEndCount = 0;
};

Result<TokenizerTables> verifyTokenizerTables(std::span<const uint8_t> bytes);

} // namespace ingot
