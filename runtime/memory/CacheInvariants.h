// What must hold of a cache between and inside steps, checked over plain
// values: by tests, and after every step in builds with assertions.
#pragma once

#include "runtime/memory/BlockAllocator.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

struct CacheSnapshot {
  struct Group {
    std::string name;
    std::int32_t blockTokens = 0;
    std::int32_t window = 0;
    std::vector<std::int32_t> references; // one a block
    std::vector<BlockId> free;
    std::vector<BlockId> reusable;
    std::vector<bool> published; // one a block
  };
  struct Sequence {
    std::uint64_t id = 0;
    std::int32_t committed = 0;
    std::vector<std::vector<BlockId>> tables; // one a group; -1: let go
  };
  std::vector<Group> groups;
  std::vector<Sequence> sequences;
};

// In each group:
//   1. every block is free, reusable or held, in one list and once;
//   2. references are as many as the tables that name the block;
//   3. a reusable block is published, a free one is not;
//   4. every sequence has blocks for all positions that its next row sees.
Status checkInvariants(const CacheSnapshot &snapshot);

} // namespace ingot
