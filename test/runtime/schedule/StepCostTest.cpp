// The parts of a step are found among noise, follow a change, and are not guessed
// from steps that are all alike.
#include "runtime/schedule/StepCost.h"

#include <gtest/gtest.h>

#include <random>

using namespace ingot;

namespace {

struct Machine {
  double fixed, perRow, perPosition;
  double attention(const StepWork &work) const {
    return perPosition * work.positions;
  }
  double seconds(const StepWork &work) const {
    return fixed + perRow * work.rows + attention(work);
  }
  void observedBy(StepCost &cost, const StepWork &work, double noise) const {
    cost.observe(work, seconds(work) * noise, attention(work) * noise);
  }
};

// Decoding of up to 30 sequences; every tenth step reads 200 rows of a prompt.
void run(StepCost &cost, int steps, const Machine &machine,
         std::mt19937 &random) {
  std::uniform_real_distribution<double> noise(0.9, 1.2);
  for (int i = 0; i < steps; ++i) {
    StepWork work;
    work.rows = i % 10 == 0 ? 200 : 1 + std::int32_t(random() % 30);
    work.positions = work.rows * double(random() % 4000);
    machine.observedBy(cost, work, noise(random));
  }
}

} // namespace

TEST(StepCostTest, learnsTheParts) {
  std::mt19937 random(1);
  StepCost cost;
  run(cost, 300, {0.008, 0.001, 0.5e-6}, random);
  EXPECT_NEAR(cost.fixedRows(), 8, 2);
  EXPECT_NEAR(cost.rowsPerPosition(), 0.0005, 0.0001);
  run(cost, 300, {0.04, 0.001, 1e-6}, random);
  EXPECT_NEAR(cost.fixedRows(), 40, 8);
  EXPECT_NEAR(cost.rowsPerPosition(), 0.001, 0.0002);
}

TEST(StepCostTest, promptsKeepWithinTheFactor) {
  std::mt19937 random(2);
  Machine machine{0.02, 0.001, 1e-6};
  StepCost cost;
  run(cost, 300, machine, random);
  for (std::int32_t first : {0, 500, 4000, 30000})
    for (std::int32_t decodes : {1, 8, 60}) {
      StepWork decoding{decodes, decodes * 300.0};
      PromptBudget budget = cost.promptBudget(decoding, 1.8);
      std::int32_t rows = budget.rowsFrom(first);
      auto taken = [&](std::int32_t n) {
        StepWork prompt = workOf({{{1, 0, n, first}}, {}, {}});
        return machine.seconds(
                   {decodes + n, decoding.positions + prompt.positions}) /
               machine.seconds(decoding);
      };
      EXPECT_LT(taken(rows), 1.8 * 1.15) << first << " " << decodes;
      EXPECT_GT(taken(rows + 1), 1.8 * 0.85) << first << " " << decodes;
    }
  EXPECT_EQ(cost.promptBudget({1, 100}, 1.0).rowsFrom(0), 0);
}

TEST(StepCostTest, aBudgetIsSpentByRowsAndPositions) {
  EXPECT_EQ((PromptBudget{10, 0}).rowsFrom(1000), 10);
  EXPECT_EQ((PromptBudget{10, 0.001}).rowsFrom(1000), 4);
  EXPECT_EQ((PromptBudget{-1, 0.001}).rowsFrom(0), 0);
  for (std::int32_t first : {0, 7, 5000})
    for (double perPosition : {0.0, 1e-4, 0.3})
      for (double cost : {0.5, 20.0, 3000.0}) {
        PromptBudget budget{cost, perPosition};
        std::int32_t rows = budget.rowsFrom(first);
        EXPECT_LE(budget.costOf(first, rows), cost * (1 + 1e-9));
        EXPECT_GT(budget.costOf(first, rows + 1), cost);
      }
}

TEST(StepCostTest, workCountsWhatEachRowAttendsTo) {
  StepPlan plan;
  plan.sequences = {{1, 0, 1, 99}, {2, 1, 3, 10}};
  EXPECT_EQ(workOf(plan).rows, 4);
  EXPECT_EQ(workOf(plan).positions, 100 + 11 + 12 + 13);
}

// Decoding alone: rows are the same in every step and positions hardly move, so
// what was known of prompts stays.
TEST(StepCostTest, stepsThatAreAlikeForgetNothing) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(0.9, 1.2);
  Machine machine{0.02, 0.001, 1e-6};
  StepCost cost;
  run(cost, 300, machine, random);
  for (int i = 0; i < 3000; ++i) {
    StepWork work{8, 8.0 * (100 + i % 500)};
    machine.observedBy(cost, work, noise(random));
  }
  std::int32_t rows = cost.promptBudget({8, 8 * 400.0}, 1.8).rowsFrom(2000);
  EXPECT_GT(rows, 4); // 25.0 ms; 0.8 of it buys 8 rows of 3 ms
  EXPECT_LT(rows, 13);
}

TEST(StepCostTest, whatTellsNothingIsIgnored) {
  StepCost cost;
  cost.observe({0, 0}, 1, 0);
  cost.observe({5, 5}, 0, 0);
  cost.observe({5, 5}, 1, 1);
  cost.observe({5, 5}, -1, 0);
  EXPECT_EQ(cost.fixedRows(), 16);
  EXPECT_EQ(cost.rowsPerPosition(), 0);
  cost.observe({1, 1}, 1e-9, 0);
  cost.observe({1, 1}, 1e9, 1e8);
  EXPECT_GE(cost.promptBudget({1, 1}, 1.8).rowsFrom(0), 0);
}
