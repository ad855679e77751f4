// What the kernel tests share: one compiled set of kernels a level, buffers that
// show stray writes and reads, random splits of a launch into slices, and
// comparison bit for bit.
#pragma once

#include "test/compiler/kernels/MappedKernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace ingot::test {

using Random = std::mt19937;

inline float uniform(Random &random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}
inline int below(Random &random, int bound) {
  return std::uniform_int_distribution<int>(0, bound - 1)(random);
}

// Activations of all kinds: ordinary, huge, zero, denormal; and NaN on request.
float oddActivation(Random &random, bool withNan);

// Memory whose unused part is poisoned: filled with NaN, 64-byte aligned.
class PoisonedBuffer {
public:
  explicit PoisonedBuffer(std::size_t sizeBytes);
  std::uint8_t *data() { return start_; }
  const std::uint8_t *data() const { return start_; }
  template <typename T> T *as() { return reinterpret_cast<T *>(start_); }
  std::size_t size() const { return size_; }
  // Whether the guard around the buffer is untouched.
  bool guardIntact() const;

private:
  std::vector<std::uint8_t> bytes_;
  std::uint8_t *start_;
  std::size_t size_;
};

// The kernels of a configuration at a level, compiled once for the process.
const MappedKernels &kernelsFor(const codegen::CpuLevel &level,
                                const std::string &op,
                                const codegen::KernelConfig &config);

// Runs a kernel over [0, items) in random slices, in random order, with poisoned
// scratch of exactly the announced size.
void runSliced(abi::KernelFn kernel, const void *params, int items,
               std::uint32_t scratchBytes, Random &random);
// The whole launch as one slice.
inline abi::Slice wholeSlice(int items) { return {0, items, 0, 0, nullptr}; }

// Equal bits; any NaN equals any other.
::testing::AssertionResult sameFloats(const float *got, const float *want,
                                      std::size_t count);
::testing::AssertionResult sameBytes(const PoisonedBuffer &got,
                                     const PoisonedBuffer &want);

// A test that runs once for each level.
class LevelTest : public ::testing::TestWithParam<std::string> {
protected:
  void SetUp() override {
    level = levelNamed(GetParam());
    ASSERT_NE(level, nullptr);
    if (!machineRuns(*level))
      GTEST_SKIP() << "this machine has no " << GetParam();
  }
  const codegen::CpuLevel *level = nullptr;
};
std::string levelTestName(const ::testing::TestParamInfo<std::string> &info);
#define INGOT_FOR_EACH_LEVEL(SUITE)                                            \
  INSTANTIATE_TEST_SUITE_P(                                                    \
      Levels, SUITE,                                                           \
      ::testing::Values("x86-64-v3", "emulated-avx512", "avx512-vnni"),        \
      levelTestName)

} // namespace ingot::test
