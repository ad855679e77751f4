// GPTQ and AWQ against an independent numpy implementation (make_method_vectors.py),
// and what must hold of them whatever the numbers.
#include "compiler/calibrate/AddProduct.h"
#include "compiler/calibrate/AwqScales.h"
#include "compiler/calibrate/ColumnsKept.h"
#include "compiler/calibrate/Gptq.h"
#include "compiler/calibrate/GroupScales.h"
#include "compiler/calibrate/LeastSquares.h"
#include "compiler/calibrate/SecondMoments.h"
#include "compiler/package/HalfFloat.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

using namespace ingot;

namespace {

struct MethodCase {
  std::int64_t rows, columns, tokens, bits, group;
  double rounded, gptq, awq, power;
};
constexpr MethodCase kCases[] = {
#include "test/compiler/calibrate/MethodVectors.inc"
};

// As `numbers` of the script.
std::vector<float> numbers(std::uint32_t seed, std::int64_t count) {
  std::vector<float> values;
  std::uint32_t state = seed;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t total = 0;
    for (int j = 0; j < 4; ++j) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      total += state >> 16;
    }
    values.push_back(float(double(total - 131070) / 65536.0));
  }
  return values;
}

std::vector<float> weightsOf(const MethodCase &one, std::uint32_t index) {
  std::vector<float> weights = numbers(101 + index, one.rows * one.columns);
  for (float &value : weights)
    value *= 0.05f;
  return weights;
}

std::vector<float> inputsOf(const MethodCase &one, std::uint32_t index) {
  std::vector<float> inputs = numbers(1001 + index, one.tokens * one.columns);
  for (std::int64_t t = 0; t < one.tokens; ++t) {
    float *row = &inputs[std::size_t(t * one.columns)];
    for (std::int64_t k = 1; k < one.columns; ++k)
      row[k] = 0.6f * row[k - 1] + row[k];
    for (std::int64_t k = 0; k < one.columns; k += 17)
      row[k] *= 8.0f;
  }
  return inputs;
}

class WeightMethodsTest : public ::testing::TestWithParam<std::uint32_t> {
protected:
  void SetUp() override {
    one_ = kCases[GetParam()];
    shape_ = {one_.bits, one_.group};
    weights_ = weightsOf(one_, GetParam());
    inputs_ = inputsOf(one_, GetParam());
    moments_.emplace(one_.columns);
    moments_->add(inputs_, 2);
  }

  MethodCase one_;
  CodeShape shape_;
  std::vector<float> weights_, inputs_;
  std::optional<SecondMoments> moments_;
};

// Rounding, GPTQ and AWQ come to the errors that numpy finds.
TEST_P(WeightMethodsTest, AgreesWithNumpy) {
  std::vector<float> moments = moments_->mean();
  auto rounded = roundToNearest(weights_, one_.rows, one_.columns, shape_);
  ASSERT_TRUE(rounded);
  EXPECT_NEAR(outputError(weights_, *rounded, moments) / one_.rounded, 1, 0.01);
  auto chosen = gptq(weights_, one_.rows, one_.columns, moments, shape_);
  ASSERT_TRUE(chosen);
  double error = outputError(weights_, *chosen, moments);
  EXPECT_NEAR(error / one_.gptq, 1, 0.01);
  EXPECT_LT(error, one_.rounded);
  AwqWeight weight{weights_, one_.rows, shape_};
  auto awq = searchAwqScales({&weight, 1}, moments, moments_->meanMagnitude());
  ASSERT_TRUE(awq);
  EXPECT_NEAR(awq->error / one_.awq, 1, 0.01);
  EXPECT_NEAR(awq->errorWithout / one_.rounded, 1, 0.01);
  EXPECT_NEAR(awq->power, one_.power, 1e-9);
}

// More threads, the same bits.
TEST_P(WeightMethodsTest, DoesNotDependOnThreads) {
  SecondMoments other(one_.columns);
  other.add(inputs_, 1);
  EXPECT_EQ(moments_->mean(), other.mean());
  auto one =
      gptq(weights_, one_.rows, one_.columns, other.mean(), shape_, {0.01, 1});
  auto three =
      gptq(weights_, one_.rows, one_.columns, other.mean(), shape_, {0.01, 3});
  ASSERT_TRUE(one && three);
  EXPECT_EQ(one->codes, three->codes);
  EXPECT_EQ(one->scales, three->scales);
}

INSTANTIATE_TEST_SUITE_P(Vectors, WeightMethodsTest,
                         ::testing::Range(0u, unsigned(std::size(kCases))));

// Sums are those of a plain double loop.
// Against whole numbers: every share of a hundredth, of every width of groups.
TEST(ColumnsKeptTest, CountsInWholeNumbers) {
  for (std::int64_t columns = 32; columns <= 16384; columns += 32)
    for (std::int64_t hundredths = 1; hundredths < 100; ++hundredths) {
      std::int64_t left = columns * (100 - hundredths);
      std::int64_t groups = std::max<std::int64_t>((left + 3199) / 3200, 1);
      ASSERT_EQ(columnsKept(columns, double(hundredths) / 100), groups * 32)
          << columns << " " << hundredths;
    }
  EXPECT_EQ(columnsKept(40, 0.01), 40) << "no more than there are";
  EXPECT_EQ(columnsKept(40, 0.5), 32);
}

TEST(SecondMomentsTest, SumsProducts) {
  std::int64_t columns = 37, tokens = 23;
  std::vector<float> rows = numbers(5, columns * tokens);
  SecondMoments moments(columns);
  moments.add(std::span(rows).first(std::size_t(columns * 9)), 2);
  moments.add(std::span(rows).subspan(std::size_t(columns * 9)), 3);
  EXPECT_EQ(moments.numRows(), tokens);
  std::vector<float> mean = moments.mean();
  for (std::int64_t i = 0; i < columns; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t t = 0; t < tokens; ++t)
        sum += double(rows[std::size_t(t * columns + i)]) *
               double(rows[std::size_t(t * columns + j)]);
      EXPECT_NEAR(mean[std::size_t(i * columns + j)], sum / double(tokens),
                  1e-5);
    }
}

// Columns that never carry anything are rounded by themselves, to scales that are no
// worse than rounding's; nothing is NaN.
TEST(GptqTest, TakesDeadColumns) {
  std::int64_t rows = 3, columns = 64;
  CodeShape shape{4, 32};
  std::vector<float> weights = numbers(9, rows * columns);
  std::vector<float> moments(std::size_t(columns * columns), 0.0f);
  std::vector<float> identity = moments;
  for (std::int64_t k = 0; k < columns; ++k)
    identity[std::size_t(k * columns + k)] = 1.0f;
  auto rounded = roundToNearest(weights, rows, columns, shape);
  ASSERT_TRUE(rounded);
  for (float first : {0.0f, 1.0f}) {
    moments[0] = first;
    auto chosen = gptq(weights, rows, columns, moments, shape);
    ASSERT_TRUE(chosen);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      float scale = package::halfToFloat(
          chosen->scales[std::size_t(i / columns * 2 + i % columns / 32)]);
      EXPECT_EQ(chosen->codes[std::size_t(i)],
                nearestCode(weights[std::size_t(i)], 1.0f / scale, shape))
          << i;
    }
    if (first == 0)
      EXPECT_LE(outputError(weights, *chosen, identity),
                outputError(weights, *rounded, identity));
  }
}

// The error with its importance, for the nearest codes to a scale.
double weightedError(std::span<const float> values,
                     std::span<const float> importance, std::uint16_t half) {
  float scale = package::halfToFloat(half);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto code = std::int64_t(nearestCode(values[i], 1.0f / scale, {4, 128}));
    double error = values[i] - double(scale) * double(code - 8);
    sum += double(importance[i]) * error * error;
  }
  return sum;
}

// A large weight that nothing reads is clipped; one that much depends on is not.
TEST(GroupScalesTest, FollowsTheImportance) {
  for (std::int64_t size : {128, 33, 32, 5}) {
    std::vector<float> values = numbers(21, size), importance(values.size(), 1);
    values[2] = 4.0f;
    importance[2] = 0.0f;
    CodeShape shape{4, 128};
    auto rounded = scaleOfGroup(values, shape);
    auto clipped = scaleByImportance(values, importance);
    ASSERT_TRUE(rounded && clipped);
    EXPECT_LT(weightedError(values, importance, clipped->scale),
              0.5 * weightedError(values, importance, rounded->scale))
        << size;
    importance[2] = 1000.0f;
    auto kept = scaleByImportance(values, importance);
    ASSERT_TRUE(kept);
    float scale = package::halfToFloat(kept->scale);
    auto code = nearestCode(4.0f, 1.0f / scale, shape);
    EXPECT_NEAR(scale * float(int(code) - 8), 4.0f, 0.01f) << size;
    EXPECT_LE(weightedError(values, importance, kept->scale),
              weightedError(values, importance, rounded->scale));
  }
}

// Least squares goes on where the list ends: weights on a grid are met exactly, for a
// scale that no entry of the list has.
TEST(GroupScalesTest, EndsAtTheScaleOfLeastSquares) {
  std::vector<float> values, importance;
  for (int i = 0; i < 32; ++i) {
    values.push_back(0.125f * float(i % 16 - 8));
    importance.push_back(float(1 + i % 3));
  }
  // One stands off its grid and counts for next to nothing.
  values[8] = 1.3f;
  importance[8] = 1e-6f;
  auto chosen = scaleByImportance(values, importance);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(std::fabs(package::halfToFloat(chosen->scale)), 0.125f);
}

// Nothing counts, or nothing is there: what rounding does.
TEST(GroupScalesTest, FallsBackToRounding) {
  std::vector<float> values = numbers(22, 32), zeros(32, 0.0f), ones(32, 1.0f),
                     tiny(32, 1e-12f);
  auto same = scaleByImportance(values, zeros);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->scale, scaleOfGroup(values, {4, 32})->scale);
  auto nothing = scaleByImportance(zeros, ones);
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->scale, 0x3c00);
  EXPECT_FALSE(nothing->isUnderflowed);
  auto small = scaleByImportance(tiny, ones);
  ASSERT_TRUE(small);
  EXPECT_TRUE(small->isUnderflowed);
  auto wrong = scaleByImportance(values, std::span(ones).first(31));
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.status().message().find("31 importances"), std::string::npos);
}

// What is not finite is refused.
TEST(GptqTest, RefusesMomentsThatAreNotFinite) {
  std::vector<float> weights(64, 1.0f), moments(64 * 64, 0.0f);
  moments[65] = NAN;
  auto result = gptq(weights, 1, 64, moments, {4, 32});
  ASSERT_FALSE(result);
  EXPECT_NE(result.status().message().find("not finite"), std::string::npos);
}

// Columns that are tied get one scale.
// What is never met is no reason to scale without bound.
TEST(AwqScalesTest, BoundsWhatIsNeverMet) {
  const std::array<float, 2> sizes{0.0f, 1.0f};
  std::vector<float> scales = awqScales(sizes, 0.5, {});
  EXPECT_NEAR(scales[1] / scales[0], 100, 1e-3) << "of 1e-4, not of nothing";
}

// A weight that no input reaches may be clipped, so that the others of its group
// are rounded by a finer scale; one that inputs reach may not.
TEST(RoundToInputsTest, ClipsWhatNothingReads) {
  constexpr std::int64_t columns = 32;
  std::vector<float> weights(columns), moments(columns * columns, 0.0f);
  for (std::int64_t k = 0; k < columns; ++k) {
    weights[std::size_t(k)] = 0.03f * float(k % 7) - 0.08f;
    moments[std::size_t(k * columns + k)] = 1;
  }
  weights[0] = 0.5f;
  const CodeShape shape{4, 32};
  for (bool isRead : {false, true}) {
    moments[0] = isRead ? 100 : 0;
    auto nearest = roundToNearest(weights, 1, columns, shape);
    auto chosen = roundToInputs(weights, 1, columns, shape, moments, 1);
    ASSERT_TRUE(nearest && chosen);
    double of = outputError(weights, *nearest, moments),
           is = outputError(weights, *chosen, moments);
    EXPECT_LE(is, of);
    std::vector<float> decoded(columns);
    chosen->decode(0, decoded);
    if (isRead) {
      EXPECT_NEAR(decoded[0], weights[0], 0.05);
    } else {
      EXPECT_LT(is, 0.5 * of);
      EXPECT_LT(decoded[0], 0.8f * weights[0]);
    }
  }
}

TEST(AwqScalesTest, KeepsTies) {
  std::vector<float> sizes = {1, 4, 9, 16};
  std::vector<std::int64_t> ties = {0, 1, 0, 1};
  std::vector<float> scales = awqScales(sizes, 0.5, ties);
  EXPECT_EQ(scales[0], scales[2]);
  EXPECT_EQ(scales[1], scales[3]);
  EXPECT_NEAR(scales[1] / scales[0], std::sqrt(2.0), 1e-6);
  for (float scale : awqScales(sizes, 0))
    EXPECT_EQ(scale, 1.0f);
}

// Where the inputs that are left determine those that are gone, the fitted weights
// make the same outputs; else they come nearer than the old ones.
TEST(LeastSquaresTest, MakesUpForWhatIsGone) {
  std::int64_t rows = 5, columns = 24, tokens = 200;
  std::vector<float> weights = numbers(3, rows * columns);
  std::vector<float> inputs = numbers(4, tokens * columns);
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t k = 16; k < columns; ++k)
      inputs[std::size_t(t * columns + k)] =
          0.5f * inputs[std::size_t(t * columns + k - 16)] -
          inputs[std::size_t(t * columns + k - 15)];
  SecondMoments moments(columns);
  moments.add(inputs);
  std::vector<float> mean = moments.mean();
  std::vector<std::int64_t> kept = {0, 1, 2,  3,  4,  5,  6,  7,
                                    8, 9, 10, 11, 12, 13, 14, 15};
  auto errorOf = [&](const std::vector<float> &some) {
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      std::vector<float> difference(weights.begin() + r * columns,
                                    weights.begin() + (r + 1) * columns);
      for (std::size_t k = 0; k < kept.size(); ++k)
        difference[std::size_t(kept[k])] -=
            some[std::size_t(r) * kept.size() + k];
      sum += rowError(difference, mean);
    }
    return sum;
  };
  std::vector<float> old = selectColumns(weights, columns, kept);
  std::vector<float> cross =
      selectColumns(multiply(weights, mean, columns), columns, kept);
  auto fitted =
      fitWeights(selectSquare(mean, columns, kept), cross, old, rows, 16, 1e-6);
  ASSERT_TRUE(fitted) << fitted.status().message();
  EXPECT_LT(errorOf(*fitted), 1e-3 * errorOf(old));
  // A large penalty keeps the old ones.
  auto held =
      fitWeights(selectSquare(mean, columns, kept), cross, old, rows, 16, 1e9);
  ASSERT_TRUE(held);
  EXPECT_NEAR(errorOf(*held) / errorOf(old), 1, 1e-3);
}

TEST(LeastSquaresTest, RefusesWhatIsNotFinite) {
  std::vector<float> moments = {1, 0, 0, INFINITY}, other = {1, 1};
  auto fitted = fitWeights(moments, other, other, 1, 2);
  ASSERT_FALSE(fitted);
  EXPECT_NE(fitted.status().message().find("cannot be fitted"),
            std::string::npos);
}

// Whole tiles and what is left of them, both ways that calibration reads the left
// side; threads change no bit.
TEST(AddProductTest, AddsTheSumOfOuterProducts) {
  for (auto [rows, columns, terms] :
       {std::array<std::int64_t, 3>{4, 64, 7}, {9, 131, 20}, {3, 5, 1}})
    for (bool transposed : {false, true}) {
      std::vector<float> left = numbers(3, rows * terms);
      std::vector<float> right = numbers(4, columns * terms);
      std::vector<float> out = numbers(5, rows * columns), before = out,
                         threaded = out;
      ProductTerms product{left.data(),
                           transposed ? 1 : rows,
                           transposed ? terms : 1,
                           right.data(),
                           rows,
                           columns,
                           terms};
      addProduct(out.data(), product, 1);
      addProduct(threaded.data(), product, 3);
      EXPECT_EQ(out, threaded);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = before[std::size_t(i * columns + j)];
          for (std::int64_t p = 0; p < terms; ++p)
            sum += double(left[std::size_t(transposed ? i * terms + p
                                                      : p * rows + i)]) *
                   double(right[std::size_t(p * columns + j)]);
          EXPECT_NEAR(out[std::size_t(i * columns + j)], sum, 1e-4);
        }
    }
}

} // namespace
