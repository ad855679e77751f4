// Accounting of the blocks of one state group. Knows nothing of bytes,
// sequences or tokens. Every block is in exactly one of three states:
//
//   held      has references; shared by counting them
//   reusable  none holds it, but what it contains may serve again; oldest
//             first in line to be reclaimed
//   free      nothing in it is worth keeping
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
  std::int32_t numReusable() const { return numReusable_; }
  // Those that can be had now.
  std::int32_t numAvailable() const { return numFree() + numReusable(); }
  std::int32_t numHeld() const { return numBlocks() - numAvailable(); }
  std::int32_t references(BlockId block) const { return references_[block]; }
  bool isReusable(BlockId block) const { return isReusable_[block]; }

  // A free block with one reference, or nothing when none is free.
  std::optional<BlockId> allocate();
  // One more holder of a block that is held or reusable.
  void retain(BlockId block);
  // Returns true when this was the last reference: the block is then reusable
  // where `keep` is set, the youngest, and free where not.
  bool release(BlockId block, bool keep = false);
  // Makes the oldest reusable block free and names it.
  std::optional<BlockId> reclaimOldest();

  // Puts the free list into the order of a permutation drawn from `seed`, so
  // that tests can show that results do not depend on which blocks are used.
  void shuffleFree(std::uint64_t seed);

  // For snapshots: free blocks, and reusable ones from the oldest.
  const std::vector<BlockId> &freeBlocks() const { return free_; }
  std::vector<BlockId> reusableBlocks() const;

private:
  void unlink(BlockId block);

  std::vector<std::int32_t> references_;
  std::vector<BlockId> free_; // the next to be used is last
  // The reusable blocks as a ring through index numBlocks, its head.
  std::vector<BlockId> next_, previous_;
  std::vector<bool> isReusable_;
  std::int32_t numReusable_ = 0;
};

} // namespace ingot
