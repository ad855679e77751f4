// Rotary frequencies against those of the transformers package: equal bits,
// but for the few whose power its vector unit rounded the other way.
#include "compiler/frontend/RotaryFrequencies.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>

using namespace ingot;

namespace {

struct Vector {
  RotaryKind kind;
  std::int64_t dim;
  double theta, factor, low, high;
  std::int64_t original;
  std::vector<std::uint32_t> bits;
};

const std::vector<Vector> vectors = {
#include "test/compiler/frontend/RotaryVectors.inc"
};

RotarySpec rotaryOf(const Vector &vector) {
  RotarySpec rotary;
  rotary.kind = vector.kind;
  rotary.dim = vector.dim;
  rotary.theta = vector.theta;
  rotary.factor = vector.factor;
  rotary.lowFreqFactor = vector.low;
  rotary.highFreqFactor = vector.high;
  rotary.originalContextLength = vector.original;
  for (std::int64_t i = 0; i < vector.dim / 2; ++i) {
    rotary.shortFactors.push_back(1.0 + double(i) / 64);
    rotary.longFactors.push_back(1.0 + double(i) * 1.25);
  }
  return rotary;
}

TEST(RotaryFrequencies, EqualTransformers) {
  ASSERT_GE(vectors.size(), 11u);
  int values = 0, different = 0;
  for (const Vector &vector : vectors) {
    RotarySpec rotary = rotaryOf(vector);
    ASSERT_TRUE(computeInverseFrequencies(rotary).isOk());
    ASSERT_EQ(rotary.invFreq.size(), vector.bits.size());
    for (std::size_t i = 0; i < vector.bits.size(); ++i) {
      std::int64_t distance =
          std::int64_t(std::bit_cast<std::uint32_t>(rotary.invFreq[i])) -
          std::int64_t(vector.bits[i]);
      EXPECT_LE(std::abs(distance), 1)
          << rotaryKindName(vector.kind) << " dim " << vector.dim << " i " << i;
      ++values;
      different += distance != 0;
    }
  }
  EXPECT_LE(different, values / 100);
}

// Values computed independently of any package.
TEST(RotaryFrequencies, Llama3KnownValues) {
  RotarySpec rotary;
  rotary.kind = RotaryKind::Llama3;
  rotary.dim = 128;
  rotary.theta = 500000.0;
  rotary.factor = 8.0;
  rotary.lowFreqFactor = 1.0;
  rotary.highFreqFactor = 4.0;
  rotary.originalContextLength = 8192;
  ASSERT_TRUE(computeInverseFrequencies(rotary).isOk());
  for (auto [i, expected] :
       std::vector<std::pair<int, double>>{{0, 1.0},
                                           {28, 3.21144599e-3},
                                           {29, 2.16657076e-3},
                                           {31, 8.56751413e-4},
                                           {32, 5.24846161e-4},
                                           {34, 1.78507813e-4},
                                           {35, 9.55621235e-5},
                                           {63, 3.06892599e-7}})
    EXPECT_NEAR(rotary.invFreq[i] / expected, 1.0, 4e-7) << i;
}

TEST(RotaryFrequencies, RefusesListsOfOtherSizes) {
  RotarySpec rotary;
  rotary.kind = RotaryKind::LongRope;
  rotary.dim = 8;
  rotary.shortFactors = {1, 1, 1, 1};
  rotary.longFactors = {1, 1, 1};
  auto status = computeInverseFrequencies(rotary);
  EXPECT_NE(status.message().find("long factors: expected 4, found 3"),
            std::string::npos)
      << status.message();
}

TEST(RotaryFrequencies, FactorsDivide) {
  RotarySpec rotary;
  rotary.kind = RotaryKind::FrequencyFactors;
  rotary.dim = 4;
  ASSERT_TRUE(
      computeInverseFrequencies(rotary, std::vector<float>{1, 8}).isOk());
  EXPECT_EQ(rotary.invFreq, (std::vector<float>{1.0f, 0.01f / 8.0f}));
  EXPECT_FALSE(computeInverseFrequencies(rotary, std::vector<float>{1}).isOk());
  EXPECT_FALSE(
      computeInverseFrequencies(rotary, std::vector<float>{1, 0}).isOk());
  EXPECT_FALSE(
      computeInverseFrequencies(rotary, std::vector<float>{1, NAN}).isOk());
}

} // namespace
