// A problem for attention: a paged cache, queries of several sequences, however they
// are cut into tiles and segments, and the twin.
#pragma once

#include "test/compiler/kernels/cuda/CudaFixtures.h"
#include "test/simt/Half.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ingot::test {

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
      blocks +=
          (part.first + part.rows + abi::kBlockTokens - 1) / abi::kBlockTokens;
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
          const int token = at % abi::kBlockTokens;
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
                    ? simt::floatToHalf(x)
                    : std::uint16_t(std::bit_cast<std::uint32_t>(x) >> 16);
            simt::markInitialised(halves, 2);
          }
          if (geometry_.kv == "i8") {
            auto *scale = reinterpret_cast<float *>(
                              head + abi::kBlockTokens * geometry_.headDim) +
                          token;
            *scale = uniform(random, 0.005f, 0.02f);
            simt::markInitialised(scale, 4);
          }
        }
  }

  // As the law reads it: bf16 and int8 elements are rounded to float16.
  float at(int sequence, int position, int h, bool isValue, int d) const {
    const std::uint8_t *head = headAt(sequence, position, h, isValue);
    const int i = position % abi::kBlockTokens * geometry_.headDim + d;
    if (geometry_.kv == "i8")
      return simt::halfToFloat(simt::floatToHalf(
          float(reinterpret_cast<const std::int8_t *>(head)[i]) *
          reinterpret_cast<const float *>(
              head + abi::kBlockTokens *
                         geometry_.headDim)[position % abi::kBlockTokens]));
    const std::uint16_t bits = reinterpret_cast<const std::uint16_t *>(head)[i];
    return geometry_.kv == "f16"
               ? simt::halfToFloat(bits)
               : simt::halfToFloat(simt::floatToHalf(
                     std::bit_cast<float>(std::uint32_t(bits) << 16)));
  }

  abi::KvLayer layer() const {
    return {bytes_.data(), geometry_.blockBytes(), geometry_.valueOffset()};
  }
  const std::int32_t *table() const { return deviceTable_.data(); }
  int offset(int sequence) const { return offsets_[std::size_t(sequence)]; }
  const std::uint8_t *data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  std::uint8_t *headAt(int sequence, int position, int h, bool isValue) const {
    const int block =
        table_[std::size_t(offset(sequence) + position / abi::kBlockTokens)];
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

  // The result with tiles of at most `queries`; a padding tile and row at the end. The
  // launch must be clean, unless its report is asked for.
  std::vector<float> run(Cut cut, int queries,
                         const simt::LaunchOptions &options,
                         simt::LaunchReport *kept = nullptr) const {
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
    if (kept)
      *kept = std::move(report);
    else
      EXPECT_TRUE(report.isClean()) << report.text();
    HalfRows own(numRows + 1, width());
    const abi::CudaAttentionMergeParams merge{
        output.data(),  own.rows(),         values.data(),
        stats.data(),   deviceSlots.data(), numRows + 1,
        geometry.heads, geometry.headDim,   0};
    const abi::KernelGeometry shape = abi::mergeGeometry(geometry.heads);
    simt::LaunchOptions mergeOptions = options;
    mergeOptions.plant = {};
    report = launchKernel("attention_merge", abi::rowGrid(numRows + 1), merge,
                          mergeOptions, &shape);
    std::vector<float> result = output.copy();
    if (kept) {
      result.resize(std::size_t(numRows * width()));
      return result;
    }
    EXPECT_TRUE(report.isClean()) << report.text();
    const HalfRows want = HalfRows::of(result, width());
    for (int r = 0; r <= numRows; ++r)
      EXPECT_EQ(own.row(r), want.row(r)) << "half row " << r;
    for (int k = 0; k < width(); ++k)
      EXPECT_EQ(result[std::size_t(numRows * width() + k)], 0.0f);
    result.resize(std::size_t(numRows * width()));

    return result;
  }

  // Queries times `factor` that float16 holds: only sums and probabilities round.
  void makeExact(float factor) {
    isExact = true;
    for (float &x : query)
      x = simt::halfToFloat(simt::floatToHalf(x * factor));
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
      scoreError =
          std::max(scoreError, size * scale * (isExact ? 0x1p-21 : 0x1.02p-11));
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
  bool isExact = false;
};

} // namespace ingot::test
