// The state that outlives a step: a list of groups (one geometry each), each
// with its own storage, its own accounting and its own block table a sequence.
//
//   storage    one HostMemory a group; block b is one contiguous range that
//              holds every layer's part: base + b * blockBytes + layer *
//              layerBytes
//   accounting BlockAllocator
//   tables     blocks of each sequence, in order of position
//
// A step is reserve -> run -> commit, or rollback: `reserve` takes the blocks
// that the step's rows need and changes nothing else that can be seen.
#pragma once

#include "runtime/memory/BlockAllocator.h"
#include "runtime/memory/HostMemory.h"
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
  bool isHalf = true; // element type f16, else f32
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
};

class KvCache {
public:
  // Takes all memory now: numBlocks[g] blocks for each group.
  static Result<KvCache> create(std::vector<GroupGeometry> groups,
                                std::span<const std::int32_t> numBlocks,
                                const KvCacheOptions &options = {});

  std::size_t numGroups() const { return groups_.size(); }
  const GroupGeometry &geometry(std::size_t group) const {
    return groups_[group].geometry;
  }
  const BlockAllocator &allocator(std::size_t group) const {
    return *groups_[group].allocator;
  }
  std::uint8_t *base(std::size_t group) const {
    return groups_[group].storage.data();
  }

  Status addSequence(SequenceId id);
  bool hasSequence(SequenceId id) const { return sequences_.count(id) != 0; }
  void removeSequence(SequenceId id);
  // `child` starts with all committed tokens of `parent`: whole blocks are
  // shared, the unfinished last one is copied.
  Status forkSequence(SequenceId parent, SequenceId child);

  std::int32_t committedTokens(SequenceId id) const;
  // Blocks for positions [committed, committed + numTokens). On failure
  // (OutOfMemory) nothing has changed.
  Status reserve(SequenceId id, std::int32_t numTokens);
  // The first `numTokens` reserved positions are final; blocks behind a
  // window are released.
  void commit(SequenceId id, std::int32_t numTokens);
  // Gives back what is reserved but not committed.
  void rollback(SequenceId id);

  // Physical blocks by position / blockTokens, committed and reserved. Those
  // behind a window are -1.
  std::span<const BlockId> blockTable(SequenceId id, std::size_t group) const;

  Status checkInvariants() const;

private:
  struct Group {
    GroupGeometry geometry;
    HostMemory storage;
    std::unique_ptr<BlockAllocator> allocator;
  };
  struct Sequence {
    std::int32_t committed = 0;
    std::vector<std::vector<BlockId>> tables; // one a group
    std::vector<std::int32_t> firstHeld;      // blocks before it are released
  };

  KvCache() = default;
  void poison(std::size_t group, BlockId block);
  void releaseBlock(std::size_t group, BlockId block);

  std::vector<Group> groups_;
  std::map<SequenceId, Sequence> sequences_;
  KvCacheOptions options_;
};

} // namespace ingot
