// sample on the emulator chooses what the sampler of the runtime chooses, from the same
// seeds; and its noise is the runtime's but for the last bits of two logarithms.
#include "compiler/kernels/Power.h"
#include "runtime/sample/Noise.h"
#include "runtime/sample/Sampler.h"
#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include <cmath>
#include <limits>

namespace ingot::test {
namespace {

std::vector<std::int32_t> sampleRows(const std::vector<float> &logits,
                                     const std::vector<abi::SampleRow> &rows,
                                     const simt::LaunchOptions &options) {
  const int count = int(rows.size());
  DeviceArray<float> deviceLogits(logits);
  DeviceArray<abi::SampleRow> deviceRows(rows);
  DeviceArray<std::int32_t> tokens(rows.size());
  const abi::CudaSampleParams params{deviceLogits.data(), deviceRows.data(),
                                     tokens.data(), count,
                                     int(logits.size()) / count};
  simt::LaunchReport report =
      launchKernel("sample", abi::rowGrid(count), params, options);
  EXPECT_TRUE(report.isClean()) << report.text();
  return tokens.copy();
}

TEST(CudaSample, ChoosesWhatTheSamplerChooses) {
  Random random(91);
  std::size_t turn = 0;
  for (int vocab : {1, 5, 256, 1000})
    for (double temperature : {0.0, 0.3, 1.0, 4.0}) {
      constexpr int kRows = 12;
      const std::vector<float> logits =
          uniforms(random, std::size_t(kRows * vocab), -9, 9);
      std::vector<abi::SampleRow> rows;
      for (int row = 0; row < kRows; ++row)
        rows.push_back(
            {random(), row * 1000, temperature == 0 ? 0.0 : 1.0 / temperature});
      const auto tokens = sampleRows(logits, rows, schedules(92)[turn++ % 4]);
      Sampler sampler(vocab);
      int mostLikely = 0;
      for (int row = 0; row < kRows; ++row) {
        SamplingParams params;
        params.temperature = temperature;
        const SamplerState state(params, rows[std::size_t(row)].seed);
        const std::span<const float> own(logits.data() + row * vocab,
                                         std::size_t(vocab));
        auto want = sampler.choose(own, state, rows[std::size_t(row)].position);
        ASSERT_TRUE(want) << want.status().message();
        EXPECT_EQ(tokens[std::size_t(row)], *want)
            << vocab << " tokens, temperature " << temperature;
        mostLikely += *want == int(std::max_element(own.begin(), own.end()) -
                                   own.begin());
      }
      if (vocab >= 256 && temperature == 4.0)
        EXPECT_LT(mostLikely, kRows / 2) << "there is no noise";
    }
}

// Thousands of tokens that are unlikely each, and together likelier than the first: no
// bound may rule the chosen one out.
TEST(CudaSample, UnlikelyTokensAreChosenToo) {
  constexpr int kVocab = 4000, kRows = 16;
  std::vector<float> logits(std::size_t(kVocab * kRows), -8.0f);
  std::vector<abi::SampleRow> rows;
  for (int row = 0; row < kRows; ++row) {
    logits[std::size_t(row * kVocab + 17)] = 0;
    rows.push_back({std::uint64_t(row + 1), row, 1.0});
  }
  const auto tokens = sampleRows(logits, rows, {});
  Sampler sampler(kVocab);
  int others = 0;
  for (int row = 0; row < kRows; ++row) {
    SamplingParams params;
    params.temperature = 1;
    const SamplerState state(params, rows[std::size_t(row)].seed);
    auto want =
        sampler.choose({logits.data() + row * kVocab, std::size_t(kVocab)},
                       state, rows[std::size_t(row)].position);
    ASSERT_TRUE(want) << want.status().message();
    EXPECT_EQ(tokens[std::size_t(row)], *want) << "row " << row;
    others += *want != 17;
  }
  EXPECT_GT(others, 3);
}

// Ties, infinities and NaN as in the sampler.
TEST(CudaSample, TiesAndLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits;
  for (const std::vector<float> &row : std::vector<std::vector<float>>{
           {1, 3, 3, 0},
           {1, kInfinity, 0, 2},
           {1, 2, std::nanf(""), 4},
           {-kInfinity, -kInfinity, 5, -kInfinity},
           {-kInfinity, -kInfinity, -kInfinity, -kInfinity}})
    logits.insert(logits.end(), row.begin(), row.end());
  const std::vector<abi::SampleRow> rows = {
      {1, 0, 0.0}, {1, 0, 1.0}, {1, 0, 1.0}, {1, 0, 0.01}, {1, 0, 1.0}};
  for (const simt::LaunchOptions &options : schedules(93)) {
    const std::vector<std::int32_t> want = {1, 1, -1, 2, -1};
    EXPECT_EQ(sampleRows(logits, rows, options), want);
  }
}

TEST(CudaSample, NoiseIsTheRuntimesButForTheLastBits) {
  std::mt19937_64 random(94);
  for (int i = 0; i < 200000; ++i) {
    // Both ends too.
    const std::uint64_t bits = i == 0   ? 0
                               : i == 1 ? ~std::uint64_t(0)
                                        : random() >> (i % 50);
    const double uniform = noiseUniform(bits);
    const double own = -kernels::logLaw(-kernels::logLaw(1.0 - uniform));
    ASSERT_NEAR(own, gumbel(uniform), 1e-14 * std::max(1.0, std::fabs(own)));
  }
}

} // namespace
} // namespace ingot::test
