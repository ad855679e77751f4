// Binding and running, with kernels whose results are known to be a token's
// own: any difference is the executor's.
#include "test/runtime/execute/cpu/TinyRunner.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

using Logits = std::vector<std::vector<float>>;

std::vector<std::int32_t> tokensOf(int length, int salt = 0) {
  std::mt19937 random(static_cast<unsigned>(salt + 1));
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < length; ++i)
    tokens.push_back(std::int32_t(random() % 40));
  return tokens;
}

// Runs sequences side by side in chunks; logits of every position.
std::vector<Logits> runAll(TinyRunner &runner,
                           const std::vector<std::vector<std::int32_t>> &inputs,
                           int chunk) {
  std::vector<Logits> results(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(runner.cache->addSequence(i + 1).isOk());
  for (bool more = true; more;) {
    StepPlan plan;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      auto done = std::int32_t(results[i].size());
      std::int32_t rows =
          std::min(chunk, std::int32_t(inputs[i].size()) - done);
      if (rows <= 0)
        continue;
      plan.sequences.push_back({i + 1, plan.numRows(), rows, done});
      for (std::int32_t r = 0; r < rows; ++r) {
        plan.logitRows.push_back(plan.numRows());
        plan.tokens.push_back(inputs[i][std::size_t(done + r)]);
      }
      EXPECT_TRUE(runner.cache->reserve(i + 1, rows).isOk());
    }
    more = !plan.isEmpty();
    if (!more)
      break;
    Status status = runner.executor->run(plan, *runner.cache);
    EXPECT_TRUE(status.isOk()) << status.message();
    std::int32_t row = 0;
    for (const StepSequence &rows : plan.sequences) {
      runner.cache->commit(rows.id, rows.numRows);
      for (std::int32_t r = 0; r < rows.numRows; ++r) {
        auto logits = runner.executor->logits(row++);
        results[rows.id - 1].emplace_back(logits.begin(), logits.end());
      }
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    runner.cache->removeSequence(i + 1);
  return results;
}

ContractOptions options(int workers, int sequences = 1) {
  ContractOptions result;
  result.workers = workers;
  result.sequences = sequences;
  result.logitRows = 512;
  return result;
}

} // namespace

// One sequence whole, in chunks, by many threads, with shuffled and poisoned
// blocks, and among others: the same bits.
TEST(CpuExecutorTest, aTokensBitsAreItsOwn) {
  auto tokens = tokensOf(100);
  TinyRunner alone(options(1), {});
  Logits expected = runAll(alone, {tokens}, 512)[0];
  ASSERT_EQ(expected.size(), 100u);
  EXPECT_NE(expected[0], expected[1]);
  for (float value : expected[99])
    EXPECT_TRUE(std::isfinite(value));
  KvCacheOptions hard;
  hard.poisonFreeBlocks = true;
  hard.shuffleSeed = 9;
  for (int workers : {1, 2, 5})
    for (int chunk : {1, 2, 7, 32, 100}) {
      TinyRunner runner(options(workers, 4), hard);
      EXPECT_EQ(runAll(runner, {tokens}, chunk)[0], expected)
          << workers << " workers, chunks of " << chunk;
      auto among = runAll(
          runner, {tokensOf(37, 1), tokens, tokensOf(3, 2), tokensOf(64, 3)},
          chunk);
      EXPECT_EQ(among[1], expected) << chunk << " in a batch";
    }
}

// A windowed state gives up blocks that no query sees.
TEST(CpuExecutorTest, windowedStateStaysExact) {
  auto tokens = tokensOf(200);
  KvCacheOptions poison;
  poison.poisonFreeBlocks = true;
  TinyRunner whole(options(1), {}, 40);
  Logits expected = runAll(whole, {tokens}, 200)[0];
  for (int chunk : {1, 7, 33}) {
    TinyRunner runner(options(2), poison, 40);
    EXPECT_EQ(runAll(runner, {tokens}, chunk)[0], expected) << chunk;
  }
}

// The variant is the plan's for the row count, and no other.
TEST(CpuExecutorTest, variantsAreLookedUp) {
  TinyRunner runner(options(1), {});
  auto uses = [&] {
    std::map<std::string, std::uint64_t> count;
    for (const auto &use : runner.executor->variantUses())
      if (use.launch == "layer.0.qkv")
        count[use.kernel] = use.uses;
    return count;
  };
  runAll(runner, {tokensOf(2)}, 2);
  EXPECT_EQ(uses()["linear_4"], 1u);
  EXPECT_EQ(uses()["linear_5"], 0u);
  runAll(runner, {tokensOf(3)}, 3);
  EXPECT_EQ(uses()["linear_4"], 1u);
  EXPECT_EQ(uses()["linear_5"], 1u);
}

// What a step lacks is an error; the executor runs on.
TEST(CpuExecutorTest, refusesWhatIsNotReserved) {
  TinyRunner runner(options(1), {});
  ASSERT_TRUE(runner.cache->addSequence(1).isOk());
  StepPlan plan;
  plan.sequences = {{1, 0, 1, 0}};
  plan.tokens = {3};
  plan.logitRows = {0};
  EXPECT_THAT(runner.executor->run(plan, *runner.cache).message(),
              HasSubstr("0 blocks reserved, the step needs 1"));
  ASSERT_TRUE(runner.cache->reserve(1, 1).isOk());
  plan.tokens = {40};
  EXPECT_THAT(runner.executor->run(plan, *runner.cache).message(),
              HasSubstr("vocabulary of 40"));
  plan.tokens = {39};
  EXPECT_TRUE(runner.executor->run(plan, *runner.cache).isOk());
  EXPECT_EQ(runner.executor->logits(0).size(), 40u);
  EXPECT_TRUE(runner.executor->logits(1).empty());
}

// The profile counts calls and bytes of what ran, and nothing when off.
TEST(CpuExecutorTest, profile) {
  TinyRunner runner(options(1), {});
  runAll(runner, {tokensOf(4)}, 4);
  for (const LaunchProfile &launch : runner.executor->profile())
    EXPECT_EQ(launch.calls, 0u);
  runner.executor->setProfiling(true);
  runAll(runner, {tokensOf(4)}, 2);
  for (const LaunchProfile &launch : runner.executor->profile()) {
    EXPECT_EQ(launch.calls, 2u) << launch.name;
    EXPECT_GT(launch.bytes, 0) << launch.name;
    EXPECT_GE(launch.seconds, 0) << launch.name;
    if (launch.name == "layer.0.qkv")
      EXPECT_GE(launch.bytes, 2.0 * 128 * 32 * 4);
  }
}
