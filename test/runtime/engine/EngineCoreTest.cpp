// Requests over the tiny model: a step is plan, reserve, run, commit or
// release; requests end in every way without touching one another.
#include "test/runtime/engine/CoreHarness.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

// Fails the n-th run.
class FailingExecutor final : public Executor {
public:
  FailingExecutor(Executor &inner, int failAt) : inner_(inner), left_(failAt) {}
  const StepLimits &limits() const override { return inner_.limits(); }
  Status run(const StepPlan &plan, const KvCache &cache) override {
    if (left_-- == 0)
      return Status::internal("planned failure");
    return inner_.run(plan, cache);
  }
  std::span<const float> logits(std::int32_t row) const override {
    return inner_.logits(row);
  }
  void setProfiling(bool) override {}
  std::vector<LaunchProfile> profile() const override { return {}; }

private:
  Executor &inner_;
  int left_;
};

} // namespace

// Alone or with others, whole or in chunks, on few blocks or many: the same
// tokens, greedy and sampled, with penalties.
TEST(EngineCoreTest, tokensDoNotDependOnCompany) {
  std::map<unsigned, std::vector<std::int32_t>> expected;
  auto make = [](unsigned salt) {
    TokenRequest made = request(5 + int(salt) * 11, 20, salt);
    made.sampling.temperature = salt % 2 ? 1.0 : 0.0;
    if (salt % 3 == 0)
      made.sampling.repetitionPenalty = 1.3;
    if (salt % 3 == 1)
      made.sampling.topK = 5;
    return made;
  };
  for (unsigned salt = 0; salt < 6; ++salt) {
    CoreHarness alone;
    expected[salt] = alone.runOne(make(salt)).tokens;
  }
  for (int sequences : {1, 2, 6})
    for (int chunk : {0, 1, 7}) {
      ContractOptions contract;
      contract.sequences = sequences;
      contract.stepTokens = 64;
      contract.workers = 2;
      CoreOptions options;
      options.chunkTokens = chunk;
      KvCacheOptions cache;
      cache.poisonFreeBlocks = true;
      cache.shuffleSeed = 4;
      CoreHarness harness(contract, cache, options);
      std::map<unsigned, RequestId> ids;
      for (unsigned salt = 0; salt < 6; ++salt)
        ids[salt] = *harness.submit(make(salt));
      ASSERT_TRUE(harness.core.runUntilIdle().isOk());
      for (unsigned salt = 0; salt < 6; ++salt)
        EXPECT_EQ(harness.outcomes[ids[salt]].tokens, expected[salt])
            << sequences << " sequences, chunks of " << chunk;
      EXPECT_EQ(harness.availableBlocks(),
                harness.runner.contract.states[0].blocks);
    }
}

// Each way to end, and what it is called.
TEST(EngineCoreTest, finishReasons) {
  CoreOptions options;
  CoreHarness plain;
  TokenRequest greedy = request(4, 8);
  greedy.sampling.temperature = 0;
  auto whole = plain.runOne(greedy);
  EXPECT_EQ(whole.reason, FinishReason::Length);
  ASSERT_EQ(whole.tokens.size(), 8u);
  EXPECT_EQ(whole.promptTokens, 4);
  // A stop id of the request: cut before it.
  TokenRequest stopping = greedy;
  stopping.stopIds = {whole.tokens[3]};
  auto stopped = plain.runOne(stopping);
  EXPECT_EQ(stopped.reason, FinishReason::Stop);
  EXPECT_LE(stopped.tokens.size(), 3u);
  // The model's own end, and ignoring it.
  options.eosIds = {whole.tokens[0]};
  CoreHarness ending({}, {}, options);
  EXPECT_TRUE(ending.runOne(greedy).tokens.empty());
  TokenRequest ignoring = greedy;
  ignoring.ignoreEos = true;
  EXPECT_EQ(ending.runOne(ignoring).tokens, whole.tokens);
  // The receiver's word.
  TokenRequest shy = greedy;
  shy.onToken = [count = 0](std::int32_t, const Choice &) mutable {
    return ++count < 2;
  };
  auto cut = plain.runOne(shy);
  EXPECT_EQ(cut.reason, FinishReason::Stop);
  EXPECT_EQ(cut.tokens.size(), 2u);
  // No token asked for.
  EXPECT_EQ(plain.runOne(request(4, 0)).reason, FinishReason::Length);
  // The end of the context.
  options = {};
  options.context = 20;
  CoreHarness small({}, {}, options);
  auto full = small.runOne(request(15, -1));
  EXPECT_EQ(full.reason, FinishReason::Length);
  EXPECT_EQ(full.tokens.size(), 5u);
  EXPECT_EQ(small.runOne(request(15, 1000)).tokens.size(), 5u);
}

// What can never run is refused, by name and numbers; what comes after runs.
TEST(EngineCoreTest, refusals) {
  CoreOptions options;
  options.context = 20;
  CoreHarness harness({}, {}, options);
  auto refuse = [&](TokenRequest bad, const char *message) {
    auto id = harness.submit(std::move(bad));
    ASSERT_FALSE(id.isOk()) << message;
    EXPECT_THAT(id.status().message(), HasSubstr(message));
  };
  refuse(request(20, 1), "prompt has 20 tokens, the context holds 20");
  refuse(request(0, 1), "prompt is empty");
  refuse(request(4, -2), "max_tokens is -2");
  TokenRequest bad = request(4, 1);
  bad.prompt[2] = 40;
  refuse(bad, "prompt[2]: token id 40 is outside the vocabulary of 40");
  bad.prompt[2] = -1;
  refuse(bad, "token id -1");
  bad = request(4, 1);
  bad.stopIds = {3, 99};
  refuse(bad, "stop_token_ids[1]: token id 99");
  bad = request(4, 1);
  bad.sampling.topP = 1.5;
  refuse(bad, "top_p is 1.5");
  bad = request(4, 1);
  bad.sampling.logitBias = {{99, 1}};
  refuse(bad, "token id 99");
  ScoreRequest empty;
  EXPECT_FALSE(harness.core.submit(empty, {}).isOk());
  TokenRequest zero = request(1, 2);
  zero.prompt = {0};
  EXPECT_EQ(harness.runOne(zero).tokens.size(), 2u);
}

// Cancelled while waiting, while its prompt runs, while it decodes, and from
// inside its own or another's receiver: only that one ends, all blocks return.
TEST(EngineCoreTest, cancelInEveryState) {
  ContractOptions contract;
  contract.sequences = 2;
  CoreOptions options;
  options.chunkTokens = 7;
  CoreHarness harness(contract, {}, options);
  std::int32_t all = harness.availableBlocks();
  auto kept = *harness.submit(request(10, 30, 1));
  auto cut = *harness.submit(request(100, 30, 2));
  auto waiting = *harness.submit(request(10, 30, 3));
  ASSERT_TRUE(harness.core.step().isOk());
  EXPECT_TRUE(harness.core.cancel(waiting));
  EXPECT_TRUE(harness.core.cancel(cut)); // in the middle of its prompt
  EXPECT_FALSE(harness.core.cancel(cut));
  RequestId self = 0;
  TokenRequest own = request(5, 30, 4);
  own.onToken = [&](std::int32_t, const Choice &) {
    harness.core.cancel(self);
    return true;
  };
  self = *harness.submit(std::move(own));
  RequestId victim = 0;
  TokenRequest killer = request(5, 3, 5);
  killer.onToken = [&](std::int32_t, const Choice &) {
    harness.core.cancel(victim);
    return true;
  };
  auto killerId = *harness.submit(std::move(killer));
  victim = *harness.submit(request(5, 200, 6));
  ASSERT_TRUE(harness.core.runUntilIdle().isOk());
  EXPECT_EQ(harness.outcomes[cut].reason, FinishReason::Cancelled);
  EXPECT_EQ(harness.outcomes[waiting].reason, FinishReason::Cancelled);
  EXPECT_EQ(harness.outcomes[self].reason, FinishReason::Cancelled);
  EXPECT_EQ(harness.outcomes[victim].reason, FinishReason::Cancelled);
  EXPECT_EQ(harness.outcomes[killerId].tokens.size(), 3u);
  EXPECT_EQ(harness.outcomes[kept].tokens.size(), 30u);
  EXPECT_EQ(harness.availableBlocks(), all);
  CoreHarness alone;
  EXPECT_EQ(harness.outcomes[kept].tokens,
            alone.runOne(request(10, 30, 1)).tokens);
}

// A step that fails leaves requests as they were; the next try goes on.
TEST(EngineCoreTest, failedStepReleases) {
  TokenRequest wanted = request(40, 10, 3);
  CoreHarness plain;
  auto expected = plain.runOne(wanted).tokens;
  for (int failAt : {0, 1, 2, 5}) {
    TinyRunner runner({}, {});
    FailingExecutor failing(*runner.executor, failAt);
    CoreOptions options;
    options.context = 256;
    options.chunkTokens = 16;
    EngineCore core(failing, *runner.cache, options);
    std::vector<std::int32_t> tokens;
    ASSERT_TRUE(
        core.submit(wanted,
                    [&](const RequestOutcome &done) { tokens = done.tokens; })
            .isOk());
    int failures = 0;
    while (!core.isIdle()) {
      std::int32_t before = runner.cache->allocator(0).numAvailable();
      Status status = core.step();
      if (!status) {
        ++failures;
        EXPECT_EQ(runner.cache->allocator(0).numAvailable(), before);
      }
      ASSERT_TRUE(runner.cache->checkInvariants().isOk());
    }
    EXPECT_EQ(failures, 1);
    EXPECT_EQ(tokens, expected) << "failure at step " << failAt;
  }
}

// Scoring gives every position in order, in any chunks, beside a generation.
TEST(EngineCoreTest, score) {
  auto tokens = request(90, 0).prompt;
  auto run = [&](int logitRows, bool company) {
    ContractOptions contract;
    contract.logitRows = logitRows;
    contract.stepTokens = 64;
    contract.sequences = 2;
    CoreHarness harness(contract);
    std::vector<std::vector<float>> rows;
    ScoreRequest score;
    score.tokens = tokens;
    score.onLogits = [&](std::int32_t position, std::span<const float> logits) {
      EXPECT_EQ(std::size_t(position), rows.size());
      rows.emplace_back(logits.begin(), logits.end());
    };
    if (company) {
      EXPECT_TRUE(harness.submit(request(5, 40)).isOk());
    }
    EXPECT_TRUE(harness.core.submit(std::move(score), {}).isOk());
    EXPECT_TRUE(harness.core.runUntilIdle().isOk());
    return rows;
  };
  auto expected = run(512, false);
  ASSERT_EQ(expected.size(), tokens.size());
  EXPECT_EQ(run(1, false), expected);
  EXPECT_EQ(run(128, true), expected);
}
