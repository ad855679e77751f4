// Turns one piece of text into ids by the tokenizer's model. Pieces are cut
// further where the model allows it, and words that come again are answered from
// a small fixed cache that each thread owns.
#pragma once

#include "runtime/text/BytePairEncoder.h"
#include "runtime/text/UnigramEncoder.h"
#include "runtime/text/WordEncoder.h"

namespace ingot {

class PieceScratch {
public:
  PieceScratch() : cache_(CacheSize) {}

private:
  friend class PieceEncoder;

  struct CachedWord { // one cache line
    uint64_t hash = 0;
    uint8_t numBytes = 0; // 0: empty
    uint8_t numIds = 0;
    char bytes[22];
    int32_t ids[8];
  };
  static constexpr size_t CacheSize = 1 << 14;

  std::vector<CachedWord> cache_;
  std::vector<int32_t> ids_;
  BytePairScratch pairs_;
  UnigramScratch unigram_;
};

class PieceEncoder {
public:
  // The tables must outlive the encoder.
  explicit PieceEncoder(const ModelTables &tables);

  // Appends the ids of `piece`, which is valid UTF-8 and under 2 GiB; false if
  // some of it is unknown and the model has no token for that.
  bool encode(std::string_view piece, PieceScratch &scratch,
              std::vector<int32_t> &out) const;

private:
  bool encodeWord(std::string_view word, PieceScratch &scratch,
                  std::vector<int32_t> &out) const;
  bool encodeNewWord(std::string_view word, PieceScratch &scratch) const;

  const ModelTables &tables_;
  BytePairEncoder bytePairs_;
  UnigramEncoder unigram_;
  WordPieceEncoder wordPiece_;
  WordLevelEncoder wordLevel_;
};

} // namespace ingot
