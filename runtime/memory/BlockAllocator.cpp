#include "runtime/memory/BlockAllocator.h"

#include <cassert>
#include <random>
#include <utility>

namespace ingot {

BlockAllocator::BlockAllocator(std::int32_t numBlocks)
    : references_(numBlocks, 0), free_(numBlocks), next_(numBlocks + 1),
      previous_(numBlocks + 1), isReusable_(numBlocks, false) {
  for (std::int32_t i = 0; i < numBlocks; ++i)
    free_[i] = numBlocks - 1 - i;
  next_[numBlocks] = previous_[numBlocks] = numBlocks;
}

std::optional<BlockId> BlockAllocator::allocate() {
  if (free_.empty())
    return std::nullopt;
  BlockId block = free_.back();
  free_.pop_back();
  references_[block] = 1;
  return block;
}

void BlockAllocator::unlink(BlockId block) {
  next_[previous_[block]] = next_[block];
  previous_[next_[block]] = previous_[block];
  isReusable_[block] = false;
  --numReusable_;
}

void BlockAllocator::retain(BlockId block) {
  assert((references_[block] > 0 || isReusable_[block]) &&
         "retain of a free block");
  if (isReusable_[block])
    unlink(block);
  ++references_[block];
}

bool BlockAllocator::release(BlockId block, bool keep) {
  assert(references_[block] > 0 && "release of a block that none holds");
  if (--references_[block] != 0)
    return false;
  if (!keep) {
    free_.push_back(block);
    return true;
  }
  BlockId head = numBlocks();
  next_[block] = head;
  previous_[block] = previous_[head];
  next_[previous_[head]] = block;
  previous_[head] = block;
  isReusable_[block] = true;
  ++numReusable_;
  return true;
}

std::optional<BlockId> BlockAllocator::reclaimOldest() {
  if (numReusable_ == 0)
    return std::nullopt;
  BlockId block = next_[numBlocks()];
  unlink(block);
  free_.push_back(block);
  return block;
}

void BlockAllocator::shuffleFree(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = free_.size(); i > 1; --i)
    std::swap(free_[i - 1], free_[random() % i]);
}

std::vector<BlockId> BlockAllocator::reusableBlocks() const {
  std::vector<BlockId> blocks;
  for (BlockId block = next_[numBlocks()]; block != numBlocks();
       block = next_[block])
    blocks.push_back(block);
  return blocks;
}

} // namespace ingot
