// The state that outlives a step: a list of groups (one geometry each), each
// with its own storage, its own accounting and its own block table a sequence.
//
//   storage    one StateMemory a group, of the host or of a device; block b is
//              one contiguous range that holds every layer's part: base + b *
//              blockBytes + layer * layerBytes
//   accounting BlockAllocator: which blocks are free, held, reusable
//   reuse      PrefixIndex: which tokens a block holds
//   tables     blocks of each sequence, in order of position
//
// A step is reserve -> run -> commit, or rollback: `reserve` takes the blocks
// that the step's rows need and changes nothing else that can be seen.
//
// A whole block is final when it is committed. It is then published under its
// scope and the tokens before and in it; a later sequence that begins alike
// starts with it. Blocks that no sequence holds any more stay published until
// their room is needed, the longest unused first. Forks share every block; who
// writes into a shared one gets a copy of its own first.
#pragma once

#include "runtime/memory/BlockAllocator.h"
#include "runtime/memory/CacheInvariants.h"
#include "runtime/memory/PrefixIndex.h"
#include "runtime/memory/StateMemory.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ingot {

using SequenceId = std::uint64_t;

struct GroupGeometry {
  std::string name;
  std::int32_t layers = 0;
  std::int32_t window = 0; // positions kept; 0: all
  std::uint64_t layerBytes = 0;
  std::uint64_t valueOffset = 0;
  std::int32_t blockTokens = 32;

  std::uint64_t blockBytes() const { return layerBytes * layers; }
  static GroupGeometry of(const fbs::StateGroup &group);
};

// The most blocks of a group that a sequence of `numTokens` can hold at once,
// when a step appends at most `stepTokens` to it.
std::int32_t blocksForTokens(std::int64_t numTokens, std::int32_t blockTokens,
                             std::int32_t window, std::int32_t stepTokens);

struct KvCacheOptions {
  bool poisonFreeBlocks = false; // fill unheld blocks with NaN (tests)
  std::uint64_t shuffleSeed = 0; // permute the free lists (tests); 0: no
  // Bits of the prefix hash in use (tests): 0 makes all prefixes collide.
  std::uint64_t prefixHashMask = ~std::uint64_t(0);
};

// A cached beginning of a sequence.
struct PrefixMatch {
  std::int32_t tokens = 0; // in whole blocks
  // In each group, the blocks of it that are reusable now: using the prefix
  // makes so many fewer available.
  std::vector<std::int32_t> reusable;
};

class KvCache {
public:
  // Takes all memory now: numBlocks[g] blocks for each group. Groups share one
  // block length. `memory` says where the blocks lie.
  static Result<KvCache> create(std::vector<GroupGeometry> groups,
                                std::span<const std::int32_t> numBlocks,
                                const KvCacheOptions &options = {},
                                const StateMemoryMaker &memory = makeHostState);

  std::size_t numGroups() const { return groups_.size(); }
  const GroupGeometry &geometry(std::size_t group) const {
    return groups_[group].geometry;
  }
  const BlockAllocator &allocator(std::size_t group) const {
    return *groups_[group].allocator;
  }
  // Of block 0: an address of the host, or of the device where the blocks lie there.
  std::uint8_t *base(std::size_t group) const {
    return groups_[group].storage->data();
  }

  // A sequence that neither finds nor leaves a prefix.
  Status addSequence(SequenceId id);
  // The longest cached beginning of `tokens`, at least one token shorter: the
  // last one has to run for its logits.
  PrefixMatch matchPrefix(const PrefixScope &scope,
                          std::span<const std::int32_t> tokens) const;
  // A sequence that begins with what matchPrefix() finds now, which is
  // committed; returns its tokens. What it commits is published in turn.
  Result<std::int32_t> addSequence(SequenceId id, const PrefixScope &scope,
                                   std::span<const std::int32_t> tokens);
  bool hasSequence(SequenceId id) const { return sequences_.count(id) != 0; }
  void removeSequence(SequenceId id);
  // `child` starts with all committed tokens of `parent`, in the same blocks.
  Status forkSequence(SequenceId parent, SequenceId child);

  std::int32_t committedTokens(SequenceId id) const;
  // Blocks for positions [committed, committed + numTokens). On failure
  // (OutOfMemory) nothing has changed.
  Status reserve(SequenceId id, std::int32_t numTokens);
  // The first `numTokens` reserved positions are final; blocks behind a
  // window are released. `tokens` are those of the sequence, from its first
  // position; what lies beyond them is not published.
  void commit(SequenceId id, std::int32_t numTokens,
              std::span<const std::int32_t> tokens = {});
  // Gives back what is reserved but not committed.
  void rollback(SequenceId id);

  // Physical blocks by position / blockTokens, committed and reserved. Those
  // behind a window are -1.
  std::span<const BlockId> blockTable(SequenceId id, std::size_t group) const;

  // Blocks that would be available without the sequence.
  std::int32_t blocksHeldAlone(SequenceId id, std::size_t group) const;
  // Is the unfinished last block shared, so that the next row needs a copy?
  bool sharesLastBlock(SequenceId id) const;
  std::size_t numSequences() const { return sequences_.size(); }
  std::size_t numPrefixNodes() const { return index_->numNodes(); }

  CacheSnapshot snapshot() const;
  Status checkInvariants() const { return ingot::checkInvariants(snapshot()); }

private:
  struct Group {
    GroupGeometry geometry;
    std::unique_ptr<StateMemory> storage;
    std::unique_ptr<BlockAllocator> allocator;
  };
  struct Sequence {
    std::int32_t committed = 0;
    std::vector<std::vector<BlockId>> tables; // one a group
    std::vector<std::int32_t> firstHeld;      // blocks before it are released
    // The node of the blocks published so far, pinned; null: publishes none.
    PrefixIndex::Node *node = nullptr;
    std::int32_t published = 0; // blocks
  };

  KvCache() = default;
  std::vector<const PrefixIndex::Node *>
  findPrefix(const PrefixScope &scope,
             std::span<const std::int32_t> tokens) const;
  std::int32_t firstNeeded(std::size_t group, std::int32_t committed) const;
  void publish(Sequence &sequence, std::span<const std::int32_t> tokens);
  void poison(std::size_t group, BlockId block);
  BlockId takeBlock(std::size_t group);
  void releaseBlock(std::size_t group, BlockId block);
  void copyBlock(std::size_t group, BlockId from, BlockId to);

  std::vector<Group> groups_;
  std::unique_ptr<PrefixIndex> index_;
  std::int32_t blockTokens_ = 0;
  std::map<SequenceId, Sequence> sequences_;
  KvCacheOptions options_;
};

} // namespace ingot
