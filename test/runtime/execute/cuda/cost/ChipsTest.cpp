// The occupancy of kernels against NVIDIA's own calculator (cuda_occupancy.h of a
// toolkit, where one was there when this was built), and against values by hand.
#include "runtime/execute/cuda/cost/Chips.h"

#include <gtest/gtest.h>

#include <set>

#ifdef INGOT_HAS_CUDA_OCCUPANCY
#define __host__
#define __device__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#endif

namespace ingot::cuda {
namespace {

Chip chip(const char *name) {
  auto found = chipOfLevel(name);
  EXPECT_TRUE(found.isOk()) << found.status().message();
  return found ? *found : Chip{};
}

TEST(Chips, LevelsAreOfChips) {
  EXPECT_EQ(chip("sm_90a").sm, "sm_90");
  EXPECT_EQ(chip("sm_90a").device, "NVIDIA H200 SXM");
  EXPECT_EQ(chip("sm_80").multiprocessors, 108);
  for (const char *name : {"sm_75", "sm_900", "compute_80", "", "a"}) {
    auto none = chipOfLevel(name);
    ASSERT_FALSE(none.isOk()) << name;
    EXPECT_EQ(none.status().code(), StatusCode::Unsupported);
    EXPECT_NE(
        none.status().message().find("expected sm_80, sm_86, sm_89, sm_90"),
        std::string::npos)
        << none.status().message();
  }
}

TEST(Chips, OccupancyByHand) {
  // 64 warps hold 16 blocks of four; 128 registers: 4 warps a partition, 16 in all.
  EXPECT_EQ(occupancyOf(chip("sm_90"), {128, 32, 0}).blocks, 16);
  EXPECT_EQ(occupancyOf(chip("sm_90"), {128, 32, 0}).limit, "warps");
  const Occupancy registers = occupancyOf(chip("sm_90"), {128, 128, 0});
  EXPECT_EQ(registers.blocks, 4);
  EXPECT_EQ(registers.warps, 16);
  EXPECT_EQ(registers.share, 0.25);
  EXPECT_EQ(registers.limit, "registers");
  // 80 KiB and one that the driver keeps: two of 228.
  EXPECT_EQ(occupancyOf(chip("sm_90"), {128, 64, 80 << 10}).blocks, 2);
  EXPECT_EQ(occupancyOf(chip("sm_90"), {128, 64, 80 << 10}).limit, "shared");
  EXPECT_EQ(occupancyOf(chip("sm_86"), {128, 64, 80 << 10}).blocks, 1);
  EXPECT_EQ(occupancyOf(chip("sm_86"), {128, 64, 120 << 10}).blocks, 0);
  EXPECT_EQ(occupancyOf(chip("sm_86"), {32, 16, 0}).limit, "blocks");
}

#ifdef INGOT_HAS_CUDA_OCCUPANCY
TEST(Chips, OccupancyIsThatOfNvidiasCalculator) {
  std::set<int> seen;
  std::set<std::string_view> limits;
  for (const char *name : {"sm_80", "sm_86", "sm_89", "sm_90"}) {
    const Chip of = chip(name);
    cudaOccDeviceProp device{};
    device.computeMajor = name[3] - '0';
    device.computeMinor = name[4] - '0';
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = of.warps * 32;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = std::size_t(of.sharedBytes);
    device.numSms = of.multiprocessors;
    device.sharedMemPerBlockOptin = std::size_t(of.blockSharedBytes);
    device.reservedSharedMemPerBlock = std::size_t(of.reservedSharedBytes);
    for (int threads : {32, 64, 96, 128, 160, 256, 384, 512, 1024})
      for (int registers :
           {8, 16, 24, 32, 40, 47, 64, 65, 96, 104, 128, 168, 200, 255})
        for (int dynamic :
             {0, 96, 1000, 4 << 10, 16 << 10, 33000, 48 << 10, 80 << 10, 81920,
              98 << 10, 99 << 10, 160 << 10, 227 << 10}) {
          if (dynamic > of.blockSharedBytes)
            continue;
          cudaOccFuncAttributes function{};
          function.maxThreadsPerBlock = 1024;
          function.numRegs = registers;
          function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
          function.maxDynamicSharedSizeBytes = std::size_t(dynamic);
          cudaOccDeviceState state{};
          state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
          cudaOccResult result{};
          ASSERT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(
                        &result, &device, &function, &state, threads,
                        std::size_t(dynamic)),
                    CUDA_OCC_SUCCESS);
          const Occupancy own = occupancyOf(of, {threads, registers, dynamic});
          ASSERT_EQ(own.blocks, result.activeBlocksPerMultiprocessor)
              << name << ": " << threads << " threads, " << registers
              << " registers, " << dynamic << " bytes";
          seen.insert(own.blocks);
          limits.insert(own.limit);
        }
  }
  EXPECT_GT(seen.size(), 10u);
  EXPECT_EQ(limits.size(), 4u);
}
#else
TEST(Chips, OccupancyIsThatOfNvidiasCalculator) {
  GTEST_SKIP() << "no cuda_occupancy.h was found when this was built";
}
#endif

} // namespace
} // namespace ingot::cuda
