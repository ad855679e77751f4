// Byte-pair encoding over the mapped tables: finds the ids of one piece of
// text. Merges run lowest rank first, from the left among equals. Words that
// come again are answered from a small fixed cache that each thread owns.
#pragma once

#include "runtime/text/TokenHash.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ingot {

// Mirrors tables::MergeSlot (asserted in TokenizerTables.cpp).
struct MergeSlot {
  int32_t left;
  int32_t right;
  uint32_t rank;
  int32_t result;
};

// Views of mapped tables that Tokenizer::open has verified.
struct BytePairTables {
  std::span<const uint32_t> tokenOffsets;
  std::string_view tokenBytes;
  std::span<const int32_t> vocabSlots;   // a power of two, some empty
  std::span<const MergeSlot> mergeSlots; // a power of two, some empty
  std::span<const int32_t> byteIds;      // 256 or none
  std::string_view wordStart;
  int32_t unknownId = -1;
  bool byteLevel = false;
  bool ignoreMerges = false;
  bool fuseUnknown = false;

  std::string_view bytesOf(int32_t id) const {
    uint32_t begin = tokenOffsets[static_cast<size_t>(id)];
    return tokenBytes.substr(begin,
                             tokenOffsets[static_cast<size_t>(id) + 1] - begin);
  }
};

class BytePairScratch {
public:
  BytePairScratch() : cache_(CacheSize) {}

private:
  friend class BytePairEncoder;

  struct CachedWord { // one cache line
    uint64_t hash = 0;
    uint8_t numBytes = 0; // 0: empty
    uint8_t numIds = 0;
    char bytes[22];
    int32_t ids[8];
  };
  static constexpr size_t CacheSize = 1 << 14;

  struct Symbol {
    int32_t id;
    int32_t previous;
    int32_t next; // -1 at the end
    bool live;
  };
  struct Candidate {
    uint32_t rank;
    int32_t position;
    int32_t result;
  };

  std::vector<CachedWord> cache_;
  std::vector<int32_t> ids_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

class BytePairEncoder {
public:
  BytePairEncoder() = default;
  explicit BytePairEncoder(const BytePairTables &tables) : tables_(tables) {}

  // Appends the ids of `piece`, which is valid UTF-8 and under 2 GiB.
  void encode(std::string_view piece, BytePairScratch &scratch,
              std::vector<int32_t> &out) const;

  // The id of a token by its bytes, or -1.
  int32_t find(std::string_view bytes) const;

private:
  void encodeWord(std::string_view word, BytePairScratch &scratch,
                  std::vector<int32_t> &out) const;
  void startingIds(std::string_view word, std::vector<int32_t> &ids) const;
  void mergeShort(std::vector<int32_t> &ids) const;
  void mergeLong(BytePairScratch &scratch) const;
  const MergeSlot *findMerge(int32_t left, int32_t right) const;

  BytePairTables tables_;
};

} // namespace ingot
