// Verified views of compiled tokenizer tables. verifyTokenizerTables is the one
// place that decides whether bytes may be trusted: structure (FlatBuffers), then
// meaning (every id, offset and slot in range, every probe sure to end).
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/AddedTokens.h"
#include "runtime/text/BytePairEncoder.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ingot {

struct TokenizerTables {
  uint32_t vocabSize = 0;
  std::span<const uint8_t> tokenFlags;
  BytePairTables pairs;
  // How tokens read in decoded text.
  std::span<const uint32_t> decodeOffsets;
  std::string_view decodeBytes;
  std::string_view stripText;
  uint32_t stripCount = 0;
  std::string_view eraseInFirst;

  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> preTokenizer;
  std::vector<AddedToken> addedRaw;
  std::vector<AddedToken> addedNormalized;
  std::span<const int32_t> prefixIds;
  std::span<const int32_t> suffixIds;
  std::span<const int32_t> endIds;
  int32_t bosId = -1;
  int32_t eosId = -1;
  int32_t padId = -1;
};

Result<TokenizerTables> verifyTokenizerTables(std::span<const uint8_t> bytes);

} // namespace ingot
