// What a choice depends on, and what it is distributed as.
#include "runtime/sample/Sampler.h"
#include "runtime/sample/Noise.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

using namespace ingot;
using ::testing::HasSubstr;

namespace {

SamplerState state(SamplingParams params, std::uint64_t seed = 1) {
  return SamplerState(std::move(params), seed);
}

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

std::int32_t choose(const std::vector<float> &logits, const SamplerState &s,
                    std::int64_t position = 0) {
  Sampler sampler{std::int32_t(logits.size())};
  auto choice = sampler.sample(logits, s, position);
  EXPECT_TRUE(choice.isOk()) << choice.status().message();
  return choice->token;
}

std::vector<float> randomLogits(int size, unsigned seed, float spread = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, spread);
  std::vector<float> logits(static_cast<std::size_t>(size));
  for (float &logit : logits)
    logit = draw(random);
  return logits;
}

// The tokens that can be drawn at all, by many positions.
std::set<std::int32_t> support(const std::vector<float> &logits,
                               const SamplingParams &params, int draws = 3000) {
  std::set<std::int32_t> seen;
  Sampler sampler{std::int32_t(logits.size())};
  SamplerState s = state(params);
  for (int i = 0; i < draws; ++i)
    seen.insert(sampler.sample(logits, s, i)->token);
  return seen;
}

} // namespace

TEST(SamplerTest, greedyTakesTheLowestIdOfATie) {
  EXPECT_EQ(choose({1, 5, 5, 2}, state(greedy())), 1);
  EXPECT_EQ(choose({-INFINITY, -INFINITY, -3}, state(greedy())), 2);
  EXPECT_EQ(choose({0, 0, 0}, state(greedy())), 0);
}

// 4000 draws of [2.0, 1.5, 1.0, 0.5] follow their softmax.
TEST(SamplerTest, distributionIsTheSoftmax) {
  const std::vector<float> logits = {2.0f, 1.5f, 1.0f, 0.5f};
  double total = 0;
  for (float logit : logits)
    total += std::exp(double(logit));
  EXPECT_NEAR(std::exp(2.0) / total, 0.4551, 1e-4);
  for (std::uint64_t seed : {1u, 2u, 3u, 77u}) {
    std::vector<int> counts(4, 0);
    constexpr int kDraws = 4000;
    Sampler sampler(4);
    SamplerState s = state({}, seed);
    for (int i = 0; i < kDraws; ++i)
      ++counts[std::size_t(sampler.sample(logits, s, i)->token)];
    double chiSquare = 0;
    for (int t = 0; t < 4; ++t) {
      double expected = kDraws * std::exp(double(logits[t])) / total;
      chiSquare += (counts[t] - expected) * (counts[t] - expected) / expected;
    }
    EXPECT_LT(chiSquare, 16.27) << "3 degrees of freedom, p = 0.001";
  }
}

// A large vocabulary as well, where most candidates are skipped by a bound:
// the result is that of the plain definition.
TEST(SamplerTest, skippingChangesNothing) {
  for (float spread : {0.0f, 1.0f, 4.0f}) {
    auto logits = randomLogits(50000, 5, spread);
    Sampler sampler(50000);
    SamplingParams params;
    params.temperature = 0.8;
    SamplerState s = state(params, 42);
    for (int position = 0; position < 20; ++position) {
      std::uint64_t key = noiseKey(42, std::uint64_t(position));
      double best = -INFINITY;
      std::int32_t expected = -1;
      for (std::int32_t t = 0; t < 50000; ++t) {
        double value = double(logits[t]) * (1.0 / 0.8) +
                       gumbel(noiseUniform(noiseBits(key, std::uint64_t(t))));
        if (value > best) {
          best = value;
          expected = t;
        }
      }
      EXPECT_EQ(sampler.sample(logits, s, position)->token, expected);
    }
  }
}

// The bound on the noise holds at both ends of the hash.
TEST(SamplerTest, noiseIsBounded) {
  EXPECT_LT(gumbel(noiseUniform(0)), kMaxGumbel);
  EXPECT_TRUE(std::isfinite(gumbel(noiseUniform(~std::uint64_t(0)))));
  EXPECT_LT(noiseUniform(~std::uint64_t(0)), 1.0);
  EXPECT_GT(noiseUniform(0), 0.0);
}

// The same seed gives the same tokens, other seeds others; a choice depends on
// its position and not on the calls before it.
TEST(SamplerTest, seedAndPositionDecide) {
  auto logits = randomLogits(1000, 3);
  auto run = [&](std::uint64_t seed, bool backwards) {
    std::vector<std::int32_t> tokens(40);
    Sampler sampler(1000);
    SamplerState s = state({}, seed);
    for (int i = 0; i < 40; ++i) {
      int at = backwards ? 39 - i : i;
      tokens[std::size_t(at)] = sampler.sample(logits, s, at)->token;
    }
    return tokens;
  };
  EXPECT_EQ(run(42, false), run(42, true));
  std::set<std::vector<std::int32_t>> distinct;
  for (std::uint64_t i = 0; i < 4; ++i)
    distinct.insert(run(42 + i, false));
  EXPECT_EQ(distinct.size(), 4u);
}

// Once for each distinct id, over prompt and output alike.
TEST(SamplerTest, repetitionPenalty) {
  // A (id 0) once and B (id 1) three times; a rival at the value that the
  // penalised logit must have, a hair above or below.
  auto wins = [](std::vector<float> logits, double penalty) {
    SamplingParams params = greedy();
    params.repetitionPenalty = penalty;
    SamplerState s = state(params);
    s.addPromptToken(0);
    s.addPromptToken(1);
    EXPECT_TRUE(s.advance(1).isOk());
    EXPECT_TRUE(s.advance(1).isOk());
    return choose(logits, s);
  };
  // B: 4 / 2 = 2, not 4 / 8.
  EXPECT_EQ(wins({-2.0f, 4.0f, 1.999f}, 2.0), 1);
  EXPECT_EQ(wins({-2.0f, 4.0f, 2.001f}, 2.0), 2);
  // A: -2 * 1.5 = -3.
  EXPECT_EQ(wins({-2.0f, -INFINITY, -3.001f}, 1.5), 0);
  EXPECT_EQ(wins({-2.0f, -INFINITY, -2.999f}, 1.5), 2);
}

// Presence and frequency count the output alone.
TEST(SamplerTest, presenceAndFrequencyPenalties) {
  SamplingParams params = greedy();
  params.presencePenalty = 1;
  params.frequencyPenalty = 0.5;
  SamplerState s = state(params);
  s.addPromptToken(0);
  EXPECT_EQ(choose({3, 2.9f}, s), 0);
  ASSERT_TRUE(s.advance(0).isOk());
  EXPECT_EQ(choose({3, 1.51f}, s), 1); // 3 - 1 - 0.5
  EXPECT_EQ(choose({3, 1.49f}, s), 0);
  ASSERT_TRUE(s.advance(0).isOk());
  EXPECT_EQ(choose({3, 1.01f}, s), 1); // 3 - 1 - 1
  s.rollback(std::vector<std::int32_t>{0, 0});
  EXPECT_EQ(choose({3, 2.9f}, s), 0);
}

TEST(SamplerTest, logitBiasAndMask) {
  SamplingParams params = greedy();
  params.logitBias = {{0, -100}, {2, 4}};
  EXPECT_EQ(choose({9, 5, 2}, state(params)), 2);
  Sampler sampler(70);
  std::vector<float> logits(70, 0.0f);
  logits[69] = 5;
  std::vector<std::uint64_t> allowed = {std::uint64_t(1) << 7, 0};
  EXPECT_EQ(sampler.sample(logits, state(greedy()), 0, allowed)->token, 7);
  EXPECT_EQ(sampler.sample(logits, state({}), 3, allowed)->token, 7);
  allowed = {0, 0};
  auto none = sampler.sample(logits, state({}), 3, allowed);
  ASSERT_FALSE(none.isOk());
  EXPECT_THAT(none.status().message(), HasSubstr("no token is allowed"));
}

// 0, -1 and more than the vocabulary are all tokens; 1 is greedy.
TEST(SamplerTest, topKEdges) {
  auto logits = randomLogits(20, 1, 0.5f);
  SamplingParams all;
  for (std::int64_t k : {-1ll, 0ll, 20ll, 9999999ll}) {
    SamplingParams params;
    params.topK = k;
    for (int i = 0; i < 200; ++i)
      EXPECT_EQ(choose(logits, state(params), i),
                choose(logits, state(all), i));
  }
  SamplingParams one;
  one.topK = 1;
  EXPECT_EQ(support(logits, one, 100).size(), 1u);
  SamplingParams five;
  five.topK = 5;
  EXPECT_EQ(support(logits, five).size(), 5u);
  // Of equal logits the lower ids stay.
  EXPECT_EQ(support({1, 1, 1, 1},
                    [] {
                      SamplingParams p;
                      p.topK = 2;
                      return p;
                    }()),
            (std::set<std::int32_t>{0, 1}));
}

TEST(SamplerTest, topPEdges) {
  const std::vector<float> logits = {2.0f, 1.5f, 1.0f, 0.5f};
  auto with = [](double p) {
    SamplingParams params;
    params.topP = p;
    return params;
  };
  EXPECT_EQ(support(logits, with(0), 200), (std::set<std::int32_t>{0}));
  EXPECT_EQ(support(logits, with(1e-9), 200), (std::set<std::int32_t>{0}));
  // 0.4551 + 0.2760 = 0.7311
  EXPECT_EQ(support(logits, with(0.455), 500), (std::set<std::int32_t>{0}));
  EXPECT_EQ(support(logits, with(0.456)), (std::set<std::int32_t>{0, 1}));
  EXPECT_EQ(support(logits, with(0.732)), (std::set<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(support(logits, with(1.0)).size(), 4u);
}

// The nucleus of a large vocabulary is that of a full sort.
TEST(SamplerTest, partialSelectionEqualsASort) {
  auto logits = randomLogits(5000, 8, 1.0f);
  std::vector<std::int32_t> order(5000);
  for (int i = 0; i < 5000; ++i)
    order[std::size_t(i)] = i;
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[std::size_t(a)] > logits[std::size_t(b)];
  });
  double total = 0, sum = 0;
  for (float logit : logits)
    total += std::exp(double(logit));
  std::set<std::int32_t> nucleus;
  for (std::int32_t token : order) {
    nucleus.insert(token);
    sum += std::exp(double(logits[std::size_t(token)])) / total;
    if (sum >= 0.2)
      break;
  }
  ASSERT_GT(nucleus.size(), 128u) << "more than one round of selection";
  SamplingParams params;
  params.topP = 0.2;
  for (std::int32_t token : support(logits, params, 3000))
    EXPECT_TRUE(nucleus.count(token)) << token;
}

TEST(SamplerTest, minP) {
  const std::vector<float> logits = {2.0f, 1.5f, 1.0f, 0.5f};
  SamplingParams params;
  params.minP = 0.5; // exp(-0.5) = 0.61, exp(-1) = 0.37
  EXPECT_EQ(support(logits, params), (std::set<std::int32_t>{0, 1}));
  params.temperature = 2; // exp(-0.5) for id 2, exp(-0.75) = 0.47 for id 3
  EXPECT_EQ(support(logits, params), (std::set<std::int32_t>{0, 1, 2}));
  params.topP = 0.5;
  params.topK = 3;
  EXPECT_EQ(support(logits, params), (std::set<std::int32_t>{0, 1}));
  params = {};
  params.minP = 1;
  EXPECT_EQ(support(logits, params, 200), (std::set<std::int32_t>{0}));
}

// Log-probabilities are the model's own, whatever the filters.
TEST(SamplerTest, logprobs) {
  SamplingParams params = greedy();
  params.logprobs = 3;
  params.logitBias = {{3, 100}};
  Sampler sampler(4);
  auto choice = sampler.sample(std::vector<float>{2.0f, 1.5f, 1.0f, 1.5f},
                               state(params), 0);
  ASSERT_TRUE(choice.isOk());
  EXPECT_EQ(choice->token, 3);
  double total = std::exp(2.0) + 2 * std::exp(1.5) + std::exp(1.0);
  EXPECT_NEAR(choice->logprob, 1.5 - std::log(total), 1e-9);
  ASSERT_EQ(choice->top.size(), 3u);
  EXPECT_EQ(choice->top[0].token, 0);
  EXPECT_EQ(choice->top[1].token, 1);
  EXPECT_EQ(choice->top[2].token, 3);
  EXPECT_NEAR(choice->top[0].logprob, 2.0 - std::log(total), 1e-9);
  params.logprobs = 20; // more than there are
  EXPECT_EQ(
      sampler.sample(std::vector<float>(4, 0.0f), state(params), 0)->top.size(),
      4u);
}

// A NaN ends the request with a reason; infinities are limits.
TEST(SamplerTest, nonFiniteLogits) {
  Sampler sampler(3);
  auto failed =
      sampler.sample(std::vector<float>{0, NAN, 1}, state(greedy()), 17);
  ASSERT_FALSE(failed.isOk());
  EXPECT_THAT(failed.status().message(), HasSubstr("position 17 hold NaN"));
  EXPECT_EQ(choose({0, INFINITY, 1}, state({})), 1);
  EXPECT_EQ(choose({-INFINITY, -INFINITY, 1}, state({})), 2);
}
