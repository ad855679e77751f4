#include "runtime/memory/BlockAllocator.h"

#include <cassert>
#include <random>
#include <string>
#include <utility>

namespace ingot {

BlockAllocator::BlockAllocator(std::int32_t numBlocks)
    : references_(numBlocks, 0), free_(numBlocks) {
  for (std::int32_t i = 0; i < numBlocks; ++i)
    free_[i] = numBlocks - 1 - i;
}

std::optional<BlockId> BlockAllocator::allocate() {
  if (free_.empty())
    return std::nullopt;
  BlockId block = free_.back();
  free_.pop_back();
  references_[block] = 1;
  return block;
}

void BlockAllocator::retain(BlockId block) {
  assert(references_[block] > 0 && "retain of a free block");
  ++references_[block];
}

bool BlockAllocator::release(BlockId block) {
  assert(references_[block] > 0 && "release of a free block");
  if (--references_[block] != 0)
    return false;
  free_.push_back(block);
  return true;
}

void BlockAllocator::shuffleFree(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = free_.size(); i > 1; --i)
    std::swap(free_[i - 1], free_[random() % i]);
}

Status BlockAllocator::checkInvariants() const {
  std::vector<bool> isFree(references_.size(), false);
  for (BlockId block : free_) {
    if (block < 0 || std::size_t(block) >= references_.size())
      return Status::internal("free list holds block " + std::to_string(block) +
                              " of " + std::to_string(references_.size()));
    if (isFree[block])
      return Status::internal("block " + std::to_string(block) +
                              " is twice in the free list");
    isFree[block] = true;
  }
  for (std::size_t i = 0; i < references_.size(); ++i)
    if (references_[i] < 0 || (references_[i] == 0) != isFree[i])
      return Status::internal("block " + std::to_string(i) + " has " +
                              std::to_string(references_[i]) +
                              " references and is " +
                              (isFree[i] ? "free" : "not free"));
  return Status::ok();
}

} // namespace ingot
