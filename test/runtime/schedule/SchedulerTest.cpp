// Policy over plain values: no executor, no cache.
#include "runtime/schedule/Scheduler.h"
#include "runtime/memory/KvCache.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

using namespace ingot;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

struct Fixture {
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<SequenceState> states;
  ScheduleCapacity capacity;

  Fixture() {
    capacity.maxStepTokens = 16;
    capacity.maxSequences = 4;
    capacity.maxLogitRows = 16;
    capacity.groups = {{100, 32, 0}};
    tokens.reserve(100);
  }
  void add(int known, int computed, bool running, int maxTokens = 64) {
    tokens.emplace_back();
    for (int i = 0; i < known; ++i)
      tokens.back().push_back(i);
    states.push_back({std::uint64_t(states.size()), tokens.back(), computed,
                      maxTokens, running, false});
  }
};

} // namespace

// Decoding goes first, then begun prompts, then new ones, within the budget.
TEST(SchedulerTest, decodeThenPromptsWithinTheBudget) {
  Fixture f;
  f.add(20, 8, true);
  f.add(10, 9, true);
  f.add(30, 0, false);
  auto result = scheduleStep(f.states, f.capacity);
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{1, 0, 1, 9}, StepSequence{0, 1, 12, 8},
                          StepSequence{2, 13, 3, 0}));
  // The begun prompt ends in this step; the new one does not.
  EXPECT_THAT(result.plan.logitRows, ElementsAre(0, 12));
  EXPECT_THAT(result.admitted, ElementsAre(2u));
  EXPECT_THAT(result.plan.tokens, ElementsAre(9, 8, 9, 10, 11, 12, 13, 14, 15,
                                              16, 17, 18, 19, 0, 1, 2));
}

// The order of arrival holds: a large one that must wait is not passed.
TEST(SchedulerTest, admissionIsFirstComeFirstServed) {
  Fixture f;
  f.capacity.groups = {{5, 32, 0}};
  f.add(4, 3, true, 64);   // promised 2 of 5
  f.add(4, 0, false, 128); // needs 4
  f.add(4, 0, false, 32);  // would fit
  auto result = scheduleStep(f.states, f.capacity);
  EXPECT_TRUE(result.admitted.empty());
  EXPECT_EQ(result.plan.sequences.size(), 1u);
}

TEST(SchedulerTest, chunksAndLogitRows) {
  Fixture f;
  f.capacity.chunkTokens = 7;
  f.add(20, 0, false);
  auto result = scheduleStep(f.states, f.capacity);
  ASSERT_EQ(result.plan.numRows(), 7);
  EXPECT_TRUE(result.plan.logitRows.empty());
  // Scored rows all want logits, and get no more than there is room for.
  f.capacity.maxLogitRows = 5;
  f.states[0].wantsAllLogits = true;
  result = scheduleStep(f.states, f.capacity);
  EXPECT_THAT(result.plan.logitRows, ElementsAre(0, 1, 2, 3, 4));
}

// The blocks that policy counts are those that the cache takes.
TEST(SchedulerTest, agreesWithTheCache) {
  for (std::int32_t window : {0, 16, 64, 100})
    for (std::int32_t tokens : {1, 31, 32, 33, 500})
      for (std::int32_t step : {1, 64, 512}) {
        ScheduleCapacity capacity;
        capacity.maxStepTokens = step;
        std::int32_t blocks = blocksForTokens(tokens, 32, window, step);
        capacity.groups = {{blocks, 32, window}};
        EXPECT_TRUE(canEverFit(tokens, capacity));
        capacity.groups = {{blocks - 1, 32, window}};
        EXPECT_FALSE(canEverFit(tokens, capacity));
      }
}

// Random requests run to their end: every row exactly once, in order, within
// every capacity, and nobody waits for ever.
TEST(SchedulerTest, everyRowOnceWithinEveryCapacity) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Fixture f;
    f.capacity.maxStepTokens = 1 + int(random() % 40);
    f.capacity.maxSequences =
        1 + int(random() % std::min(8, f.capacity.maxStepTokens));
    f.capacity.maxLogitRows = f.capacity.maxSequences + int(random() % 4);
    f.capacity.chunkTokens = int(random() % 12);
    f.capacity.groups = {{4 + int(random() % 10), 32, 0}, {30, 32, 40}};
    int count = 1 + int(random() % 12);
    for (int i = 0; i < count; ++i) {
      int prompt = 1 + int(random() % 90);
      f.add(prompt, 0, false, prompt + int(random() % 30));
      f.states.back().wantsAllLogits = random() % 4 == 0;
    }
    std::map<std::uint64_t, int> computed;
    int steps = 0;
    while (!f.states.empty()) {
      ASSERT_LT(++steps, 20000);
      auto result = scheduleStep(f.states, f.capacity);
      const StepPlan &plan = result.plan;
      ASSERT_FALSE(plan.isEmpty());
      StepLimits limits{f.capacity.maxStepTokens, f.capacity.maxLogitRows,
                        f.capacity.maxSequences, 1 << 20, 1};
      Status status = checkStepPlan(plan, limits);
      ASSERT_TRUE(status.isOk()) << status.message();
      for (const StepSequence &rows : plan.sequences) {
        ASSERT_EQ(rows.firstPosition, computed[rows.id]);
        computed[rows.id] += rows.numRows;
      }
      for (auto &state : f.states) {
        for (std::uint64_t id : result.admitted)
          state.isRunning |= state.id == id;
        state.numComputed = computed[state.id];
      }
      // Decoded one further, or finished.
      for (std::size_t i = 0; i < f.states.size();) {
        auto &state = f.states[i];
        if (state.numComputed == int(state.tokens.size())) {
          if (state.wantsAllLogits ||
              int(state.tokens.size()) >= state.maxTokens) {
            f.states.erase(f.states.begin() + std::ptrdiff_t(i));
            continue;
          }
          f.tokens[state.id].push_back(0);
          state.tokens = f.tokens[state.id];
        }
        ++i;
      }
    }
  }
}

// Every way in which a plan can be wrong is told apart.
TEST(StepPlanTest, checks) {
  StepPlan good;
  good.sequences = {{1, 0, 2, 0}, {2, 2, 1, 5}};
  good.tokens = {3, 4, 5};
  good.logitRows = {1, 2};
  StepLimits limits{4, 2, 2, 10, 1};
  EXPECT_TRUE(checkStepPlan(good, limits).isOk());
  auto refuse = [&](auto change, const char *message) {
    StepPlan plan = good;
    change(plan);
    Status status = checkStepPlan(plan, limits);
    EXPECT_FALSE(status.isOk()) << message;
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  refuse([](auto &p) { p.tokens[1] = 10; }, "token id 10");
  refuse([](auto &p) { p.tokens[1] = -1; }, "token id -1");
  refuse([](auto &p) { p.tokens.resize(9); }, "9 token rows");
  refuse([](auto &p) { p.sequences.resize(1); }, "cover 2 of 3");
  refuse([](auto &p) { p.sequences[1].firstRow = 1; }, "expected from 2");
  refuse([](auto &p) { p.sequences[1].firstPosition = -1; }, "sequence 2");
  refuse([](auto &p) { p.logitRows = {1, 1}; }, "logit row 1 after 1");
  refuse([](auto &p) { p.logitRows = {3}; }, "logit row 3");
  refuse([](auto &p) { p.logitRows = {0, 1, 2}; }, "3 logit rows");
  refuse([](auto &p) { p.endSegment = 2; }, "segments [0, 2) of 1");
  refuse([](auto &p) { p.firstSegment = 1; }, "segments [1, 1)");
}
