// Accounting of the blocks of one state group: which are free and how many
// holders each has. Knows nothing of bytes, sequences or tokens. A block is
// shared by counting references and returns to the free list with the last.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ingot {

using BlockId = std::int32_t;

class BlockAllocator {
public:
  explicit BlockAllocator(std::int32_t numBlocks);

  std::int32_t numBlocks() const { return std::int32_t(references_.size()); }
  std::int32_t numFree() const { return std::int32_t(free_.size()); }
  std::int32_t references(BlockId block) const { return references_[block]; }

  // A block with one reference, or nothing when all are held.
  std::optional<BlockId> allocate();
  void retain(BlockId block);
  // Returns true when this was the last reference.
  bool release(BlockId block);

  // Puts the free list into the order of a permutation drawn from `seed`, so
  // that tests can show that results do not depend on which blocks are used.
  void shuffleFree(std::uint64_t seed);

  // Free list and counts agree: each block is either free once or referenced.
  Status checkInvariants() const;

private:
  std::vector<std::int32_t> references_;
  std::vector<BlockId> free_; // the next to be used is last
};

} // namespace ingot
