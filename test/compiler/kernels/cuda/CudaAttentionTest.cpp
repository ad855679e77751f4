// rope_cache_write and attention on the emulator: the cache that the first writes is
// its twin's, and the second equals softmax in float64 within the bound that float16
// queries and probabilities allow, with the same bits however queries are cut into
// tiles and segments.
#include "test/compiler/kernels/cuda/AttentionCase.h"

#include <cmath>
#include <cstring>

namespace ingot::test {
namespace {

constexpr int kBlock = abi::kBlockTokens;

class CudaAttention : public testing::TestWithParam<Geometry> {};

TEST_P(CudaAttention, EqualsItsTwinHoweverItIsCut) {
  Random random(21);
  // Decoding at several lengths, across segments; a chunk; a short prompt.
  const std::vector<Part> parts = {{0, 1},   {70, 1},  {263, 1},
                                   {530, 1}, {250, 9}, {0, 37}};
  std::vector<simt::LaunchOptions> options = schedules(31);
  std::vector<std::pair<int, float>> cuts = {{0, 0.0f}, {90, 4.0f}};
  if (GetParam().headDim <= 64)
    cuts.insert(cuts.end(), {{0, 4.0f}, {300, 0.0f}});
  for (auto [window, softCap] : cuts) {
    const AttentionCase problem(random, GetParam(), parts, window, softCap);
    const std::vector<float> split = problem.run(Cut::Split, 1000, options[0]);
    problem.compare(split);
    EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 1000, options[1]), split));
    EXPECT_TRUE(sameBits(problem.run(Cut::Split, 1, options[2]), split));
    EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 3, options[3]), split));
  }
}

// With queries that float16 holds the bound is that of the probabilities alone; large
// scores leave one of them, tiny ones make them all alike.
TEST_P(CudaAttention, EqualsItsTwinCloselyForExactQueries) {
  Random random(24);
  for (float factor : {1.0f, 200.0f, 0.001f}) {
    AttentionCase problem(random, GetParam(), {{290, 2}, {90, 1}, {0, 5}}, 0,
                          0);
    problem.makeExact(factor);
    const std::vector<float> split = problem.run(Cut::Split, 1000, {});
    problem.compare(split);
    EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 1000, {}), split));
  }
}

// Queries beyond float16 are its largest numbers, of either sign.
TEST_P(CudaAttention, QueriesBeyondHalvesAreTheLargest) {
  Random random(25);
  AttentionCase problem(random, GetParam(), {{70, 1}, {0, 3}}, 0, 0);
  for (std::size_t i = 0; i < problem.query.size(); i += 5)
    problem.query[i] = i % 2 ? 1e6f : -1e6f;
  const std::vector<float> large = problem.run(Cut::Split, 1000, {});
  EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 1000, {}), large));
  for (float &x : problem.query)
    x = std::clamp(x, -65504.0f, 65504.0f);
  EXPECT_TRUE(sameBits(problem.run(Cut::Split, 1000, {}), large));
  for (float x : large)
    ASSERT_TRUE(std::isfinite(x));
}

// A window's cache may have given away what lies before it: nothing of that is used,
// were it no number at all.
TEST_P(CudaAttention, WhatLiesBeforeTheWindowMayBeAnything) {
  Random random(26);
  constexpr int kPosition = 263, kWindow = 90;
  const AttentionCase problem(random, GetParam(), {{kPosition, 1}}, kWindow, 0);
  const std::vector<float> want = problem.run(Cut::Split, 1000, {});
  const Geometry &geometry = GetParam();
  for (int at = 0; at <= kPosition - kWindow; ++at)
    for (int h = 0; h < geometry.kvHeads; ++h)
      for (bool isValue : {false, true}) {
        std::uint8_t *head = problem.cache.headAt(0, at, h, isValue);
        if (geometry.kv == "i8")
          reinterpret_cast<float *>(
              head + kBlock * geometry.headDim)[at % kBlock] = NAN;
        else // a NaN of float16 and of bfloat16
          std::memset(head + at % kBlock * geometry.headDim * 2, 0x7f,
                      std::size_t(geometry.headDim) * 2);
      }
  EXPECT_TRUE(sameBits(problem.run(Cut::Split, 1000, {}), want));
  EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 1000, {}), want));
  for (float x : want)
    ASSERT_TRUE(std::isfinite(x));
}

TEST_P(CudaAttention, EveryScheduleGivesTheSameBits) {
  Random random(22);
  const AttentionCase problem(random, GetParam(), {{65, 1}, {300, 2}}, 0, 0);
  std::vector<float> first;
  for (const simt::LaunchOptions &options : schedules(41))
    for (Cut cut : {Cut::Split, Cut::Wide}) {
      const std::vector<float> got = problem.run(cut, 1000, options);
      if (first.empty())
        first = got;
      EXPECT_TRUE(sameBits(got, first));
    }
}

std::string nameOf(const testing::TestParamInfo<Geometry> &of) {
  return of.param.name("x") + "_" + std::to_string(of.param.heads) + "of" +
         std::to_string(of.param.kvHeads);
}
INSTANTIATE_TEST_SUITE_P(
    Geometries, CudaAttention,
    testing::Values(Geometry{16, "f16", 4, 2}, Geometry{64, "f16", 3, 1},
                    Geometry{16, "f16", 19, 1}, Geometry{32, "f16", 6, 2},
                    Geometry{64, "bf16", 2, 2}, Geometry{64, "i8", 4, 1},
                    Geometry{24, "i8", 2, 1}, Geometry{128, "i8", 2, 2},
                    Geometry{80, "f16", 2, 1}, Geometry{128, "f16", 2, 1},
                    Geometry{256, "f16", 1, 1}),
    nameOf);

// ---- rope_cache_write ----
struct RopeOptions {
  int rotaryDim;
  bool hasNorm, isLayer, isRow, interleaved;
};

// Against the twin, whose cache has its keys transposed.
void testRopeWrite(Random &random, const Geometry &geometry,
                   const RopeOptions &with,
                   const simt::LaunchOptions &options) {
  const std::vector<Part> parts = {{30, 5}, {0, 1}, {63, 2}};
  const int numRows = 9; // the last is a padding row
  TestCache cache(random, geometry, parts);
  const int columns =
      (geometry.heads + 2 * geometry.kvHeads) * geometry.headDim;
  std::vector<float> qkv =
      uniforms(random, std::size_t(numRows * columns), -3, 3);
  qkv[5] = 1e5f; // beyond float16, in a query
  // The last head, of values, of the second row has nothing to divide by.
  std::fill_n(qkv.begin() + 2 * columns - geometry.headDim, geometry.headDim,
              0.0f);
  std::vector<float> table;
  for (int i = 0; i < numRows * with.rotaryDim; ++i)
    table.push_back(std::cos(float(i)));
  const bool perHead = with.isRow;
  const std::vector<float> qNorm = uniforms(
      random, std::size_t(geometry.headDim * (perHead ? geometry.heads : 1)),
      0.5f, 1.5f);
  const std::vector<float> kNorm = uniforms(
      random, std::size_t(geometry.headDim * (perHead ? geometry.kvHeads : 1)),
      0.5f, 1.5f);
  std::vector<abi::SequenceSpan> spans;
  std::vector<std::int32_t> tokenSequence;
  int row = 0;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    spans.push_back({row, parts[s].rows, parts[s].first, cache.offset(int(s))});
    for (int i = 0; i < parts[s].rows; ++i, ++row)
      tokenSequence.push_back(int(s));
  }
  tokenSequence.push_back(-1);
  DeviceArray<float> deviceQkv(qkv), deviceTable(table), deviceQ(qNorm),
      deviceK(kNorm);
  DeviceArray<float> query(
      std::size_t(numRows * geometry.heads * geometry.headDim));
  DeviceArray<abi::SequenceSpan> deviceSpans(spans);
  DeviceArray<std::int32_t> deviceSequence(tokenSequence);
  abi::RopeCacheWriteParams params = {};
  params.qkv = deviceQkv.data();
  params.table = deviceTable.data();
  params.qNorm = with.hasNorm ? deviceQ.data() : nullptr;
  params.kNorm = with.hasNorm ? deviceK.data() : nullptr;
  params.query = query.data();
  params.cache = cache.layer();
  params.blockTable = cache.table();
  params.sequences = deviceSpans.data();
  params.tokenSequence = deviceSequence.data();
  params.numSequences = int(spans.size());
  params.numTokens = numRows;
  params.heads = geometry.heads;
  params.kvHeads = geometry.kvHeads;
  params.headDim = geometry.headDim;
  params.rotaryDim = with.rotaryDim;
  params.normEps = 1e-5f;
  params.normKind = with.isLayer ? abi::HeadNorm::Layer : abi::HeadNorm::Rms;
  params.normOffset = with.interleaved ? 1.0f : 0.0f;
  params.normStride = perHead ? geometry.headDim : 0;
  params.normRows = with.isRow;
  params.interleaved = with.interleaved;
  simt::LaunchReport report =
      launchKernel(geometry.name("rope_cache_write"), abi::rowGrid(numRows),
                   params, options);
  EXPECT_TRUE(report.isClean()) << report.text();

  // The twin on a float32 cache, so that what was to be stored can be rounded here.
  const std::int64_t headBytes = abi::kvHeadBytes(geometry.headDim, 4);
  const std::int64_t valueOffset = geometry.kvHeads * headBytes;
  const std::size_t blocks = cache.size() / std::size_t(geometry.blockBytes());
  std::vector<std::uint8_t> wantCache(blocks * std::size_t(2 * valueOffset));
  std::vector<float> wantQuery(query.size());
  params.qkv = qkv.data();
  params.table = table.data();
  params.qNorm = with.hasNorm ? qNorm.data() : nullptr;
  params.kNorm = with.hasNorm ? kNorm.data() : nullptr;
  params.query = wantQuery.data();
  params.cache = {wantCache.data(), 2 * valueOffset, valueOffset};
  params.sequences = spans.data();
  params.tokenSequence = tokenSequence.data();
  params.numTokens = numRows - 1;
  reference::ropeCacheWrite(params, {0, numRows - 1, 0, 0, nullptr},
                            reference::CacheType::F32);
  const float bound = with.hasNorm ? 3e-6f : 0.0f;
  for (int i = 0; i < (numRows - 1) * geometry.heads * geometry.headDim; ++i)
    EXPECT_NEAR(query[std::size_t(i)], wantQuery[std::size_t(i)],
                bound * (1 + std::fabs(wantQuery[std::size_t(i)])))
        << i;
  std::size_t written = 0;
  for (std::size_t s = 0; s < parts.size(); ++s)
    for (int i = 0; i < parts[s].rows; ++i) {
      const int position = parts[s].first + i;
      const std::int64_t block =
          cache.table()[cache.offset(int(s)) + position / kBlock];
      for (int h = 0; h < geometry.kvHeads; ++h)
        for (bool isValue : {false, true}) {
          const auto *want = reinterpret_cast<const float *>(
              wantCache.data() + block * 2 * valueOffset +
              (isValue ? valueOffset : 0) + h * headBytes);
          std::vector<float> head;
          float largest = 0;
          for (int d = 0; d < geometry.headDim; ++d) {
            head.push_back(
                want[isValue ? position % kBlock * geometry.headDim + d
                             : d * kBlock + position % kBlock]);
            largest = std::max(largest, std::fabs(head.back()));
          }
          if (geometry.kv == "i8" && !with.hasNorm) {
            std::vector<std::int8_t> codes(head.size());
            const float headScale = reference::quantizeHead(
                head.data(), geometry.headDim, codes.data());
            const std::uint8_t *own =
                cache.headAt(int(s), position, h, isValue);
            const int token = position % kBlock;
            EXPECT_EQ(std::memcmp(own + token * geometry.headDim, codes.data(),
                                  codes.size()),
                      0);
            EXPECT_EQ(reinterpret_cast<const float *>(
                          own + kBlock * geometry.headDim)[token],
                      headScale);
          }
          for (int d = 0; d < geometry.headDim; ++d, ++written) {
            const float x = head[std::size_t(d)];
            // Half a step of the stored type, and what the norm allows; an int8 is
            // read as a float16.
            const float step =
                geometry.kv == "i8"
                    ? largest / 127 * 0.501f + std::fabs(x) * 0x1.02p-11f
                : geometry.kv == "f16" ? std::fabs(x) * 0x1p-11f + 0x1p-25f
                                       : std::fabs(x) * 0x1.02p-8f;
            EXPECT_NEAR(cache.at(int(s), position, h, isValue, d), x,
                        step + bound * (1 + largest));
          }
        }
    }
  EXPECT_EQ(written, std::size_t(8 * 2 * geometry.kvHeads * geometry.headDim));
}

TEST_P(CudaAttention, CacheWriteEqualsItsTwin) {
  Random random(23);
  const int dim = GetParam().headDim;
  std::size_t turn = 0;
  for (const RopeOptions &with : {RopeOptions{dim, false, false, false, false},
                                  {dim / 2, true, false, false, false},
                                  {dim, true, false, true, true},
                                  {dim, true, true, false, false},
                                  {0, false, false, false, false}})
    testRopeWrite(random, GetParam(), with,
                  schedules(51)[turn++ % schedules().size()]);
}

} // namespace
} // namespace ingot::test
