// Groups that rounding could trip over, for every method that chooses codes: zeros,
// numbers below what a float16 scale can hold, an outlier, numbers that are none;
// and codes whose zero points others have stored, through each method and back.
#include "compiler/calibrate/AwqScales.h"
#include "compiler/calibrate/Gptq.h"
#include "compiler/calibrate/LeastSquares.h"
#include "compiler/package/HalfFloat.h"
#include "compiler/stored/StoredRows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace ingot;
using ::testing::HasSubstr;

namespace {

enum class Method { Rtn, Gptq, Awq };
using Param = std::tuple<Method, std::int64_t, std::int64_t>; // bits, group

constexpr std::int64_t kRows = 5, kColumns = 160; // 128 leaves a short group

std::vector<float> moments() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> sums(kColumns * kColumns, 0.0f);
  std::vector<float> row(kColumns);
  for (int t = 0; t < 400; ++t) {
    for (std::int64_t k = 0; k < kColumns; ++k)
      row[std::size_t(k)] =
          (k ? 0.5f * row[std::size_t(k - 1)] : 0.0f) + normal(random);
    for (std::int64_t i = 0; i < kColumns; ++i)
      for (std::int64_t j = 0; j < kColumns; ++j)
        sums[std::size_t(i * kColumns + j)] +=
            row[std::size_t(i)] * row[std::size_t(j)] / 400.0f;
  }
  return sums;
}

class HardGroupsTest : public ::testing::TestWithParam<Param> {
protected:
  Result<GroupCodes> run(const std::vector<float> &weights) const {
    static const std::vector<float> inputs = moments();
    std::int64_t rows = std::ssize(weights) / kColumns;
    switch (std::get<0>(GetParam())) {
    case Method::Rtn:
      return roundToNearest(weights, rows, kColumns, shape());
    case Method::Gptq:
      return gptq(weights, rows, kColumns, inputs, shape(), {0.01, 2});
    case Method::Awq:
      break;
    }
    return roundToInputs(weights, rows, kColumns, shape(), inputs, 2);
  }
  CodeShape shape() const {
    return {std::get<1>(GetParam()), std::get<2>(GetParam())};
  }
  std::int64_t groups() const { return shape().groups(kColumns); }
  // Whether a column's error may move to others.
  bool propagates() const { return std::get<0>(GetParam()) == Method::Gptq; }

  static std::vector<float> ordinary() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 0.05f);
    std::vector<float> weights(kRows * kColumns);
    for (float &value : weights)
      value = normal(random);
    return weights;
  }
  // `ordinary`, with the second group of row 2 made by `value` of its column.
  template <typename Function>
  std::vector<float> withGroup(Function &&value) const {
    std::vector<float> weights = ordinary();
    for (std::int64_t k = begin(); k < end(); ++k)
      weights[std::size_t(2 * kColumns + k)] = value(k - begin());
    return weights;
  }
  std::int64_t begin() const { return shape().group; }
  std::int64_t end() const { return std::min(2 * shape().group, kColumns); }

  // The numbers of the group, with what must hold of all: scales that divide,
  // codes in range, finite values.
  std::vector<float> groupOf(const GroupCodes &codes) const {
    for (std::uint16_t scale : codes.scales) {
      float value = package::halfToFloat(scale);
      EXPECT_TRUE(std::isfinite(value) && value != 0) << value;
    }
    for (std::uint8_t code : codes.codes) {
      EXPECT_GE(code, shape().bits == 8 ? 1 : 0);
      EXPECT_LE(code, shape().bits == 8 ? 255 : 15);
    }
    std::vector<float> row(kColumns);
    codes.decode(2, row);
    for (float value : row)
      EXPECT_TRUE(std::isfinite(value));
    return {row.begin() + begin(), row.begin() + end()};
  }
};

// Zeros are the code that means zero, with the scale 1. What GPTQ takes off earlier
// columns would land here, and it lands in codes as everywhere.
TEST_P(HardGroupsTest, AllZero) {
  auto codes = run(std::vector<float>(kRows * kColumns, 0.0f));
  ASSERT_TRUE(codes) << codes.status().message();
  EXPECT_EQ(codes->underflowedGroups, 0);
  for (std::uint16_t scale : codes->scales)
    EXPECT_EQ(scale, 0x3c00);
  for (std::uint8_t code : codes->codes)
    EXPECT_EQ(code, shape().offset());
  for (float value : groupOf(*codes))
    EXPECT_EQ(value, 0.0f);
  auto among = run(withGroup([](std::int64_t) { return 0.0f; }));
  ASSERT_TRUE(among);
  EXPECT_EQ(among->underflowedGroups, 0);
  for (float value : groupOf(*among)) {
    if (!propagates())
      EXPECT_EQ(value, 0.0f);
  }
}

// Numbers of which no float16 is a scale become zero and are counted.
TEST_P(HardGroupsTest, BelowEveryScale) {
  for (float size : {1e-38f, 1e-42f, 1e-12f}) {
    auto weights = std::vector<float>(kRows * kColumns);
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = i % 2 ? size : -size;
    auto codes = run(weights);
    ASSERT_TRUE(codes) << codes.status().message();
    EXPECT_EQ(codes->underflowedGroups, kRows * groups());
    for (float value : groupOf(*codes))
      EXPECT_EQ(value, 0.0f);
    if (propagates())
      continue;
    auto among = run(withGroup([&](std::int64_t) { return size; }));
    ASSERT_TRUE(among);
    EXPECT_EQ(among->underflowedGroups, 1);
    for (float value : groupOf(*among))
      EXPECT_EQ(value, 0.0f);
  }
}

// Numbers at the edge: the scale is a coarse float16 or none; the group is never
// further off than if it were zero, and is counted if it is.
TEST_P(HardGroupsTest, AtTheEdgeOfFloat16) {
  for (float size : {1e-6f, 4e-7f, 1e-7f, 1e-5f}) {
    std::vector<float> weights(kRows * kColumns);
    std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-size, size);
    for (float &value : weights)
      value = uniform(random);
    auto codes = run(weights);
    ASSERT_TRUE(codes) << codes.status().message();
    double error = 0, all = 0;
    bool isZero = true;
    std::vector<float> group = groupOf(*codes);
    for (std::size_t i = 0; i < group.size(); ++i) {
      float stored = weights[std::size_t(2 * kColumns + begin()) + i];
      error += std::pow(double(group[i]) - stored, 2);
      all += double(stored) * stored;
      isZero = isZero && group[i] == 0.0f;
    }
    EXPECT_LE(error, (propagates() ? 1.5 : 1.0) * all) << size;
    std::int64_t underflowed = codes->underflowedGroups;
    EXPECT_GE(underflowed, 0);
    EXPECT_LE(underflowed, kRows * groups());
    if (underflowed == kRows * groups())
      EXPECT_TRUE(isZero);
    if (isZero)
      EXPECT_GT(underflowed, 0);
  }
}

// One number ten million times the others is kept; they become zero.
TEST_P(HardGroupsTest, Outlier) {
  for (float outlier : {1e4f, -1e4f})
    for (std::int64_t place : {std::int64_t(0), end() - begin() - 1}) {
      auto codes = run(withGroup([&](std::int64_t i) {
        return i == place ? outlier : i % 2 ? 1e-3f : -1e-3f;
      }));
      ASSERT_TRUE(codes) << codes.status().message();
      std::vector<float> group = groupOf(*codes);
      EXPECT_NEAR(group[std::size_t(place)], outlier, 0.07 * 1e4);
      EXPECT_EQ(codes->underflowedGroups, 0);
      // Rows beside it do not see it, nor do groups beside it, but for the errors
      // that a method may move to them.
      auto without = run(ordinary());
      ASSERT_TRUE(without);
      std::vector<float> row(kColumns), other(kColumns);
      codes->decode(3, row);
      without->decode(3, other);
      EXPECT_EQ(row, other);
      codes->decode(2, row);
      without->decode(2, other);
      if (!propagates())
        EXPECT_TRUE(
            std::equal(row.begin(), row.begin() + begin(), other.begin()));
      for (std::int64_t g = 0; g < groups(); ++g)
        if (g != 1)
          EXPECT_EQ(codes->scales[std::size_t(2 * groups() + g)],
                    without->scales[std::size_t(2 * groups() + g)])
              << "group " << g;
    }
}

// A scale that float16 cannot hold is refused with its place.
TEST_P(HardGroupsTest, BeyondFloat16) {
  auto codes = run(withGroup([](std::int64_t i) { return i ? 0.0f : 1e9f; }));
  ASSERT_FALSE(codes);
  EXPECT_THAT(codes.status().message(),
              HasSubstr("row 2 column " + std::to_string(begin()) +
                        ": a group needs a scale beyond float16"));
}

// What is no number is refused with its place, wherever it stands, before any code
// is chosen; of several the first counts.
TEST_P(HardGroupsTest, NotFinite) {
  for (float bad : {NAN, INFINITY, -INFINITY})
    for (std::int64_t column :
         {std::int64_t(0), std::int64_t(77), kColumns - 1})
      for (std::int64_t row : {std::int64_t(0), kRows - 1}) {
        std::vector<float> weights = ordinary();
        weights[std::size_t(row * kColumns + column)] = bad;
        weights.back() = bad;
        auto codes = run(weights);
        ASSERT_FALSE(codes);
        EXPECT_EQ(codes.status().message(),
                  "row " + std::to_string(row) + " column " +
                      std::to_string(column) +
                      ": expected a finite weight, found " +
                      (std::isnan(bad) ? "NaN" : "infinity"));
      }
}

// What a method has chosen is what the file of codes says: the packed words mean
// the same numbers, the lowest and the highest code included.
TEST_P(HardGroupsTest, PackedCodesMeanTheSame) {
  auto codes = run(withGroup([&](std::int64_t i) { return float(i % 3 - 1); }));
  ASSERT_TRUE(codes);
  std::uint8_t most = shape().bits == 8 ? 255 : 15;
  codes->codes[0] = shape().bits == 8 ? 1 : 0;
  codes->codes[1] = most;
  codes->codes[2] = std::uint8_t(shape().offset());
  std::vector<std::uint32_t> words = codes->packed();
  auto bytes = [](const auto &values) {
    return std::span(reinterpret_cast<const std::uint8_t *>(values.data()),
                     values.size() * sizeof(values[0]));
  };
  StoredTensor tensor;
  tensor.name = "w";
  tensor.form = StoredForm::Codes;
  tensor.bytes = bytes(words);
  tensor.rows = kRows;
  tensor.columns = kColumns;
  StoredCodes details;
  details.packing = CodePacking::Compressed;
  details.bits = shape().bits;
  details.group = shape().group;
  details.scales.type = PlaneType::F16;
  details.scales.sizeBytes = codes->scales.size() * 2;
  details.scales.bytes = bytes(codes->scales);
  tensor.details.codes = details;
  auto rows = StoredRows::create(tensor);
  ASSERT_TRUE(rows) << rows.status().message();
  std::vector<float> decoded(kColumns), widened(kColumns);
  for (std::int64_t r = 0; r < kRows; ++r) {
    codes->decode(r, decoded);
    rows->widen(std::uint64_t(r), widened);
    EXPECT_EQ(decoded, widened) << r;
  }
  codes->decode(0, decoded);
  float scale = package::halfToFloat(codes->scales[0]);
  EXPECT_EQ(decoded[0], scale * (shape().bits == 8 ? -127.0f : -8.0f));
  EXPECT_EQ(decoded[1], scale * (shape().bits == 8 ? 127.0f : 7.0f));
  EXPECT_EQ(decoded[2], 0.0f);
}

std::string nameOf(const ::testing::TestParamInfo<Param> &info) {
  const char *methods[] = {"rtn", "gptq", "awq"};
  return std::string(methods[int(std::get<0>(info.param))]) + "_int" +
         std::to_string(std::get<1>(info.param)) + "_g" +
         std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    Methods, HardGroupsTest,
    ::testing::Combine(::testing::Values(Method::Rtn, Method::Gptq,
                                         Method::Awq),
                       ::testing::Values(std::int64_t(4), std::int64_t(8)),
                       ::testing::Values(std::int64_t(32), std::int64_t(64),
                                         std::int64_t(128))),
    nameOf);

// The search for AWQ's scales and the fit of what pruning leaves refuse the same.
TEST(NotFiniteTest, SearchAndFit) {
  std::vector<float> weights(4 * 8, 1.0f), sums(8 * 8, 0.0f), sizes(8, 1.0f);
  for (std::size_t i = 0; i < 8; ++i)
    sums[i * 8 + i] = 1.0f;
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> broken = weights;
    broken[2 * 8 + 5] = bad;
    std::string word = std::isnan(bad) ? "NaN" : "infinity";
    AwqWeight good{weights, 4, {4, 32}}, one{broken, 4, {4, 32}};
    auto search = searchAwqScales(std::vector{good, one}, sums, sizes);
    ASSERT_FALSE(search);
    EXPECT_EQ(search.status().message(),
              "row 2 column 5: expected a finite weight, found " + word);
    auto fit = fitWeights(sums, weights, broken, 4, 8);
    ASSERT_FALSE(fit);
    EXPECT_EQ(fit.status().message(),
              "row 2 column 5: expected a finite weight, found " + word);
    fit = fitWeights(sums, broken, weights, 4, 8);
    ASSERT_FALSE(fit);
    EXPECT_EQ(
        fit.status().message(),
        "row 2 column 5: expected a finite sum of outputs by inputs, found " +
            word);
  }
}

// GPTQ's own format, 4 bits: eight rows of 64 columns in groups of 32.
//   version 1 means (q - (z + 1)) s, version 2 (q - z) s
struct StoredZeros {
  std::int64_t version;
  std::uint32_t word; // eight stored zero points
  std::int64_t zero;  // that they stand for
};

class StoredZerosTest : public ::testing::TestWithParam<StoredZeros> {};

// Each method takes the numbers that the checkpoint means. Where they are symmetric
// they go through every method of 4 bits unchanged: the code 8 is exactly zero.
// Others are within half a step of 8 bits, and never wrap.
TEST_P(StoredZerosTest, GoThroughEachMethod) {
  constexpr std::int64_t rows = 8, columns = 64;
  std::vector<std::uint32_t> words(columns / 8 * rows, 0);
  std::vector<std::uint8_t> codes(rows * columns);
  std::mt19937 random(11);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < columns; ++k) {
      // Each group has the codes 0 and 8.
      std::uint32_t code = k % 32 == 3 ? 0 : k % 32 == 4 ? 8 : random() % 16;
      codes[std::size_t(r * columns + k)] = std::uint8_t(code);
      words[std::size_t(k / 8 * rows + r)] |= code << (k % 8 * 4);
    }
  std::vector<std::uint32_t> zeros(2 * rows / 8, GetParam().word);
  std::vector<std::uint16_t> scales;
  for (std::int64_t i = 0; i < 2 * rows; ++i)
    scales.push_back(package::floatToHalf(0.01f * float(i + 1)));
  auto bytes = [](const auto &values) {
    return std::span(reinterpret_cast<const std::uint8_t *>(values.data()),
                     values.size() * sizeof(values[0]));
  };
  StoredTensor tensor;
  tensor.name = "w";
  tensor.form = StoredForm::Codes;
  tensor.bytes = bytes(words);
  tensor.rows = rows;
  tensor.columns = columns;
  StoredCodes details;
  details.group = 32;
  details.zeroBias = GetParam().version == 1 ? 1 : 0;
  details.scales.type = PlaneType::F16;
  details.scales.sizeBytes = scales.size() * 2;
  details.scales.bytes = bytes(scales);
  details.zeros.emplace();
  details.zeros->type = PlaneType::I32;
  details.zeros->sizeBytes = zeros.size() * 4;
  details.zeros->bytes = bytes(zeros);
  tensor.details.codes = details;
  auto stored = StoredRows::create(tensor);
  ASSERT_TRUE(stored) << stored.status().message();
  std::vector<float> weights(rows * columns), inputs(columns * columns, 0.0f);
  for (std::int64_t k = 0; k < columns; ++k)
    inputs[std::size_t(k * columns + k)] = 1.0f + float(k % 5);
  for (std::int64_t r = 0; r < rows; ++r)
    stored->widen(std::uint64_t(r), std::span(weights).subspan(
                                        std::size_t(r * columns), columns));
  auto scaleAt = [&](std::int64_t r, std::int64_t k) {
    return package::halfToFloat(scales[std::size_t(k / 32 * rows + r)]);
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < columns; ++k)
      ASSERT_EQ(weights[std::size_t(r * columns + k)],
                float(codes[std::size_t(r * columns + k)] - GetParam().zero) *
                    scaleAt(r, k));
  for (std::int64_t bits : {4, 8}) {
    CodeShape shape{bits, 32};
    auto rounded = roundToNearest(weights, rows, columns, shape);
    auto byGptq = gptq(weights, rows, columns, inputs, shape);
    auto byInputs = roundToInputs(weights, rows, columns, shape, inputs);
    ASSERT_TRUE(rounded && byGptq && byInputs);
    for (const GroupCodes *one : {&*rounded, &*byGptq, &*byInputs}) {
      EXPECT_EQ(one->underflowedGroups, 0);
      std::vector<float> row(columns);
      for (std::int64_t r = 0; r < rows; ++r) {
        one->decode(r, row);
        for (std::int64_t k = 0; k < columns; ++k) {
          float weight = weights[std::size_t(r * columns + k)];
          if (bits == 4 && GetParam().zero == 8)
            EXPECT_EQ(row[std::size_t(k)], weight) << r << " " << k;
          if (weight == 0.0f)
            EXPECT_EQ(row[std::size_t(k)], 0.0f);
          if (bits == 8)
            EXPECT_NEAR(row[std::size_t(k)], weight, 0.08f * scaleAt(r, k));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, StoredZerosTest,
    ::testing::Values(StoredZeros{1, 0x77777777, 8},
                      StoredZeros{2, 0x88888888, 8},
                      // Asymmetric: none below, and one beyond four bits.
                      StoredZeros{2, 0, 0}, StoredZeros{1, 0, 1},
                      StoredZeros{2, 0xffffffff, 15},
                      StoredZeros{1, 0xffffffff, 16}));

} // namespace
