// What the tests of CUDA kernels share: launches by name on the emulator, the
// schedules, half rows and packed weights, both in the layout of the kernels and in
// that of the plain twins (compiler/kernels/reference).
#pragma once

#include "compiler/codegen/cuda/CudaCatalog.h"
#include "compiler/kernels/reference/Reference.h"
#include "test/simt/Simt.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace ingot::test {

using Random = std::mt19937;
using simt::Access;
using simt::DeviceArray;

inline float uniform(Random &random, float low, float high) {
  return std::uniform_real_distribution<float>(low, high)(random);
}
inline int below(Random &random, int bound) {
  return std::uniform_int_distribution<int>(0, bound - 1)(random);
}
std::vector<float> uniforms(Random &random, std::size_t size, float low,
                            float high);

// One launch of the kernel of a name. Its geometry is the catalogue's, `geometry`
// where that depends on the launch.
simt::LaunchReport launchNamed(const std::string &name, abi::KernelGrid grid,
                               const void *params, std::size_t paramsBytes,
                               const simt::LaunchOptions &options,
                               const abi::KernelGeometry *geometry = nullptr);
template <typename Params>
simt::LaunchReport launchKernel(const std::string &name, abi::KernelGrid grid,
                                const Params &params,
                                const simt::LaunchOptions &options = {},
                                const abi::KernelGeometry *geometry = nullptr) {
  return launchNamed(name, grid, &params, sizeof params, options, geometry);
}

// Four schedules with seeds, modes of asynchronous copies and switches in the middle
// of accesses.
std::vector<simt::LaunchOptions> schedules(std::uint64_t seed = 1);

// Half rows as runtime/plan/CudaAbi.h states them, made on the host.
class HalfRows {
public:
  HalfRows(int numRows, int width, int parts = 1);
  static HalfRows of(const std::vector<float> &values, int width,
                     int parts = 1);

  abi::QuantizedRows rows() const;
  double valueAt(int row, int k) const; // what the half stands for
  std::vector<std::uint8_t> row(int row) const;

private:
  int width_, parts_;
  std::int64_t rowBytes_;
  DeviceArray<std::uint8_t> bytes_;
};

// Weights of one encoding with random codes.
class TestWeights {
public:
  TestWeights(Random &random, const std::string &encoding, int rows,
              int columns);

  abi::PackedWeights mma16() const; // on the device
  abi::PackedWeights r16() const;   // on the host, for the twin
  reference::Encoding encoding() const;
  // What element (row, k) stands for, by the twin.
  float at(int row, int k) const;
  std::size_t deviceBytes() const; // of all planes
  const void *deviceCodes() const { return codes_.data(); }
  const void *deviceScales() const { return scales_.data(); }
  const void *deviceMins() const { return mins_.data(); }

private:
  codegen::CudaEncoding encoding_;
  int columns_;
  std::vector<std::uint8_t> r16Codes_;
  std::vector<std::uint16_t> hostScales_, hostMins_;
  DeviceArray<std::uint8_t> codes_{0};
  DeviceArray<std::uint16_t> scales_{0}, mins_{0};
};

// Equal bits; any NaN equals any other.
::testing::AssertionResult sameBits(const std::vector<float> &got,
                                    const std::vector<float> &want);

} // namespace ingot::test
