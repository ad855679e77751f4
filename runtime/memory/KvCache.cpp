#include "runtime/memory/KvCache.h"

#include <algorithm>
#include <cassert>

namespace ingot {

GroupGeometry GroupGeometry::of(const fbs::StateGroup &group) {
  GroupGeometry geometry;
  geometry.name = group.name()->str();
  geometry.layers = std::int32_t(group.layers());
  geometry.window = std::int32_t(group.window());
  geometry.layerBytes = group.layer_block_bytes();
  geometry.valueOffset = group.value_offset();
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
                                const KvCacheOptions &options,
                                const StateMemoryMaker &memory) {
  if (groups.size() != numBlocks.size())
    return Status::internal("block counts for " +
                            std::to_string(numBlocks.size()) + " of " +
                            std::to_string(groups.size()) + " groups");
  KvCache cache;
  cache.options_ = options;
  cache.index_ = std::make_unique<PrefixIndex>(
      std::vector<std::int32_t>(numBlocks.begin(), numBlocks.end()),
      options.prefixHashMask);
  for (const GroupGeometry &group : groups)
    if (group.blockTokens < 1 || group.blockTokens != groups[0].blockTokens)
      return Status::unsupported(
          "KV group \"" + group.name + "\": blocks of " +
          std::to_string(group.blockTokens) + " tokens, expected " +
          std::to_string(groups[0].blockTokens) + " as in the first group");
  cache.blockTokens_ = groups.empty() ? 1 : groups[0].blockTokens;
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
        group.storage,
        memory(bytes, "KV group \"" + group.geometry.name + "\""));
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
  // 0x7fff is a NaN of float16; 0x7fff7fff is one of float32.
  g.storage->fill(std::uint64_t(block) * bytes, bytes / 2 * 2, 0x7fff);
}

BlockId KvCache::takeBlock(std::size_t group) {
  BlockAllocator &allocator = *groups_[group].allocator;
  if (auto block = allocator.allocate())
    return *block;
  auto oldest = allocator.reclaimOldest();
  assert(oldest && "a block was promised");
  index_->forget(group, *oldest);
  if (options_.poisonFreeBlocks)
    poison(group, *oldest);
  return *allocator.allocate();
}

void KvCache::releaseBlock(std::size_t group, BlockId block) {
  bool keep = index_->isPublished(group, block);
  if (groups_[group].allocator->release(block, keep) && !keep &&
      options_.poisonFreeBlocks)
    poison(group, block);
}

void KvCache::copyBlock(std::size_t group, BlockId from, BlockId to) {
  std::uint64_t bytes = groups_[group].geometry.blockBytes();
  groups_[group].storage->copy(std::uint64_t(to) * bytes,
                               std::uint64_t(from) * bytes, bytes);
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

// The first block that the row at position `committed` sees.
std::int32_t KvCache::firstNeeded(std::size_t group,
                                  std::int32_t committed) const {
  std::int32_t window = groups_[group].geometry.window;
  return window > 0 ? std::max(0, committed - window + 1) / blockTokens_ : 0;
}

// The nodes of the longest usable prefix. Each group must have all the blocks
// that the next row sees, which for a windowed one are only the last ones.
std::vector<const PrefixIndex::Node *>
KvCache::findPrefix(const PrefixScope &scope,
                    std::span<const std::int32_t> tokens) const {
  std::vector<const PrefixIndex::Node *> path;
  const PrefixIndex::Node *node = index_->findRoot(scope);
  std::size_t blocks =
      tokens.empty() ? 0 : (tokens.size() - 1) / std::size_t(blockTokens_);
  while (node && path.size() < blocks) {
    node = index_->findChild(
        *node, tokens.subspan(path.size() * blockTokens_, blockTokens_));
    if (node)
      path.push_back(node);
  }
  // runs[g][n]: so many of the blocks before the n-th are there in a row.
  std::vector<std::vector<std::int32_t>> runs(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    runs[g].push_back(0);
    for (const PrefixIndex::Node *step : path)
      runs[g].push_back(step->block(g) >= 0 ? runs[g].back() + 1 : 0);
  }
  for (; !path.empty(); path.pop_back()) {
    auto length = std::int32_t(path.size());
    bool isWhole = true;
    for (std::size_t g = 0; g < groups_.size() && isWhole; ++g)
      isWhole = runs[g][path.size()] >=
                length - firstNeeded(g, length * blockTokens_);
    if (isWhole)
      break;
  }
  return path;
}

PrefixMatch KvCache::matchPrefix(const PrefixScope &scope,
                                 std::span<const std::int32_t> tokens) const {
  auto path = findPrefix(scope, tokens);
  PrefixMatch match;
  match.tokens = std::int32_t(path.size()) * blockTokens_;
  match.reusable.assign(groups_.size(), 0);
  for (std::size_t g = 0; g < groups_.size(); ++g)
    for (std::size_t b = std::size_t(firstNeeded(g, match.tokens));
         b < path.size(); ++b)
      match.reusable[g] += groups_[g].allocator->isReusable(path[b]->block(g));
  return match;
}

Result<std::int32_t>
KvCache::addSequence(SequenceId id, const PrefixScope &scope,
                     std::span<const std::int32_t> tokens) {
  INGOT_RETURN_IF_ERROR(addSequence(id));
  Sequence &sequence = sequences_.at(id);
  auto path = findPrefix(scope, tokens);
  sequence.committed = std::int32_t(path.size()) * blockTokens_;
  sequence.published = std::int32_t(path.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::int32_t first = firstNeeded(g, sequence.committed);
    sequence.firstHeld[g] = first;
    sequence.tables[g].assign(path.size(), -1);
    for (std::size_t b = std::size_t(first); b < path.size(); ++b) {
      sequence.tables[g][b] = path[b]->block(g);
      groups_[g].allocator->retain(path[b]->block(g));
    }
  }
  sequence.node = index_->pinRoot(scope);
  for (std::size_t b = 0; b < path.size(); ++b) {
    PrefixIndex::Node *parent = sequence.node;
    sequence.node =
        index_->pinChild(*parent, tokens.subspan(b * std::size_t(blockTokens_),
                                                 std::size_t(blockTokens_)));
    index_->unpin(*parent);
  }
  return sequence.committed;
}

void KvCache::removeSequence(SequenceId id) {
  auto found = sequences_.find(id);
  if (found == sequences_.end())
    return;
  // The end first: of a prefix that is wanted again, the beginning matters
  // most, so it should be reclaimed last.
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto &table = found->second.tables[g];
    for (auto block = table.rbegin(); block != table.rend(); ++block)
      if (*block >= 0)
        releaseBlock(g, *block);
  }
  if (found->second.node)
    index_->unpin(*found->second.node);
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
  to = from;
  std::size_t blocks =
      std::size_t((from.committed + blockTokens_ - 1) / blockTokens_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    to.tables[g].resize(blocks); // without what is reserved only
    for (BlockId block : to.tables[g])
      if (block >= 0)
        groups_[g].allocator->retain(block);
  }
  if (to.node)
    index_->pin(*to.node);
  return Status::ok();
}

std::int32_t KvCache::blocksHeldAlone(SequenceId id, std::size_t group) const {
  std::int32_t count = 0;
  for (BlockId block : sequences_.at(id).tables[group])
    count += block >= 0 && groups_[group].allocator->references(block) == 1;
  return count;
}

bool KvCache::sharesLastBlock(SequenceId id) const {
  const Sequence &sequence = sequences_.at(id);
  if (sequence.committed % blockTokens_ == 0)
    return false;
  std::size_t last = std::size_t(sequence.committed / blockTokens_);
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].allocator->references(sequence.tables[g][last]) > 1)
      return true;
  return false;
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
  std::int64_t wanted = (end + blockTokens_ - 1) / blockTokens_;
  std::size_t last = std::size_t(sequence.committed / blockTokens_);
  bool isPartial = sequence.committed % blockTokens_ != 0;
  auto needsCopy = [&](std::size_t g) {
    return isPartial && numTokens > 0 &&
           groups_[g].allocator->references(sequence.tables[g][last]) > 1;
  };
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const BlockAllocator &allocator = *groups_[g].allocator;
    std::int64_t missing =
        wanted - std::int64_t(sequence.tables[g].size()) + needsCopy(g);
    if (missing > allocator.numAvailable())
      return Status::outOfMemory(
          "KV group \"" + groups_[g].geometry.name +
          "\": " + std::to_string(missing) + " blocks needed, " +
          std::to_string(allocator.numAvailable()) + " of " +
          std::to_string(allocator.numBlocks()) + " free");
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto &table = sequence.tables[g];
    if (needsCopy(g)) {
      BlockId own = takeBlock(g);
      copyBlock(g, table[last], own);
      releaseBlock(g, table[last]);
      table[last] = own;
    }
    while (std::int64_t(table.size()) < wanted) {
      // Room in the table first: a block must not be lost where there is none.
      table.push_back(-1);
      table.back() = takeBlock(g);
    }
  }
  return Status::ok();
}

void KvCache::publish(Sequence &sequence,
                      std::span<const std::int32_t> tokens) {
  auto known = std::min<std::size_t>(tokens.size(), sequence.committed);
  std::size_t size = std::size_t(blockTokens_);
  for (std::size_t b = std::size_t(sequence.published); (b + 1) * size <= known;
       ++b) {
    PrefixIndex::Node *parent = sequence.node;
    sequence.node = index_->pinChild(*parent, tokens.subspan(b * size, size));
    index_->unpin(*parent);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (sequence.tables[g][b] >= 0)
        index_->publish(*sequence.node, g, sequence.tables[g][b]);
    ++sequence.published;
  }
}

void KvCache::commit(SequenceId id, std::int32_t numTokens,
                     std::span<const std::int32_t> tokens) {
  Sequence &sequence = sequences_.at(id);
  sequence.committed += numTokens;
  if (sequence.node)
    publish(sequence, tokens);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto &table = sequence.tables[g];
    assert(std::size_t(sequence.committed) <=
               table.size() * std::size_t(blockTokens_) &&
           "commit of positions that were not reserved");
    std::int32_t needed = firstNeeded(g, sequence.committed);
    for (std::int32_t &first = sequence.firstHeld[g]; first < needed; ++first) {
      releaseBlock(g, table[first]);
      table[first] = -1;
    }
  }
}

void KvCache::rollback(SequenceId id) {
  Sequence &sequence = sequences_.at(id);
  std::size_t kept =
      std::size_t((sequence.committed + blockTokens_ - 1) / blockTokens_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
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

CacheSnapshot KvCache::snapshot() const {
  CacheSnapshot snapshot;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const BlockAllocator &allocator = *groups_[g].allocator;
    CacheSnapshot::Group group;
    group.name = groups_[g].geometry.name;
    group.blockTokens = blockTokens_;
    group.window = groups_[g].geometry.window;
    group.free = allocator.freeBlocks();
    group.reusable = allocator.reusableBlocks();
    for (BlockId b = 0; b < allocator.numBlocks(); ++b) {
      group.references.push_back(allocator.references(b));
      group.published.push_back(index_->isPublished(g, b));
    }
    snapshot.groups.push_back(std::move(group));
  }
  for (const auto &[id, sequence] : sequences_)
    snapshot.sequences.push_back({id, sequence.committed, sequence.tables});
  return snapshot;
}

} // namespace ingot
