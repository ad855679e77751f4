// Byte-pair encoding of one word over the mapped tables: merges run lowest rank
// first, from the left among equals.
#pragma once

#include "runtime/text/ModelTables.h"

#include <string>
#include <vector>

namespace ingot {

class BytePairScratch {
  friend class BytePairEncoder;

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

  std::string spelling_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

class BytePairEncoder {
public:
  explicit BytePairEncoder(const ModelTables &tables) : tables_(tables) {}

  // Sets `ids` to those of `word`, which is not empty and under 2 GiB.
  void encode(std::string_view word, BytePairScratch &scratch,
              std::vector<int32_t> &ids) const;

private:
  void startingIds(std::string_view word, BytePairScratch &scratch,
                   std::vector<int32_t> &ids) const;
  void mergeShort(std::vector<int32_t> &ids) const;
  void mergeLong(BytePairScratch &scratch, std::vector<int32_t> &ids) const;
  const MergeSlot *findMerge(int32_t left, int32_t right) const;

  const ModelTables &tables_;
};

} // namespace ingot
