// The curve rises, never says 1, and is near the truth where there are counts.
#include "compiler/calibrate/ConfidenceCurve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace ingot;

TEST(ConfidenceCurveTest, followsTheTruth) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> draw(0, 1);
  ConfidenceCounts counts(10);
  for (int i = 0; i < 40000; ++i) {
    double probability = draw(random);
    counts.add(probability, draw(random) < probability * probability);
  }
  auto curve = counts.curve();
  ASSERT_EQ(curve.size(), 10u);
  EXPECT_EQ(counts.numSeen(), 40000);
  EXPECT_TRUE(std::is_sorted(curve.begin(), curve.end()));
  for (std::size_t b = 0; b < 10; ++b) {
    double middle = (double(b) + 0.5) / 10;
    EXPECT_NEAR(curve[b], middle * middle, 0.04);
  }
}

// Bins that fall are pooled; a bin that is always right is not sure.
TEST(ConfidenceCurveTest, risesAndStaysBelowOne) {
  ConfidenceCounts counts(4);
  for (int i = 0; i < 98; ++i) {
    counts.add(0.1, true);
    counts.add(0.3, false);
    counts.add(1.0, true);
  }
  auto curve = counts.curve();
  EXPECT_FLOAT_EQ(curve[0], 0.5f);
  EXPECT_FLOAT_EQ(curve[1], 0.5f);
  EXPECT_FLOAT_EQ(curve[2], 0.5f);
  EXPECT_FLOAT_EQ(curve[3], 0.99f);
  EXPECT_EQ(counts.numAgreed(), 196);
}

TEST(ConfidenceCurveTest, firstChoice) {
  std::vector<float> logits = {1.0f, 3.0f, 2.0f};
  FirstChoice choice = firstChoice(logits);
  EXPECT_EQ(choice.token, 1);
  EXPECT_NEAR(choice.probability, 1 / (1 + std::exp(-1.0) + std::exp(-2.0)),
              1e-9);
}
