// The fixed part of a step is found among noise, follows a change, and is not
// guessed from steps that are all alike.
#include "runtime/schedule/StepCost.h"

#include <gtest/gtest.h>

#include <random>

using namespace ingot;

namespace {

void run(StepCost &cost, int steps, double fixed, double perRow,
         std::mt19937 &random) {
  std::uniform_real_distribution<double> noise(0.9, 1.2);
  for (int i = 0; i < steps; ++i) {
    std::int32_t rows = i % 10 == 0 ? 200 : 1 + std::int32_t(random() % 30);
    cost.observe(rows, (fixed + perRow * rows) * noise(random));
  }
}

} // namespace

TEST(StepCostTest, learnsTheFixedPart) {
  std::mt19937 random(1);
  StepCost cost;
  run(cost, 300, 0.008, 0.001, random);
  EXPECT_NEAR(cost.fixedRows(), 8, 1.5);
  run(cost, 300, 0.04, 0.001, random);
  EXPECT_NEAR(cost.fixedRows(), 40, 6);
}

TEST(StepCostTest, rowsKeepWithinTheFactor) {
  StepCost cost;
  for (int i = 0; i < 50; ++i)
    for (std::int32_t rows : {1, 2, 50})
      cost.observe(rows, 0.010 + 0.0005 * rows); // fixed: 20 rows
  EXPECT_NEAR(cost.promptRows(1, 2), 21, 1);
  EXPECT_NEAR(cost.promptRows(60, 1.5), 40, 1);
  EXPECT_EQ(cost.promptRows(1, 1.0), StepCost::kLeastRows);
}

TEST(StepCostTest, equalStepsTellNothing) {
  StepCost cost;
  double before = cost.fixedRows();
  for (int i = 0; i < 100; ++i)
    cost.observe(1, i % 2 ? 0.01 : 0.02);
  cost.observe(0, 1);
  cost.observe(5, 0);
  cost.observe(5, -1);
  EXPECT_EQ(cost.fixedRows(), before);
}
