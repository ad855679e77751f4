// The kernels around a product of cuBLASLt: weights are laid out as plain float16 to
// the bit, and the sums of a product become what `linear` would make of them.
#include "runtime/plan/CudaLibraryAbi.h"
#include "test/compiler/kernels/cuda/LinearCase.h"
#include "test/simt/Half.h"

namespace ingot::test {
namespace {

TEST(CudaLibraryKernels, WeightsBecomePlainRows) {
  Random random(71);
  std::size_t turn = 0;
  for (const char *encoding : {"f16", "bf16"})
    for (auto [n, k] : {std::pair(1, 8), std::pair(16, 64), std::pair(40, 72),
                        std::pair(33, 328), std::pair(64, 576)}) {
      TestWeights weights(random, encoding, n, k);
      const std::int64_t paddedK = abi::cudaPaddedK(k);
      DeviceArray<std::uint16_t> output(
          std::size_t(abi::unpackedBytes(n, k) / 2));
      const abi::CudaUnpackParams params = {weights.deviceCodes(),
                                            output.data(), k, n};
      simt::LaunchReport report = launchKernel(
          std::string("library_linear_") + encoding, abi::unpackGrid(n, k),
          params, schedules(72)[turn++ % 4]);
      ASSERT_TRUE(report.isClean()) << report.text();
      const std::vector<std::uint16_t> rows = output.copy();
      for (std::int64_t row = 0; row < n; ++row)
        for (std::int64_t i = 0; i < paddedK; ++i) {
          const float want = i < k ? weights.at(int(row), int(i)) : 0.0f;
          // float16 of a float16 is itself, of a bfloat16 the nearest.
          ASSERT_EQ(rows[std::size_t(row * paddedK + i)],
                    simt::floatToHalf(want))
              << encoding << " row " << row << " column " << i;
        }
    }
}

TEST(CudaLibraryKernels, SumsBecomeTheValuesOfLinear) {
  Random random(73);
  for (bool hasEpilogue : {false, true}) {
    const int tokens = 9, n = 300, k = 24, stride = n + 5;
    const std::int64_t sumsStride = abi::librarySumsStride(n);
    const HalfRows rows =
        HalfRows::of(uniforms(random, tokens * k, -70000, 70000), k);
    const std::vector<float> sums =
        uniforms(random, std::size_t(tokens * sumsStride), -9, 9);
    const std::vector<float> bias = uniforms(random, n, -1, 1);
    const std::vector<float> residual =
        uniforms(random, std::size_t(tokens * stride), -5, 5);
    DeviceArray<float> deviceSums(sums), deviceBias(bias);
    DeviceArray<float> output(residual.size());
    std::copy(residual.begin(), residual.end(), output.data());
    simt::markInitialised(output.data(), output.size() * 4);
    abi::CudaFinishParams params = {deviceSums.data(), sumsStride, {}};
    params.linear.quantized = rows.rows();
    params.linear.bias = hasEpilogue ? deviceBias.data() : nullptr;
    params.linear.residual = hasEpilogue ? output.data() : nullptr;
    params.linear.output = output.data();
    params.linear.outputStride = params.linear.residualStride = stride;
    params.linear.numTokens = tokens;
    params.linear.k = k;
    params.linear.n = n;
    simt::LaunchReport report =
        launchKernel("library_finish", abi::rowGrid(tokens), params,
                     schedules(74)[hasEpilogue]);
    ASSERT_TRUE(report.isClean()) << report.text();
    const std::vector<float> got = output.copy();
    for (int t = 0; t < tokens; ++t) {
      const std::vector<std::uint8_t> row = rows.row(t);
      float scale = 0;
      std::memcpy(&scale, row.data() + abi::halfRowScaleOffset(k), 4);
      for (int i = 0; i < stride; ++i) {
        const std::size_t at = std::size_t(t * stride + i);
        float want = residual[at]; // columns of others
        if (i < n) {
          want = sums[std::size_t(t * sumsStride + i)] * scale;
          if (hasEpilogue) {
            want = want + bias[std::size_t(i)];
            want = want + residual[at];
          }
        }
        ASSERT_EQ(got[at], want) << "token " << t << " column " << i;
      }
    }
  }
}

} // namespace
} // namespace ingot::test
