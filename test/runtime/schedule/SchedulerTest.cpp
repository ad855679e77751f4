// Policy over plain values: no executor, and a cache that only records.
#include "runtime/schedule/Scheduler.h"
#include "runtime/memory/KvCache.h"
#include "runtime/schedule/ClientService.h"
#include "test/runtime/schedule/RecordingCache.h"

#include <gmock/gmock.h>

using namespace ingot;
using ingot::test::RecordingCache;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

struct Fixture {
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<SequenceState> states;
  std::vector<double> service = {0, 0, 0};
  ScheduleCapacity capacity;
  SchedulePolicy policy;
  RecordingCache cache;

  Fixture() {
    capacity.maxStepTokens = 16;
    capacity.maxSequences = 4;
    capacity.maxLogitRows = 16;
    capacity.groups = {{100, 32, 0, 100}};
    tokens.reserve(100);
  }
  SequenceState &add(int known, int computed, bool running) {
    tokens.emplace_back();
    for (int i = 0; i < known; ++i)
      tokens.back().push_back(i);
    SequenceState state;
    state.id = states.size();
    state.tokens = tokens.back();
    state.numComputed = computed;
    state.firstLogit = known - 1;
    state.isRunning = running;
    states.push_back(state);
    return states.back();
  }
  void available(std::int32_t blocks) { capacity.groups[0].available = blocks; }
  ScheduleResult schedule() {
    return scheduleStep(states, service, capacity, policy, cache);
  }
  std::vector<std::uint64_t> admitted() {
    std::vector<std::uint64_t> ids;
    for (const Admission &admission : schedule().admitted)
      ids.push_back(admission.id);
    return ids;
  }
};

} // namespace

// Decoding goes first, then begun prompts, then new ones, within the budget.
TEST(SchedulerTest, decodeThenPromptsWithinTheBudget) {
  Fixture f;
  f.add(20, 8, true);
  f.add(10, 9, true);
  f.add(30, 0, false);
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{1, 0, 1, 9}, StepSequence{0, 1, 12, 8},
                          StepSequence{2, 13, 3, 0}));
  // The begun prompt ends in this step; the new one does not.
  EXPECT_THAT(result.plan.logitRows, ElementsAre(0, 12));
  EXPECT_THAT(result.admitted, ElementsAre(Admission{2, 0}));
  EXPECT_THAT(result.plan.tokens, ElementsAre(9, 8, 9, 10, 11, 12, 13, 14, 15,
                                              16, 17, 18, 19, 0, 1, 2));
}

// The order of arrival holds: a large one that must wait is not passed, and
// those behind it are not even looked up.
TEST(SchedulerTest, whatDoesNotFitIsNotPassed) {
  Fixture f;
  f.capacity.groups = {{5, 4, 0, 4}};
  f.add(4, 3, true);
  f.add(16, 0, false); // needs 4, one is to spare
  f.add(4, 0, false);  // would fit
  auto result = f.schedule();
  EXPECT_THAT(result.admitted, IsEmpty());
  EXPECT_EQ(result.plan.sequences.size(), 1u);
  EXPECT_THAT(f.cache.asked, ElementsAre(1u));
  f.available(5);
  EXPECT_THAT(f.admitted(), ElementsAre(1u));
}

// Alone, no block has to be spared.
TEST(SchedulerTest, theLastBlockServesOneAlone) {
  Fixture f;
  f.capacity.groups = {{4, 4, 0, 4}};
  f.add(16, 0, false);
  EXPECT_THAT(f.admitted(), ElementsAre(0u));
}

// Admission counts what begun prompts will need, not only what they hold.
TEST(SchedulerTest, admissionKeepsRoomForBegunPrompts) {
  Fixture f;
  f.capacity.maxStepTokens = 8;
  f.capacity.groups = {{10, 4, 0, 6}};
  f.add(24, 16, true); // two more blocks, of which this step takes one
  f.capacity.chunkTokens = 4;
  f.add(12, 0, false); // 3, and 1 to spare
  EXPECT_THAT(f.admitted(), ElementsAre(1u));
  f.available(5);
  EXPECT_THAT(f.admitted(), IsEmpty());
}

TEST(SchedulerTest, chunksAndLogitRows) {
  Fixture f;
  f.capacity.chunkTokens = 7;
  f.add(20, 0, false);
  auto result = f.schedule();
  ASSERT_EQ(result.plan.numRows(), 7);
  EXPECT_TRUE(result.plan.logitRows.empty());
  // Rows that all want logits get no more than there is room for.
  f.capacity.maxLogitRows = 5;
  f.states[0].firstLogit = 0;
  result = f.schedule();
  EXPECT_THAT(result.plan.logitRows, ElementsAre(0, 1, 2, 3, 4));
  // From a position on.
  f.states[0].firstLogit = 4;
  result = f.schedule();
  EXPECT_THAT(result.plan.logitRows, ElementsAre(4, 5, 6));
}

// A last row without room for its logits waits; the rows before it do not.
TEST(SchedulerTest, aLastRowWaitsForItsLogits) {
  Fixture f;
  f.capacity.maxLogitRows = 1;
  f.add(5, 4, true);
  f.add(5, 0, true);
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{0, 0, 1, 4}, StepSequence{1, 1, 4, 0}));
}

// Beside decoding, prompts together get the rows that were set; alone all.
TEST(SchedulerTest, promptsBesideDecodingAreLimited) {
  Fixture f;
  f.capacity.mixedPromptTokens = 5;
  f.add(30, 0, true);
  f.add(30, 0, false);
  EXPECT_EQ(f.schedule().plan.numRows(), 16);
  f.add(10, 9, true);
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{2, 0, 1, 9}, StepSequence{0, 1, 5, 0}));
}

// A budget counts what rows attend to: far into a prompt it buys fewer of them;
// what the first prompt leaves is the next one's.
TEST(SchedulerTest, promptsBesideDecodingKeepToTheirBudget) {
  Fixture f;
  f.capacity.maxStepTokens = 100;
  f.capacity.mixedPromptBudget = PromptBudget{12, 0.01};
  f.add(10, 9, true);
  f.add(400, 300, true);
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences, ElementsAre(StepSequence{0, 0, 1, 9},
                                                 StepSequence{1, 1, 2, 300}));
  f.states[1].numComputed = 396;
  f.add(30, 0, true);
  f.capacity.mixedPromptBudget->cost = 25;
  result = f.schedule(); // 4 rows from 396 on cost 19.94, 4 from 0 on 4.1
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{0, 0, 1, 9}, StepSequence{1, 1, 4, 396},
                          StepSequence{2, 5, 4, 0}));
}

// A long prompt leaves half of the budget to a much shorter one, running or waiting,
// and takes what that does not need; prompts of like length go in order.
TEST(SchedulerTest, aShortPromptNeedNotWaitForALongOne) {
  Fixture f;
  f.capacity.maxStepTokens = 100;
  f.capacity.mixedPromptBudget = PromptBudget{20, 0};
  f.add(10, 9, true);
  f.add(400, 100, true);
  f.add(30, 0, false);
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{0, 0, 1, 9}, StepSequence{1, 1, 10, 100},
                          StepSequence{2, 11, 10, 0}));
  f.states[2].isRunning = true;
  f.states[2].numComputed = 26;
  result = f.schedule();
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{0, 0, 1, 9}, StepSequence{1, 1, 16, 100},
                          StepSequence{2, 17, 4, 26}));
  f.states[1].numComputed = 350; // 50 left, 30 of the other
  f.states[2].numComputed = 0;
  result = f.schedule();
  EXPECT_THAT(result.plan.sequences, ElementsAre(StepSequence{0, 0, 1, 9},
                                                 StepSequence{1, 1, 20, 350}));
}

// However little may be spent, one prompt goes on; alone it has no budget.
TEST(SchedulerTest, aPromptGoesOnWithoutABudget) {
  Fixture f;
  f.capacity.mixedPromptBudget = PromptBudget{0, 0};
  f.add(30, 5, true);
  f.add(30, 5, true);
  EXPECT_EQ(f.schedule().plan.numRows(), 16);
  f.add(10, 9, true);
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{2, 0, 1, 9},
                          StepSequence{0, 1, kLeastPromptRows, 5}));
}

// Drafts come after every decoding sequence has its row, and are cut.
TEST(SchedulerTest, draftsTakeWhatIsLeft) {
  Fixture f;
  f.capacity.maxStepTokens = 6;
  f.add(14, 9, true).numDrafts = 4;
  f.states[0].firstLogit = 9;
  f.add(10, 9, true);
  f.add(30, 0, true);
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences,
              ElementsAre(StepSequence{0, 0, 5, 9}, StepSequence{1, 5, 1, 9}));
  EXPECT_THAT(result.plan.logitRows, ElementsAre(0, 1, 2, 3, 4, 5));
  f.capacity.maxLogitRows = 3;
  EXPECT_THAT(f.schedule().plan.sequences,
              ElementsAre(StepSequence{0, 0, 2, 9}, StepSequence{1, 2, 1, 9},
                          StepSequence{2, 3, 3, 0}));
  // Drafts take free blocks and preempt nobody.
  f.capacity.maxLogitRows = 16;
  f.capacity.groups = {{10, 4, 0, 0}};
  result = f.schedule();
  EXPECT_EQ(result.plan.sequences[0], (StepSequence{0, 0, 3, 9}));
  EXPECT_THAT(result.preempted, IsEmpty());
}

// Rows begin behind the prefix that the cache offers; its unheld blocks count
// as taken.
TEST(SchedulerTest, prefixOffers) {
  Fixture f;
  f.capacity.groups = {{10, 4, 0, 4}};
  f.add(20, 0, false);
  f.cache.offers[0] = {16, {3}};
  auto result = f.schedule();
  EXPECT_THAT(result.admitted, ElementsAre(Admission{0, 16}));
  EXPECT_THAT(result.plan.sequences, ElementsAre(StepSequence{0, 0, 4, 16}));
  EXPECT_THAT(result.plan.logitRows, ElementsAre(3));
  f.available(3); // three of the prefix and one more
  EXPECT_THAT(f.admitted(), IsEmpty());
}

// Without a block for the next token, who ranks last gives way: the newest, or
// the one of lowest priority; with all it knows it waits again.
TEST(SchedulerTest, preemptsTheLastInRank) {
  Fixture f;
  f.capacity.groups = {{6, 4, 0, 0}};
  for (int i = 0; i < 3; ++i)
    f.add(9, 8, true);
  for (std::uint64_t id = 0; id < 3; ++id)
    f.cache.held[id] = {2};
  f.add(4, 0, false);
  auto result = f.schedule();
  EXPECT_THAT(result.preempted, ElementsAre(2u));
  EXPECT_EQ(result.plan.sequences.size(), 2u);
  EXPECT_THAT(result.admitted, IsEmpty()); // not in a step that preempts
  f.states[1].priority = 1;
  EXPECT_THAT(f.schedule().preempted, ElementsAre(1u));
  // An overdue one ranks by age.
  f.states[1].ageSeconds = 31;
  EXPECT_THAT(f.schedule().preempted, ElementsAre(2u));
  f.policy.agingSeconds = 0;
  EXPECT_THAT(f.schedule().preempted, ElementsAre(1u));
  f.policy.order = QueueOrder::FirstCome;
  EXPECT_THAT(f.schedule().preempted, ElementsAre(2u));
}

// When what the victims share does not count as releasable, the plan may be
// empty; the caller asks again. One alone is never preempted.
TEST(SchedulerTest, preemptionEndsWithOne) {
  Fixture f;
  f.capacity.groups = {{6, 4, 0, 0}};
  f.add(9, 8, true);
  f.add(9, 8, true);
  auto result = f.schedule();
  EXPECT_THAT(result.preempted, ElementsAre(1u));
  EXPECT_TRUE(result.plan.isEmpty());
  f.states[1].isRunning = false;
  f.states[1].numComputed = 0;
  f.available(2);
  result = f.schedule();
  EXPECT_THAT(result.preempted, IsEmpty());
  EXPECT_THAT(result.plan.sequences, ElementsAre(StepSequence{0, 0, 1, 8}));
}

// The next row of a fork needs a block for its copy of the shared one.
TEST(SchedulerTest, sharedLastBlockNeedsACopy) {
  Fixture f;
  f.capacity.groups = {{6, 4, 0, 1}};
  for (int i = 0; i < 2; ++i)
    f.add(10, 9, true).sharesLastBlock = true;
  f.cache.held[1] = {0};
  auto result = f.schedule();
  EXPECT_THAT(result.plan.sequences, ElementsAre(StepSequence{0, 0, 1, 9}));
  EXPECT_THAT(result.preempted, ElementsAre(1u));
}

// Room for all its copies is kept for a request, as far as there is any.
TEST(SchedulerTest, copiesTakeSlots) {
  Fixture f;
  f.add(4, 0, false).copies = 3;
  f.add(4, 0, false).copies = 2;
  f.add(4, 0, false);
  EXPECT_THAT(f.admitted(), ElementsAre(0u));
  f.states[0].copies = 9; // more than there are: alone
  EXPECT_THAT(f.admitted(), ElementsAre(0u));
}

// Priority, then the service of clients, then arrival.
TEST(SchedulerTest, orderOfWaiting) {
  Fixture f;
  f.capacity.maxSequences = 1;
  f.add(4, 0, false).priority = 1;
  f.add(4, 0, false);
  f.add(4, 0, false).client = 1;
  EXPECT_THAT(f.admitted(), ElementsAre(1u));
  f.service = {5, 2};
  EXPECT_THAT(f.admitted(), ElementsAre(2u));
  f.policy.fairClients = false;
  EXPECT_THAT(f.admitted(), ElementsAre(1u));
  f.states[0].ageSeconds = 30; // as if of the best priority, and first
  EXPECT_THAT(f.admitted(), ElementsAre(0u));
  f.policy.fairClients = true; // but not before a client served less
  EXPECT_THAT(f.admitted(), ElementsAre(2u));
  f.states[0].ageSeconds = 0;
  f.policy.order = QueueOrder::FirstCome;
  f.policy.fairClients = false;
  EXPECT_THAT(f.admitted(), ElementsAre(0u));
}

// Within one step too, clients take turns.
TEST(SchedulerTest, clientsTakeTurnsWithinAStep) {
  Fixture f;
  f.add(4, 0, false);
  f.add(4, 0, false);
  f.add(4, 0, false).client = 1;
  f.add(4, 0, false).client = 1;
  EXPECT_THAT(f.admitted(), ElementsAre(0u, 2u, 1u, 3u));
}

// The blocks that policy counts are those that the cache takes.
TEST(SchedulerTest, agreesWithTheCache) {
  for (std::int32_t window : {0, 16, 64, 100})
    for (std::int32_t tokens : {1, 31, 32, 33, 500})
      for (std::int32_t step : {1, 64, 512}) {
        ScheduleCapacity capacity;
        capacity.maxStepTokens = step;
        std::int32_t blocks = blocksForTokens(tokens, 32, window, step);
        capacity.groups = {{blocks, 32, window, 0}};
        EXPECT_GE(longestSequence(capacity), tokens);
        capacity.groups = {{blocks - 1, 32, window, 0}};
        EXPECT_LT(longestSequence(capacity), tokens);
      }
}

// Being away earns nothing, being there counts.
TEST(ClientServiceTest, counters) {
  ClientService service;
  service.arrive("a");
  service.charge("a", 100, 10);
  EXPECT_EQ(service.served("a"), 120);
  service.arrive("b"); // begins where the least served one is
  EXPECT_EQ(service.served("b"), 120);
  service.charge("b", 30, 0);
  service.leave("b");
  service.arrive("b"); // comes back with what it had
  EXPECT_EQ(service.served("b"), 150);
  service.leave("b");
  service.charge("a", 100, 0);
  service.arrive("b"); // and no lower than the least served present
  EXPECT_EQ(service.served("b"), 220);
  service.leave("a");
  service.leave("b");
  EXPECT_EQ(service.numClients(), 0u);
  service.arrive("a");
  EXPECT_EQ(service.served("a"), 0);
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
