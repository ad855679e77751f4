#include "runtime/execute/cuda/cost/Chips.h"

#include <algorithm>
#include <array>

namespace ingot::cuda {
namespace {

// Rates are of NVIDIA's datasheets, without sparsity where these give both:
//   A100   "NVIDIA A100 Tensor Core GPU" (1758950-r4): 2,039 GB/s, 312 | 624 TFLOPS;
//          SMs and L2 by the whitepaper "NVIDIA A100 Tensor Core GPU Architecture"
//   A40    "NVIDIA A40": 696 GB/s, 149.7 | 299.4 TFLOPS; 84 SMs and 6 MB of L2 by the
//          whitepaper "NVIDIA Ampere GA102 GPU Architecture"
//   L40S   "NVIDIA L40S": 864 GB/s, 362.05 | 733 TFLOPS; 142 SMs and the L2 of AD102 by
//          the whitepaper "NVIDIA Ada GPU Architecture"
//   H200   "NVIDIA H200 Tensor Core GPU": 4.8 TB/s, 1,979 TFLOPS with sparsity alone; 132
//          SMs and 50 MB of L2 by "NVIDIA H100 Tensor Core GPU Architecture"
// Limits of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability"; tuning guides of Ampere, Ada and Hopper, "Occupancy".
constexpr std::array kChips = {
    Chip{"sm_80", "NVIDIA A100 SXM 80 GB", 2.039e12, 312e12, 40 << 20, 108, 64,
         32, 65536, 164 << 10, 163 << 10, 1024},
    Chip{"sm_86", "NVIDIA A40", 696e9, 149.7e12, 6 << 20, 84, 48, 16, 65536,
         100 << 10, 99 << 10, 1024},
    Chip{"sm_89", "NVIDIA L40S", 864e9, 362e12, 96 << 20, 142, 48, 24, 65536,
         100 << 10, 99 << 10, 1024},
    Chip{"sm_90", "NVIDIA H200 SXM", 4.8e12, 989e12, 50 << 20, 132, 64, 32,
         65536, 228 << 10, 227 << 10, 1024},
};

constexpr std::int32_t kWarpThreads = 32;
constexpr std::int32_t kRegisterUnit = 256; // of a warp
constexpr std::int32_t kMostRegisters = 256;
constexpr std::int32_t kPartitions = 4; // of a multiprocessor's registers
constexpr std::int32_t kSharedUnit = 128;

constexpr std::int32_t roundUp(std::int32_t value, std::int32_t unit) {
  return (value + unit - 1) / unit * unit;
}

} // namespace

std::vector<std::string> knownChips() {
  std::vector<std::string> names;
  for (const Chip &chip : kChips)
    names.emplace_back(chip.sm);
  return names;
}

Result<Chip> chipOfLevel(std::string_view level) {
  std::string_view name = level;
  if (!name.empty() && (name.back() == 'a' || name.back() == 'f'))
    name.remove_suffix(1);
  for (const Chip &chip : kChips)
    if (chip.sm == name)
      return chip;
  std::string known;
  for (const Chip &chip : kChips)
    known += (known.empty() ? "" : ", ") + std::string(chip.sm);
  return Status::unsupported(std::string(level) +
                             ": no table of its limits and rates, expected " +
                             known);
}

Occupancy occupancyOf(const Chip &chip, const BlockNeeds &needs) {
  const std::int32_t warps = (needs.threads + kWarpThreads - 1) / kWarpThreads;
  Occupancy best{};
  if (warps == 0 || needs.registers > kMostRegisters)
    return best;
  best.blocks = chip.warps / warps;
  best.limit = "warps";
  auto limit = [&](std::int32_t blocks, std::string_view what) {
    if (blocks < best.blocks) {
      best.blocks = blocks;
      best.limit = what;
    }
  };
  limit(chip.blocks, "blocks");
  if (needs.registers > 0) {
    // A warp's registers come from one partition; a block is counted as if its warps
    // filled all of them evenly.
    const std::int32_t ofWarp =
        roundUp(needs.registers * kWarpThreads, kRegisterUnit);
    const std::int32_t ofBlock = ofWarp * roundUp(warps, kPartitions);
    const std::int32_t inUse =
        chip.registers / kPartitions / ofWarp * kPartitions;
    limit(ofBlock > chip.registers ? 0 : inUse / warps, "registers");
  }
  if (needs.sharedBytes > chip.blockSharedBytes)
    limit(0, "shared");
  else
    limit(
        chip.sharedBytes /
            roundUp(needs.sharedBytes + chip.reservedSharedBytes, kSharedUnit),
        "shared");
  best.warps = best.blocks * warps;
  best.share = double(best.warps) / double(chip.warps);
  return best;
}

} // namespace ingot::cuda
