// What a chip is, by the tables of the CUDA programming guide (limits of a
// multiprocessor) and by NVIDIA's datasheet of one device that carries it (rates); and
// how many blocks of a kernel run on a multiprocessor at once. Nothing is asked of a
// device: docs/cuda.md has the sources.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::cuda {

struct Chip {
  std::string_view sm;     // "sm_90": without the letter of a level
  std::string_view device; // whose rates these are
  double bytesPerSecond;   // of its memory
  double tensorFlops;      // a second, dense float16 with float32 sums
  std::int64_t cacheBytes; // L2
  std::int32_t multiprocessors;
  // Of a multiprocessor.
  std::int32_t warps;
  std::int32_t blocks;
  std::int32_t registers;
  std::int32_t sharedBytes;
  // Of a block, with what the driver keeps of it.
  std::int32_t blockSharedBytes;
  std::int32_t reservedSharedBytes;
};

// The chip of a level of code ("sm_90a" is a level of sm_90). Unsupported, with the
// chips that are known, where there is none.
Result<Chip> chipOfLevel(std::string_view level);
std::vector<std::string> knownChips();

// Of one kernel: `registers` of a thread, as ptxas says; shared memory of a block,
// static and dynamic together.
struct BlockNeeds {
  std::int32_t threads = 0;
  std::int32_t registers = 0;
  std::int32_t sharedBytes = 0;
};

struct Occupancy {
  std::int32_t blocks =
      0; // of a multiprocessor at once; 0: the block cannot run
  std::int32_t warps = 0;
  double share = 0; // of the warps that it can hold
  std::string_view
      limit; // what decides: "warps", "blocks", "registers", "shared"
};
Occupancy occupancyOf(const Chip &chip, const BlockNeeds &needs);

} // namespace ingot::cuda
