// rope_cache_write and attention on the emulator: the cache that the first writes is
// its twin's, and the second equals softmax in float64 within the bound that float16
// queries and probabilities allow, with the same bits however queries are cut into
// tiles and segments.
#include "test/compiler/kernels/cuda/CudaFixtures.h"
#include "test/simt/Half.h"

#include <bit>
#include <cmath>

namespace ingot::test {
namespace {

using simt::floatToHalf;
using simt::halfToFloat;

constexpr int kBlock = abi::kBlockTokens;

struct Geometry {
  int headDim;
  std::string kv; // "f16", "bf16", "i8"
  int heads, kvHeads;

  int elementBytes() const { return kv == "i8" ? 1 : 2; }
  std::int64_t headBytes() const {
    return abi::kvHeadBytes(headDim, elementBytes());
  }
  std::int64_t valueOffset() const { return kvHeads * headBytes(); }
  std::int64_t blockBytes() const { return 2 * valueOffset(); }
  std::string name(const std::string &op) const {
    return op + "_h" + std::to_string(headDim) + "_" + kv;
  }
};

// Positions [first, first + rows) of a sequence are rows of the step; all before them
// are in the cache.
struct Part {
  int first, rows;
};

// A cache in blocks of a shuffled order; what no sequence holds was never written.
class TestCache {
public:
  TestCache(Random &random, const Geometry &geometry,
            const std::vector<Part> &parts)
      : geometry_(geometry) {
    int blocks = 0;
    for (const Part &part : parts) {
      offsets_.push_back(blocks);
      blocks += (part.first + part.rows + kBlock - 1) / kBlock;
    }
    for (int i = 0; i < blocks; ++i)
      table_.push_back(i);
    std::shuffle(table_.begin(), table_.end(), random);
    bytes_ =
        DeviceArray<std::uint8_t>(std::size_t(blocks * geometry.blockBytes()));
    deviceTable_ = DeviceArray<std::int32_t>(table_);
  }

  // Writes random keys and values of the positions of a part, and before.
  void fill(Random &random, int sequence, int positions) {
    for (int at = 0; at < positions; ++at)
      for (int h = 0; h < geometry_.kvHeads; ++h)
        for (bool isValue : {false, true}) {
          std::uint8_t *head = headAt(sequence, at, h, isValue);
          const int token = at % kBlock;
          for (int d = 0; d < geometry_.headDim; ++d) {
            const float x = uniform(random, -2, 2);
            if (geometry_.kv == "i8") {
              head[token * geometry_.headDim + d] =
                  std::uint8_t(below(random, 255) - 127);
              simt::markInitialised(head + token * geometry_.headDim + d, 1);
              continue;
            }
            auto *halves = reinterpret_cast<std::uint16_t *>(head) +
                           token * geometry_.headDim + d;
            *halves =
                geometry_.kv == "f16"
                    ? floatToHalf(x)
                    : std::uint16_t(std::bit_cast<std::uint32_t>(x) >> 16);
            simt::markInitialised(halves, 2);
          }
          if (geometry_.kv == "i8") {
            auto *scale =
                reinterpret_cast<float *>(head + kBlock * geometry_.headDim) +
                token;
            *scale = uniform(random, 0.005f, 0.02f);
            simt::markInitialised(scale, 4);
          }
        }
  }

  // As the law reads it: bf16 and int8 elements are rounded to float16.
  float at(int sequence, int position, int h, bool isValue, int d) const {
    const std::uint8_t *head = headAt(sequence, position, h, isValue);
    const int i = position % kBlock * geometry_.headDim + d;
    if (geometry_.kv == "i8")
      return halfToFloat(floatToHalf(
          float(reinterpret_cast<const std::int8_t *>(head)[i]) *
          reinterpret_cast<const float *>(
              head + kBlock * geometry_.headDim)[position % kBlock]));
    const std::uint16_t bits = reinterpret_cast<const std::uint16_t *>(head)[i];
    return geometry_.kv == "f16" ? halfToFloat(bits)
                                 : halfToFloat(floatToHalf(std::bit_cast<float>(
                                       std::uint32_t(bits) << 16)));
  }

  abi::KvLayer layer() const {
    return {bytes_.data(), geometry_.blockBytes(), geometry_.valueOffset()};
  }
  const std::int32_t *table() const { return deviceTable_.data(); }
  int offset(int sequence) const { return offsets_[std::size_t(sequence)]; }
  const std::uint8_t *data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  std::uint8_t *headAt(int sequence, int position, int h, bool isValue) const {
    const int block = table_[std::size_t(offset(sequence) + position / kBlock)];
    return bytes_.data() + block * geometry_.blockBytes() +
           (isValue ? geometry_.valueOffset() : 0) + h * geometry_.headBytes();
  }

private:
  Geometry geometry_;
  std::vector<int> offsets_;
  std::vector<std::int32_t> table_;
  DeviceArray<std::uint8_t> bytes_{0};
  DeviceArray<std::int32_t> deviceTable_{0};
};

enum class Cut { Split, Wide };

struct AttentionCase {
  AttentionCase(Random &random, const Geometry &geometry,
                const std::vector<Part> &parts, int window, float softCap)
      : geometry(geometry), parts(parts), window(window), softCap(softCap),
        cache(random, geometry, parts) {
    for (std::size_t s = 0; s < parts.size(); ++s) {
      cache.fill(random, int(s), parts[s].first + parts[s].rows);
      numRows += parts[s].rows;
    }
    query = uniforms(random, std::size_t(numRows * width()), -2, 2);
    scale = 1.0f / std::sqrt(float(geometry.headDim));
  }
  int width() const { return geometry.heads * geometry.headDim; }

  // The result with tiles of at most `queries`; a padding tile and row at the end.
  std::vector<float> run(Cut cut, int queries,
                         const simt::LaunchOptions &options,
                         HalfRows *halves = nullptr) const {
    std::vector<abi::AttentionTile> tiles;
    std::vector<abi::TokenSlots> slots;
    int numSlots = 0, maxSplits = 1, row = 0;
    queries = std::min(queries,
                       cut == Cut::Split
                           ? abi::splitQueries(geometry.heads, geometry.kvHeads)
                           : abi::wideQueries(geometry.heads, geometry.kvHeads,
                                              geometry.headDim));
    for (std::size_t s = 0; s < parts.size(); ++s)
      for (int q = 0; q < parts[s].rows; q += queries) {
        abi::AttentionTile tile = {};
        tile.firstRow = row;
        tile.numQueries = std::min(queries, parts[s].rows - q);
        tile.firstPosition = parts[s].first + q;
        tile.blockTableOffset = cache.offset(int(s));
        tile.firstSlot = numSlots;
        tile.firstSplit = abi::firstSplitOf(tile.firstPosition, window);
        tile.numSplits =
            abi::numSplitsOf(tile.firstPosition, tile.numQueries, window);
        for (int i = 0; i < tile.numQueries; ++i) {
          slots.push_back(cut == Cut::Split
                              ? abi::TokenSlots{numSlots, tile.numSplits}
                              : abi::TokenSlots{0, 0});
          numSlots += tile.numSplits;
        }
        maxSplits = std::max(maxSplits, tile.numSplits);
        row += tile.numQueries;
        tiles.push_back(tile);
      }
    tiles.push_back({});
    slots.push_back({0, -1});

    DeviceArray<float> deviceQuery(query);
    DeviceArray<float> output(std::size_t((numRows + 1) * width()));
    DeviceArray<float> values(std::size_t(numSlots * width()));
    DeviceArray<float> stats(std::size_t(numSlots * geometry.heads * 2));
    DeviceArray<abi::AttentionTile> deviceTiles(tiles);
    DeviceArray<abi::TokenSlots> deviceSlots(slots);
    const abi::CudaAttentionParams params{deviceQuery.data(),
                                          cache.layer(),
                                          output.data(),
                                          values.data(),
                                          stats.data(),
                                          deviceTiles.data(),
                                          cache.table(),
                                          int(tiles.size()),
                                          geometry.heads,
                                          geometry.kvHeads,
                                          window,
                                          scale,
                                          softCap};
    simt::LaunchReport report =
        cut == Cut::Split
            ? launchKernel(geometry.name("attention_split"),
                           abi::splitGrid(int(tiles.size()), maxSplits,
                                          geometry.heads, geometry.kvHeads),
                           params, options)
            : launchKernel(geometry.name("attention"),
                           abi::attentionGrid(int(tiles.size()), geometry.heads,
                                              geometry.kvHeads),
                           params, options);
    EXPECT_TRUE(report.isClean()) << report.text();
    HalfRows own(numRows + 1, width());
    const abi::CudaAttentionMergeParams merge{
        output.data(),  own.rows(),         values.data(),
        stats.data(),   deviceSlots.data(), numRows + 1,
        geometry.heads, geometry.headDim,   0};
    const abi::KernelGeometry shape = abi::mergeGeometry(geometry.heads);
    report = launchKernel("attention_merge", abi::rowGrid(numRows + 1), merge,
                          options, &shape);
    EXPECT_TRUE(report.isClean()) << report.text();
    std::vector<float> result = output.copy();
    const HalfRows want = HalfRows::of(result, width());
    for (int r = 0; r <= numRows; ++r)
      EXPECT_EQ(own.row(r), want.row(r)) << "half row " << r;
    for (int k = 0; k < width(); ++k)
      EXPECT_EQ(result[std::size_t(numRows * width() + k)], 0.0f);
    result.resize(std::size_t(numRows * width()));
    if (halves)
      *halves = std::move(own);
    return result;
  }

  // Against softmax in float64. A probability may be off by e = the error of its
  // score, 2^-11 of the sum of |q k|, and 2^-11 of its own rounding; the result by
  // 2 e of the largest value. Probabilities below 2^-14 are rounded in steps of 2^-24.
  void compare(const std::vector<float> &got) const {
    int row = 0;
    for (std::size_t s = 0; s < parts.size(); ++s)
      for (int q = 0; q < parts[s].rows; ++q, ++row)
        for (int h = 0; h < geometry.heads; ++h)
          compareHead(got, int(s), row, parts[s].first + q, h);
  }
  void compareHead(const std::vector<float> &got, int sequence, int row,
                   int position, int h) const {
    const int kvHead = h / (geometry.heads / geometry.kvHeads);
    const int first = window > 0 ? std::max(position - window + 1, 0) : 0;
    const std::size_t at =
        std::size_t((row * geometry.heads + h) * geometry.headDim);
    std::vector<double> scores;
    double most = -INFINITY, scoreError = 0;
    for (int j = first; j <= position; ++j) {
      double score = 0, size = 0;
      for (int d = 0; d < geometry.headDim; ++d) {
        const double product = double(query[at + std::size_t(d)]) *
                               cache.at(sequence, j, kvHead, false, d);
        score += product;
        size += std::fabs(product);
      }
      score *= scale;
      scoreError = std::max(scoreError, size * scale * 0x1.02p-11);
      if (softCap != 0)
        score = softCap * std::tanh(score / softCap);
      scores.push_back(score);
      most = std::max(most, score);
    }
    double sum = 0;
    for (double &score : scores)
      sum += score = std::exp(score - most);
    const double error =
        2 * (scoreError + 0x1p-11 + 0x1p-20) + double(scores.size()) * 0x1p-24;
    for (int d = 0; d < geometry.headDim; ++d) {
      double want = 0, largest = 0;
      for (int j = first; j <= position; ++j) {
        const double v = cache.at(sequence, j, kvHead, true, d);
        want += scores[std::size_t(j - first)] / sum * v;
        largest = std::max(largest, std::fabs(v));
      }
      EXPECT_NEAR(got[at + std::size_t(d)], want, error * largest)
          << "row " << row << " head " << h << " element " << d;
    }
  }

  Geometry geometry;
  std::vector<Part> parts;
  int window;
  float softCap;
  TestCache cache;
  std::vector<float> query;
  int numRows = 0;
  float scale = 0;
};

class CudaAttention : public testing::TestWithParam<Geometry> {};

TEST_P(CudaAttention, EqualsItsTwinHoweverItIsCut) {
  Random random(21);
  // Decoding at several lengths, across segments; a chunk; a short prompt.
  const std::vector<Part> parts = {{0, 1},   {70, 1},  {263, 1},
                                   {530, 1}, {250, 9}, {0, 37}};
  std::vector<simt::LaunchOptions> options = schedules(31);
  for (auto [window, softCap] :
       {std::pair{0, 0.0f}, {0, 4.0f}, {90, 0.0f}, {300, 0.0f}}) {
    const AttentionCase problem(random, GetParam(), parts, window, softCap);
    const std::vector<float> split = problem.run(Cut::Split, 1000, options[0]);
    problem.compare(split);
    EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 1000, options[1]), split));
    EXPECT_TRUE(sameBits(problem.run(Cut::Split, 1, options[2]), split));
    EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 3, options[3]), split));
  }
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
INSTANTIATE_TEST_SUITE_P(Geometries, CudaAttention,
                         testing::Values(Geometry{16, "f16", 4, 2},
                                         Geometry{64, "f16", 3, 1},
                                         Geometry{16, "f16", 19, 1}),
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
          for (int d = 0; d < geometry.headDim; ++d, ++written) {
            const float x = head[std::size_t(d)];
            // Half a step of the stored type, and what the norm allows.
            const float step = geometry.kv == "i8" ? largest / 127 * 0.51f
                               : geometry.kv == "f16"
                                   ? std::fabs(x) * 0x1p-11f + 0x1p-25f
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
