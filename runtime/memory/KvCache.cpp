#include "runtime/memory/KvCache.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ingot {

GroupGeometry GroupGeometry::of(const fbs::StateGroup &group) {
  GroupGeometry geometry;
  geometry.name = group.name()->str();
  geometry.layers = std::int32_t(group.layers());
  geometry.window = std::int32_t(group.window());
  geometry.layerBytes = group.layer_block_bytes();
  geometry.valueOffset = group.value_offset();
  geometry.isHalf = group.dtype() == fbs::DType::f16;
  geometry.blockTokens = std::int32_t(group.block_tokens());
  return geometry;
}

std::int32_t blocksForTokens(std::int64_t numTokens, std::int32_t blockTokens,
                             std::int32_t window, std::int32_t stepTokens) {
  std::int64_t all = (numTokens + blockTokens - 1) / blockTokens;
  if (window > 0) {
    // The window before the step and the step itself, each of which may touch
    // one more block than it fills.
    std::int64_t kept =
        (std::int64_t(window) + stepTokens + blockTokens - 1) / blockTokens + 1;
    all = std::min(all, kept);
  }
  return std::int32_t(all);
}

Result<KvCache> KvCache::create(std::vector<GroupGeometry> groups,
                                std::span<const std::int32_t> numBlocks,
                                const KvCacheOptions &options) {
  if (groups.size() != numBlocks.size())
    return Status::internal("block counts for " +
                            std::to_string(numBlocks.size()) + " of " +
                            std::to_string(groups.size()) + " groups");
  KvCache cache;
  cache.options_ = options;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    Group group;
    group.geometry = std::move(groups[g]);
    std::uint64_t bytes = 0;
    if (numBlocks[g] < 0 ||
        __builtin_mul_overflow(group.geometry.layerBytes,
                               std::uint64_t(group.geometry.layers), &bytes) ||
        __builtin_mul_overflow(bytes, std::uint64_t(numBlocks[g]), &bytes))
      return Status::outOfMemory("KV group \"" + group.geometry.name +
                                 "\": size overflows");
    INGOT_ASSIGN_OR_RETURN(
        group.storage, HostMemory::allocate(
                           bytes, "KV group \"" + group.geometry.name + "\""));
    group.allocator = std::make_unique<BlockAllocator>(numBlocks[g]);
    if (options.shuffleSeed != 0)
      group.allocator->shuffleFree(options.shuffleSeed + g);
    cache.groups_.push_back(std::move(group));
  }
  if (options.poisonFreeBlocks)
    for (std::size_t g = 0; g < cache.groups_.size(); ++g)
      for (BlockId b = 0; b < numBlocks[g]; ++b)
        cache.poison(g, b);
  return cache;
}

void KvCache::poison(std::size_t group, BlockId block) {
  const Group &g = groups_[group];
  std::uint64_t bytes = g.geometry.blockBytes();
  std::uint8_t *at = g.storage.data() + std::uint64_t(block) * bytes;
  // 0x7fff is a NaN of float16; 0x7fff7fff is one of float32.
  for (std::uint64_t i = 0; i + 1 < bytes; i += 2) {
    at[i] = 0xff;
    at[i + 1] = 0x7f;
  }
}

void KvCache::releaseBlock(std::size_t group, BlockId block) {
  if (groups_[group].allocator->release(block) && options_.poisonFreeBlocks)
    poison(group, block);
}

Status KvCache::addSequence(SequenceId id) {
  Sequence sequence;
  sequence.tables.resize(groups_.size());
  sequence.firstHeld.assign(groups_.size(), 0);
  if (!sequences_.emplace(id, std::move(sequence)).second)
    return Status::internal("sequence " + std::to_string(id) +
                            " exists already");
  return Status::ok();
}

void KvCache::removeSequence(SequenceId id) {
  auto found = sequences_.find(id);
  if (found == sequences_.end())
    return;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    for (BlockId block : found->second.tables[g])
      if (block >= 0)
        releaseBlock(g, block);
  sequences_.erase(found);
}

Status KvCache::forkSequence(SequenceId parent, SequenceId child) {
  auto found = sequences_.find(parent);
  if (found == sequences_.end())
    return Status::internal("fork of unknown sequence " +
                            std::to_string(parent));
  INGOT_RETURN_IF_ERROR(addSequence(child));
  const Sequence &from = found->second;
  Sequence &to = sequences_.at(child);
  to.committed = from.committed;
  to.firstHeld = from.firstHeld;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const GroupGeometry &geometry = groups_[g].geometry;
    std::int32_t whole = from.committed / geometry.blockTokens;
    for (std::int32_t b = 0; b < whole; ++b) {
      BlockId block = from.tables[g][b];
      if (block >= 0)
        groups_[g].allocator->retain(block);
      to.tables[g].push_back(block);
    }
    if (from.committed % geometry.blockTokens == 0)
      continue;
    auto copy = groups_[g].allocator->allocate();
    if (!copy) {
      removeSequence(child);
      return Status::outOfMemory("KV group \"" + geometry.name +
                                 "\": no free block to fork a sequence");
    }
    std::uint64_t bytes = geometry.blockBytes();
    std::uint8_t *base = groups_[g].storage.data();
    std::memcpy(base + std::uint64_t(*copy) * bytes,
                base + std::uint64_t(from.tables[g][whole]) * bytes, bytes);
    to.tables[g].push_back(*copy);
  }
  return Status::ok();
}

std::int32_t KvCache::committedTokens(SequenceId id) const {
  return sequences_.at(id).committed;
}

Status KvCache::reserve(SequenceId id, std::int32_t numTokens) {
  auto found = sequences_.find(id);
  if (found == sequences_.end())
    return Status::internal("reserve for unknown sequence " +
                            std::to_string(id));
  Sequence &sequence = found->second;
  std::int64_t end = std::int64_t(sequence.committed) + numTokens;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const GroupGeometry &geometry = groups_[g].geometry;
    std::int64_t wanted =
        (end + geometry.blockTokens - 1) / geometry.blockTokens;
    std::int64_t missing = wanted - std::int64_t(sequence.tables[g].size());
    if (missing > groups_[g].allocator->numFree()) {
      std::string message =
          "KV group \"" + geometry.name + "\": " + std::to_string(missing) +
          " blocks needed, " + std::to_string(groups_[g].allocator->numFree()) +
          " of " + std::to_string(groups_[g].allocator->numBlocks()) + " free";
      rollback(id);
      return Status::outOfMemory(std::move(message));
    }
    for (; missing > 0; --missing) {
      // Room in the table first: a block must not be lost where there is none.
      sequence.tables[g].push_back(-1);
      sequence.tables[g].back() = *groups_[g].allocator->allocate();
    }
  }
  return Status::ok();
}

void KvCache::commit(SequenceId id, std::int32_t numTokens) {
  Sequence &sequence = sequences_.at(id);
  sequence.committed += numTokens;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const GroupGeometry &geometry = groups_[g].geometry;
    auto &table = sequence.tables[g];
    assert(std::size_t(sequence.committed) <=
               table.size() * geometry.blockTokens &&
           "commit of positions that were not reserved");
    if (geometry.window == 0)
      continue;
    // The next query is at `committed` and sees positions above
    // committed - window.
    std::int32_t oldest = sequence.committed - geometry.window + 1;
    for (std::int32_t &first = sequence.firstHeld[g];
         (first + 1) * geometry.blockTokens <= oldest; ++first) {
      releaseBlock(g, table[first]);
      table[first] = -1;
    }
  }
}

void KvCache::rollback(SequenceId id) {
  Sequence &sequence = sequences_.at(id);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::int32_t blockTokens = groups_[g].geometry.blockTokens;
    std::size_t kept = (sequence.committed + blockTokens - 1) / blockTokens;
    auto &table = sequence.tables[g];
    while (table.size() > kept) {
      releaseBlock(g, table.back());
      table.pop_back();
    }
  }
}

std::span<const BlockId> KvCache::blockTable(SequenceId id,
                                             std::size_t group) const {
  return sequences_.at(id).tables[group];
}

Status KvCache::checkInvariants() const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const BlockAllocator &allocator = *groups_[g].allocator;
    INGOT_RETURN_IF_ERROR(allocator.checkInvariants().withContext(
        "KV group \"" + groups_[g].geometry.name + "\""));
    std::vector<std::int32_t> held(allocator.numBlocks(), 0);
    for (const auto &[id, sequence] : sequences_) {
      std::int64_t room = std::int64_t(sequence.tables[g].size()) *
                          groups_[g].geometry.blockTokens;
      if (sequence.committed > room)
        return Status::internal("sequence " + std::to_string(id) + " has " +
                                std::to_string(sequence.committed) +
                                " tokens in blocks for " +
                                std::to_string(room));
      for (BlockId block : sequence.tables[g])
        if (block >= 0)
          ++held[block];
    }
    for (std::int32_t b = 0; b < allocator.numBlocks(); ++b)
      if (held[b] != allocator.references(b))
        return Status::internal("block " + std::to_string(b) + " is held " +
                                std::to_string(held[b]) +
                                " times and counted " +
                                std::to_string(allocator.references(b)));
  }
  return Status::ok();
}

} // namespace ingot
