// Views of the mapped tables that a tokenizer's model works with, verified by
// verifyTokenizerTables. One struct serves the four kinds of model; what a kind
// does not use stays empty.
#pragma once

#include "runtime/text/TokenHash.h"
#include "runtime/text/Trie.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace ingot {

// Same order as tables::ModelKind (asserted in TokenizerTables.cpp).
enum class ModelKind { BytePair, Unigram, WordPiece, WordLevel };

// Mirrors tables::MergeSlot (asserted in TokenizerTables.cpp).
struct MergeSlot {
  int32_t left;
  int32_t right;
  uint32_t rank;
  int32_t result;
};

struct ModelTables {
  ModelKind kind = ModelKind::BytePair;
  std::span<const uint32_t> tokenOffsets;
  std::string_view tokenBytes;
  std::span<const int32_t> vocabSlots; // a power of two, some empty
  std::span<const int32_t> byteIds;    // 256 or none
  int32_t unknownId = -1;
  std::string_view continuingPrefix;

  // byte pairs
  std::span<const MergeSlot> mergeSlots; // a power of two, some empty
  std::string_view wordStart;
  std::string_view wordSuffix;
  bool byteLevel = false;
  bool ignoreMerges = false;
  bool fuseUnknown = false;

  // Unigram, WordPiece
  Trie trie;
  std::span<const double> scores; // Unigram: one a token
  double unknownScore = 0;
  bool singlePrecision = false;
  uint32_t longestWord = 0; // WordPiece, in characters

  std::string_view bytesOf(int32_t id) const {
    uint32_t begin = tokenOffsets[static_cast<size_t>(id)];
    return tokenBytes.substr(begin,
                             tokenOffsets[static_cast<size_t>(id) + 1] - begin);
  }

  // The id of a token by its bytes, or -1. Special tokens are not found.
  int32_t find(std::string_view bytes) const {
    size_t mask = vocabSlots.size() - 1;
    for (size_t slot = hashBytes(bytes) & mask;; slot = (slot + 1) & mask) {
      int32_t id = vocabSlots[slot];
      if (id < 0 || bytesOf(id) == bytes)
        return id;
    }
  }

  // Appends the tokens of the bytes of `text`; false if one has none.
  template <typename Ids>
  bool spellInBytes(std::string_view text, Ids &ids) const {
    if (byteIds.empty())
      return false;
    for (char b : text)
      if (byteIds[static_cast<uint8_t>(b)] < 0)
        return false;
    for (char b : text)
      ids.push_back(byteIds[static_cast<uint8_t>(b)]);
    return true;
  }
};

} // namespace ingot
