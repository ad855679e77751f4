// Many requests on little room: copies, prefixes, preemption, queues. What a
// request says never depends on any of it.
#include "test/runtime/engine/CoreHarness.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

ContractOptions tight(std::int32_t sequences, std::uint64_t blocks) {
  ContractOptions contract;
  contract.sequences = sequences;
  contract.stepTokens = 64;
  contract.kvBytes = bytesOfBlocks(blocks);
  return contract;
}

KvCacheOptions harsh(unsigned seed) {
  KvCacheOptions cache;
  cache.poisonFreeBlocks = true;
  cache.shuffleSeed = seed;
  return cache;
}

} // namespace

// Copy i is what a request with seed + i says, and the prompt runs once.
TEST(ServingTest, copiesAreRequestsWithTheNextSeeds) {
  TokenRequest wanted = request(45, 12, 9);
  wanted.sampling.repetitionPenalty = 1.2;
  wanted.copies = 4;
  std::vector<std::vector<std::int32_t>> expected;
  for (std::int32_t copy = 0; copy < 4; ++copy) {
    CoreHarness alone;
    TokenRequest one = wanted;
    one.copies = 1;
    one.sampling.seed = seedOfCopy(9, copy);
    expected.push_back(alone.runOne(one).tokens);
  }
  EXPECT_NE(expected[0], expected[1]);
  for (std::int32_t sequences : {1, 2, 4, 6})
    for (bool reuse : {true, false}) {
      ContractOptions contract;
      contract.sequences = sequences;
      CoreHarness harness(contract, harsh(2));
      std::vector<std::vector<std::int32_t>> streamed(4);
      wanted.reusePrefix = reuse;
      wanted.onToken = [&](std::int32_t copy, const Choice &choice) {
        streamed[std::size_t(copy)].push_back(choice.token);
        return true;
      };
      auto id = harness.submit(wanted);
      ASSERT_TRUE(id.isOk());
      ASSERT_TRUE(harness.core.runUntilIdle().isOk());
      for (std::int32_t copy = 0; copy < 4; ++copy) {
        const RequestOutcome &done = harness.copies.at({*id, copy});
        EXPECT_EQ(done.tokens, expected[std::size_t(copy)]);
        EXPECT_EQ(streamed[std::size_t(copy)], done.tokens);
        EXPECT_EQ(done.seed, 9u + std::uint64_t(copy));
      }
      if (sequences >= 4) {
        EXPECT_EQ(harness.core.counters().promptRows, 45u);
      }
      EXPECT_EQ(harness.core.metrics().kvBlocksUsed, 0);
    }
}

// X09: without a seed each request draws its own, which is told and gives the
// same tokens again.
TEST(ServingTest, absentSeedsAreFresh) {
  CoreHarness harness;
  TokenRequest wanted = request(9, 24, 3);
  wanted.sampling.temperature = 1;
  wanted.sampling.seed.reset();
  std::vector<RequestOutcome> said;
  for (int i = 0; i < 3; ++i) {
    said.push_back(harness.runOne(wanted));
    for (int j = 0; j < i; ++j) {
      EXPECT_NE(said[i].seed, said[j].seed);
      EXPECT_NE(said[i].tokens, said[j].tokens);
    }
  }
  for (const RequestOutcome &each : said) {
    wanted.sampling.seed = each.seed;
    EXPECT_EQ(harness.runOne(wanted).tokens, each.tokens);
  }
}

// Copies share whole blocks of the prompt: four of five blocks take far fewer
// than four times five.
TEST(ServingTest, copiesShareBlocks) {
  ContractOptions contract;
  contract.sequences = 4;
  CoreHarness harness(contract);
  TokenRequest wanted = request(140, 5, 1);
  wanted.copies = 4;
  ASSERT_TRUE(harness.submit(wanted).isOk());
  while (harness.core.metrics().generatedTokens < 8)
    ASSERT_TRUE(harness.core.step().isOk());
  EXPECT_EQ(harness.core.metrics().running, 4);
  EXPECT_EQ(harness.core.metrics().kvBlocksUsed, 4 + 4);
}

// A request that is cancelled ends all its copies, those that have not come
// to be too; one copy may end alone.
TEST(ServingTest, copiesEnd) {
  ContractOptions contract;
  contract.sequences = 3;
  CoreHarness harness(contract);
  std::int32_t all = harness.availableBlocks();
  TokenRequest wanted = request(100, 50, 1);
  wanted.copies = 5;
  auto early = *harness.submit(wanted);
  EXPECT_TRUE(harness.core.cancel(early));
  auto late = *harness.submit(wanted);
  while (harness.core.metrics().generatedTokens < 10)
    ASSERT_TRUE(harness.core.step().isOk());
  EXPECT_TRUE(harness.core.cancel(late));
  EXPECT_FALSE(harness.core.cancel(late));
  for (RequestId id : {early, late})
    for (std::int32_t copy = 0; copy < 5; ++copy)
      EXPECT_EQ(harness.copies.at({id, copy}).reason, FinishReason::Cancelled);
  EXPECT_TRUE(harness.core.isIdle());
  EXPECT_EQ(harness.availableBlocks(), all);
  // The receiver of copy 1 has had enough.
  wanted.copies = 2;
  wanted.maxTokens = 9;
  wanted.onToken = [](std::int32_t copy, const Choice &) { return copy == 0; };
  auto id = *harness.submit(wanted);
  ASSERT_TRUE(harness.core.runUntilIdle().isOk());
  EXPECT_EQ(harness.copies.at({id, 0}).tokens.size(), 9u);
  EXPECT_EQ(harness.copies.at({id, 1}).tokens.size(), 1u);
  wanted.copies = 0;
  EXPECT_THAT(harness.submit(wanted).status().message(), HasSubstr("n is 0"));
}

// Two requests that do not both fit: one is preempted after it has produced
// tokens. Tokens, penalties, noise and log-probabilities are carried over, and
// nothing is said twice.
TEST(ServingTest, preemptionIsInvisible) {
  for (int kind = 0; kind < 4; ++kind) {
    auto make = [&](unsigned salt) {
      TokenRequest made = request(5, 101, salt);
      made.sampling.temperature = kind == 0 ? 0 : 1;
      made.sampling.repetitionPenalty = kind == 2 ? 1.3 : 1;
      made.sampling.frequencyPenalty = kind == 2 ? 0.5 : 0;
      made.sampling.logprobs = kind == 3 ? 3 : -1;
      return made;
    };
    using Said = std::vector<std::pair<std::int32_t, double>>;
    auto listen = [](TokenRequest made, Said &said) {
      made.onToken = [&said](std::int32_t, const Choice &choice) {
        said.emplace_back(choice.token, choice.logprob);
        return true;
      };
      return made;
    };
    std::map<unsigned, Said> expected;
    for (unsigned salt : {1, 2, 3}) {
      CoreHarness alone;
      alone.runOne(listen(make(salt), expected[salt]));
      EXPECT_EQ(expected[salt].size(), 101u);
    }
    CoreHarness harness(tight(3, 6), harsh(5)); // four blocks each at the end
    std::map<unsigned, Said> said;
    std::map<unsigned, RequestId> ids;
    for (unsigned salt : {1, 2, 3})
      ids[salt] = *harness.submit(listen(make(salt), said[salt]));
    ASSERT_TRUE(harness.core.runUntilIdle().isOk());
    EXPECT_EQ(said, expected) << "kind " << kind;
    EXPECT_GT(harness.core.metrics().preemptions, 0u);
    EXPECT_EQ(harness.outcomes[ids[1]].preemptions, 0); // the first in rank
    EXPECT_GT(harness.outcomes[ids[3]].preemptions, 0);
    EXPECT_EQ(harness.core.metrics().kvBlocksUsed, 0);
  }
}

// What the rotation of a sequence is chosen by is fixed when it is admitted:
// chunks, preemption and copies do not change it.
TEST(ServingTest, rotaryLengthStays) {
  for (auto scaling : {fbs::RopeScaling::dynamic, fbs::RopeScaling::listed}) {
    CoreOptions options;
    options.rotary = {scaling, 32};
    options.chunkTokens = 3;
    CoreHarness harness(tight(3, 6), harsh(5), options);
    std::map<std::uint64_t, std::int32_t> expected, seen;
    for (std::int32_t salt : {1, 2, 3}) {
      TokenRequest made = request(4 + salt, 90 + salt, unsigned(salt));
      made.copies = salt == 3 ? 2 : 1;
      auto id = harness.submit(made);
      ASSERT_TRUE(id.isOk());
      for (std::int32_t copy = 0; copy < made.copies; ++copy)
        expected[*id + std::uint64_t(copy)] =
            scaling == fbs::RopeScaling::dynamic ? 4 + salt : 94 + 2 * salt;
    }
    while (!harness.core.isIdle()) {
      ASSERT_TRUE(harness.core.step().isOk());
      for (const StepSequence &rows : harness.core.latestPlan().sequences) {
        seen.emplace(rows.id, rows.rotaryLength);
        ASSERT_EQ(rows.rotaryLength, expected[rows.id]) << rows.id;
      }
    }
    EXPECT_EQ(seen, expected);
    EXPECT_GT(harness.core.metrics().preemptions, 0u);
  }
}

// Keys that were rotated otherwise are of no use.
TEST(ServingTest, prefixesOfAnotherRotation) {
  auto cached = [](CoreHarness &harness, int length, int maxTokens) {
    TokenRequest made = request(140, maxTokens, 6);
    made.prompt.resize(std::size_t(length));
    return harness.runOne(std::move(made)).cachedTokens;
  };
  CoreOptions options;
  CoreHarness fixed({}, {}, options);
  EXPECT_EQ(cached(fixed, 40, 2), 0);
  EXPECT_EQ(cached(fixed, 70, 2), 32);
  EXPECT_EQ(cached(fixed, 100, 2), 64);
  // By the prompt's length, beyond the original one.
  options.rotary = {fbs::RopeScaling::dynamic, 64};
  CoreHarness dynamic({}, {}, options);
  EXPECT_EQ(cached(dynamic, 40, 2), 0);
  EXPECT_EQ(cached(dynamic, 64, 30), 32);
  EXPECT_EQ(cached(dynamic, 70, 2), 0);
  EXPECT_EQ(cached(dynamic, 100, 2), 0);
  EXPECT_EQ(cached(dynamic, 70, 9), 64);
  EXPECT_EQ(cached(dynamic, 100, 9), 96);
  // By the length that the sequence may reach: two kinds.
  options.rotary = {fbs::RopeScaling::listed, 64};
  CoreHarness listed({}, {}, options);
  EXPECT_EQ(cached(listed, 40, 2), 0);
  EXPECT_EQ(cached(listed, 50, 14), 32);
  EXPECT_EQ(cached(listed, 50, 15), 0);
  EXPECT_EQ(cached(listed, 100, 2), 32);
  EXPECT_EQ(cached(listed, 50, 2), 32);
}

// A pool smaller than the context: what can never run is refused with both
// numbers, what would outgrow the pool ends with its length, the next runs.
TEST(ServingTest, poolSmallerThanTheContext) {
  ContractOptions contract;
  contract.kvBytes = bytesOfBlocks(3);
  CoreOptions options;
  options.context = 256; // more than the pool holds
  CoreHarness harness(contract, {}, options);
  EXPECT_EQ(harness.core.options().context, 96);
  auto refused = harness.submit(request(97, 1));
  ASSERT_FALSE(refused.isOk());
  EXPECT_THAT(refused.status().message(),
              HasSubstr("prompt has 97 tokens, the context holds 96"));
  auto grown = harness.runOne(request(90, 100));
  EXPECT_EQ(grown.reason, FinishReason::Length);
  EXPECT_EQ(grown.tokens.size(), 6u);
  EXPECT_EQ(harness.runOne(request(10, 3)).tokens.size(), 3u);
}

// A later request computes only what is new, and says the same.
TEST(ServingTest, prefixesAreNotComputedAgain) {
  for (std::uint32_t window : {0u, 48u}) {
    ContractOptions contract;
    contract.stepTokens = 64;
    CoreHarness harness(contract, harsh(3), {}, window);
    auto make = [](unsigned salt) {
      TokenRequest made = request(200, 10, 5);
      for (unsigned i = 180; i < 200; ++i)
        made.prompt[i] = std::int32_t((i * 7 + salt) % 40);
      made.sampling.temperature = 1;
      return made;
    };
    std::vector<RequestOutcome> expected;
    for (unsigned salt : {0, 1}) {
      CoreHarness alone(contract, {}, {}, window);
      TokenRequest fresh = make(salt);
      fresh.reusePrefix = false;
      expected.push_back(alone.runOne(fresh));
      EXPECT_EQ(expected.back().cachedTokens, 0);
      EXPECT_EQ(alone.core.metrics().prefixQueryTokens, 0u);
    }
    auto first = harness.runOne(make(0));
    EXPECT_EQ(first.tokens, expected[0].tokens);
    EXPECT_EQ(harness.core.counters().promptRows, 200u);
    EXPECT_GT(harness.core.metrics().kvBlocksReusable, 0);
    auto second = harness.runOne(make(1));
    EXPECT_EQ(second.tokens, expected[1].tokens);
    EXPECT_EQ(second.cachedTokens, 160);
    EXPECT_EQ(harness.core.counters().promptRows, 240u);
    // Its output is a prefix too: the next turn of a conversation.
    TokenRequest turn = make(1);
    turn.prompt.insert(turn.prompt.end(), second.tokens.begin(),
                       second.tokens.end());
    turn.prompt.resize(200 + 10);
    turn.prompt.insert(turn.prompt.end(), 20, 7);
    EXPECT_EQ(harness.runOne(turn).cachedTokens, 192);
    // Another tenant, and a request that wants no reuse.
    TokenRequest other = make(0);
    other.cacheSalt = "other";
    EXPECT_EQ(harness.runOne(other).cachedTokens, 0);
    other.cacheSalt.clear();
    other.reusePrefix = false;
    EXPECT_EQ(harness.runOne(other).tokens, expected[0].tokens);
    EngineMetrics metrics = harness.core.metrics();
    EXPECT_EQ(metrics.prefixHitTokens, 160u + 192u);
    EXPECT_EQ(metrics.prefixQueryTokens, 200u + 200u + 230u + 200u);
  }
}

// Of a long shared beginning, a later request computes less than a tenth of the
// rows that the first one did.
TEST(ServingTest, aSharedBeginningCostsATenth) {
  CoreHarness harness;
  TokenRequest wanted = request(232, 2, 1);
  harness.runOne(wanted);
  std::uint64_t first = harness.core.counters().promptRows;
  for (std::size_t i = 224; i < 232; ++i)
    wanted.prompt[i] = std::int32_t((i * 3) % 40);
  harness.runOne(wanted);
  EXPECT_EQ(first, 232u);
  EXPECT_EQ(harness.core.counters().promptRows - first, 8u);
}

// Log-probabilities of a prompt: every position once, as scoring has them,
// whatever was cached and however often it was preempted.
TEST(ServingTest, promptLogprobs) {
  std::vector<std::int32_t> tokens = request(70, 0, 4).prompt;
  std::vector<double> expected;
  {
    CoreHarness scoring;
    Sampler sampler(40);
    ScoreRequest score;
    score.tokens = tokens;
    score.onLogits = [&](std::int32_t position, std::span<const float> row) {
      if (position + 1 < 70)
        expected.push_back(
            sampler.score(row, tokens[std::size_t(position) + 1], 0).logprob);
    };
    ASSERT_TRUE(scoring.core.submit(std::move(score), {}).isOk());
    ASSERT_TRUE(scoring.core.runUntilIdle().isOk());
  }
  for (int maxTokens : {0, 1, 30}) {
    CoreHarness harness(tight(3, 5), harsh(7));
    TokenRequest wanted = request(70, maxTokens, 4);
    wanted.sampling.logprobs = 2;
    harness.runOne(wanted); // leaves a prefix
    std::vector<double> said;
    wanted.onPromptToken = [&](std::int32_t position, const Choice &choice) {
      ASSERT_EQ(std::size_t(position), said.size() + 1);
      EXPECT_EQ(choice.token, tokens[std::size_t(position)]);
      EXPECT_EQ(choice.top.size(), 2u);
      EXPECT_GE(choice.top[0].logprob, choice.logprob);
      said.push_back(choice.logprob);
    };
    ASSERT_TRUE(harness.submit(request(5, 100, 1)).isOk());
    auto id = harness.submit(wanted);
    ASSERT_TRUE(id.isOk());
    ASSERT_TRUE(harness.core.runUntilIdle().isOk());
    EXPECT_EQ(said, expected);
    const RequestOutcome &done = harness.outcomes[*id];
    EXPECT_EQ(done.tokens.size(), std::size_t(maxTokens));
    EXPECT_EQ(done.cachedTokens, 0);
    EXPECT_EQ(done.reason, FinishReason::Length);
  }
}

// A full queue refuses with a status of its own, and takes more later.
TEST(ServingTest, boundedQueue) {
  CoreOptions options;
  options.maxWaiting = 2;
  CoreHarness harness({}, {}, options);
  ASSERT_TRUE(harness.submit(request(4, 30, 1)).isOk());
  ASSERT_TRUE(harness.core.step().isOk());
  ASSERT_TRUE(harness.submit(request(4, 3, 2)).isOk());
  ASSERT_TRUE(harness.submit(request(4, 3, 3)).isOk());
  auto refused = harness.submit(request(4, 3, 4));
  EXPECT_EQ(refused.status().code(), StatusCode::Busy);
  EXPECT_THAT(refused.status().message(), HasSubstr("2 requests wait"));
  EXPECT_EQ(harness.core.metrics().refused, 1u);
  EXPECT_EQ(harness.core.metrics().waiting, 2);
  ASSERT_TRUE(harness.core.runUntilIdle().isOk());
  EXPECT_TRUE(harness.submit(request(4, 3, 4)).isOk());
}

// Better priority goes first; between clients, the one served less.
TEST(ServingTest, whoGoesFirst) {
  CoreHarness harness;
  std::vector<std::string> order;
  auto add = [&](const char *name, std::int32_t priority, const char *client) {
    TokenRequest made = request(20, 5, unsigned(order.size()));
    made.priority = priority;
    made.client = client;
    ASSERT_TRUE(harness.core
                    .submit(made,
                            [&order, name](const RequestOutcome &) {
                              order.push_back(name);
                            })
                    .isOk());
  };
  add("a1", 0, "a");
  add("a2", 0, "a");
  add("low", 3, "c");
  add("a3", 0, "a");
  add("b1", 0, "b");
  add("b2", 0, "b");
  ASSERT_TRUE(harness.core.runUntilIdle().isOk());
  EXPECT_THAT(order, testing::ElementsAre("a1", "b1", "a2", "b2", "a3", "low"));
}

// Cancelled in any state, at any step: preempted, waiting after preemption,
// forked, with a prefix. All blocks come back and the others are untouched.
TEST(ServingTest, cancelAtEveryStep) {
  auto make = [](unsigned salt) {
    TokenRequest made = request(20 + int(salt) * 9, 40, salt);
    made.copies = salt == 2 ? 3 : 1;
    made.reusePrefix = salt != 3;
    return made;
  };
  std::map<unsigned, std::vector<std::int32_t>> expected;
  for (unsigned salt : {1, 2, 3}) {
    CoreHarness alone;
    expected[salt] = alone.runOne(make(salt)).tokens;
  }
  for (int at = 0; at < 60; at += 3)
    for (unsigned victim : {1, 2, 3}) {
      CoreHarness harness(tight(4, 7), harsh(unsigned(at) + 1));
      std::map<unsigned, RequestId> ids;
      for (unsigned salt : {1, 2, 3})
        ids[salt] = *harness.submit(make(salt));
      for (int step = 0; step < at && !harness.core.isIdle(); ++step)
        ASSERT_TRUE(harness.core.step().isOk());
      harness.core.cancel(ids[victim]);
      ASSERT_TRUE(harness.core.runUntilIdle().isOk());
      for (unsigned salt : {1, 2, 3})
        if (salt != victim) {
          ASSERT_EQ(harness.outcomes[ids[salt]].tokens, expected[salt]);
        }
      EXPECT_EQ(harness.core.metrics().kvBlocksUsed, 0);
      EXPECT_EQ(harness.copies.size(), 5u);
    }
}

// Sixty-four requests at once whose client goes away.
TEST(ServingTest, everyoneLeaves) {
  CoreHarness harness(tight(8, 24), harsh(1));
  std::vector<RequestId> ids;
  for (unsigned salt = 0; salt < 64; ++salt)
    ids.push_back(*harness.submit(request(100, 50, salt)));
  for (int step = 0; step < 20; ++step)
    ASSERT_TRUE(harness.core.step().isOk());
  for (RequestId id : ids)
    harness.core.cancel(id);
  EXPECT_TRUE(harness.core.isIdle());
  EXPECT_EQ(harness.core.metrics().kvBlocksUsed, 0);
  EXPECT_EQ(harness.runOne(request(100, 50, 1)).tokens.size(), 50u);
}

// What the clock says of a request is in order.
TEST(ServingTest, timings) {
  CoreHarness harness;
  ASSERT_TRUE(harness.submit(request(100, 20, 1)).isOk());
  auto second = harness.runOne(request(100, 20, 2)); // waits for the first
  EXPECT_GT(second.queueSeconds, 0);
  EXPECT_GT(second.firstTokenSeconds, second.queueSeconds);
  EXPECT_GT(second.totalSeconds, second.firstTokenSeconds);
  EXPECT_GT(second.interTokenSeconds, 0);
  EXPECT_GE(second.longestGapSeconds, second.interTokenSeconds);
  EXPECT_LE(second.firstTokenSeconds + 19 * second.interTokenSeconds,
            second.totalSeconds);
  EngineMetrics metrics = harness.core.metrics();
  EXPECT_EQ(metrics.requests, 2u);
  EXPECT_EQ(metrics.promptTokens, 200u);
  EXPECT_EQ(metrics.generatedTokens, 40u);
}
