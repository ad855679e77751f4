// A mask follows its request: it decides before any filter, goes ahead and
// back with drafts, and forks where a request does.
#include "runtime/sample/SamplerBranch.h"
#include "test/runtime/sample/ToyMasks.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

constexpr std::int32_t kVocab = 32;
constexpr std::int32_t kEnd = 30;

std::vector<float> logitsAt(int position) {
  std::mt19937 random(static_cast<unsigned>(position));
  std::normal_distribution<float> draw(0, 3);
  std::vector<float> logits(kVocab);
  for (float &logit : logits)
    logit = draw(random);
  return logits;
}

SamplerState bracketState(SamplingParams params = {}) {
  SamplerState state(std::move(params), 7);
  state.setMask(std::make_unique<BracketMask>(4, 3, kEnd));
  return state;
}

// Do the tokens close what they open?
bool isBalanced(const std::vector<std::int32_t> &tokens, std::size_t most) {
  std::vector<std::int32_t> open;
  for (std::int32_t token : tokens) {
    if (token < 0 || token >= 8)
      return false;
    if (token % 2 == 0)
      open.push_back(token);
    else if (open.empty() || open.back() != token - 1)
      return false;
    else
      open.pop_back();
    if (open.size() > most)
      return false;
  }
  return true;
}

} // namespace

// Greedy and sampled, under filters that see the masked row: always allowed.
TEST(LogitsMaskTest, choicesAreAllowed) {
  for (double temperature : {0.0, 0.8, 5.0})
    for (std::int64_t topK : {0, 1, 3}) {
      SamplingParams params;
      params.temperature = temperature;
      params.topK = topK;
      params.topP = 0.9;
      SamplerState state = bracketState(params);
      Sampler sampler(kVocab);
      std::vector<std::int32_t> said;
      for (int position = 0; position < 200; ++position) {
        auto token = sampler.choose(logitsAt(position), state, position);
        ASSERT_TRUE(token.isOk()) << token.status().message();
        if (*token == kEnd) // only where nothing is open
          ASSERT_TRUE(state.mask()->isAllowed(kEnd));
        else
          said.push_back(*token);
        ASSERT_TRUE(state.advance(*token).isOk());
      }
      EXPECT_TRUE(isBalanced(said, 3));
    }
}

// What a mask allows and how it biases is what the plain definition gives.
TEST(LogitsMaskTest, biasesCount) {
  SamplingParams params;
  params.temperature = 0;
  SamplerState state(params, 1);
  state.setMask(std::make_unique<RhymeMask>(2, 10.0f));
  Sampler sampler(4);
  std::vector<float> logits = {5, 4, 3, 2};
  EXPECT_EQ(*sampler.choose(logits, state, 0), 0);
  ASSERT_TRUE(state.advance(0).isOk());
  EXPECT_EQ(*sampler.choose(logits, state, 1), 2); // even, and not 0 again
  // Log-probabilities are the model's own.
  params.logprobs = 0;
  SamplerState told(params, 1);
  told.setMask(std::make_unique<RhymeMask>(2, 10.0f));
  ASSERT_TRUE(told.advance(0).isOk());
  auto choice = sampler.sample(logits, told, 1);
  double total = std::exp(5) + std::exp(4) + std::exp(3) + std::exp(2);
  EXPECT_NEAR(choice->logprob, 3 - std::log(total), 1e-9);
}

// Nothing allowed, and a token against the mask, are errors by name.
TEST(LogitsMaskTest, errors) {
  SamplerState state = bracketState();
  EXPECT_THAT(state.advance(1).message(), HasSubstr("token 1"));
  EXPECT_EQ(state.numOutput(), 0);
  EXPECT_TRUE(state.history().empty());
  Sampler sampler(kVocab);
  std::vector<float> logits(kVocab, 0.0f);
  for (std::int32_t t : {0, 2, 4, 6, kEnd})
    logits[std::size_t(t)] = -INFINITY;
  EXPECT_THAT(sampler.choose(logits, state, 3).status().message(),
              HasSubstr("no token is allowed at position 3"));
  // NaN is a fault of the model though a mask hides it.
  logits.assign(kVocab, 0.0f);
  logits[20] = NAN;
  EXPECT_THAT(sampler.choose(logits, state, 3).status().message(),
              HasSubstr("NaN"));
}

// A branch goes ahead and all of it is taken back: mask, counts, length.
TEST(LogitsMaskTest, branchesAreTakenBack) {
  SamplingParams params;
  params.frequencyPenalty = 1;
  SamplerState state = bracketState(params);
  for (std::int32_t token : {0, 2, 3})
    ASSERT_TRUE(state.advance(token).isOk());
  {
    SamplerBranch branch(state);
    for (std::int32_t token : {4, 5, 1, 0})
      ASSERT_TRUE(branch.advance(token).isOk());
    EXPECT_FALSE(branch.advance(5).isOk());
    EXPECT_EQ(branch.state().numOutput(), 7);
    branch.takeBack();
    EXPECT_EQ(state.numOutput(), 3);
    ASSERT_TRUE(branch.advance(1).isOk());
    EXPECT_TRUE(state.mask()->isAllowed(kEnd));
  }
  EXPECT_EQ(state.numOutput(), 3);
  EXPECT_EQ(state.history().size(), 3u);
  EXPECT_TRUE(state.mask()->isAllowed(1));
  EXPECT_FALSE(state.mask()->isAllowed(kEnd));
}

// Copies of a request go their own ways.
TEST(LogitsMaskTest, copiesFork) {
  SamplerState state = bracketState();
  ASSERT_TRUE(state.advance(0).isOk());
  SamplerState copy = state;
  ASSERT_TRUE(copy.advance(1).isOk());
  EXPECT_TRUE(copy.mask()->isAllowed(kEnd));
  EXPECT_FALSE(state.mask()->isAllowed(kEnd));
  ASSERT_TRUE(state.advance(2).isOk());
  SamplerState third({}, 1);
  third = state;
  ASSERT_TRUE(third.advance(3).isOk());
  EXPECT_TRUE(state.mask()->isAllowed(3));
  EXPECT_FALSE(third.mask()->isAllowed(3));
  EXPECT_TRUE(third.mask()->isAllowed(1));
}

// No end before enough tokens, however likely; then as ever.
TEST(LogitsMaskTest, minTokens) {
  SamplingParams params;
  params.temperature = 0;
  params.minTokens = 2;
  SamplerState state(params, 1);
  state.setEndIds({1, 3});
  Sampler sampler(4);
  std::vector<float> logits = {0, 9, 1, 8};
  EXPECT_EQ(*sampler.choose(logits, state, 0), 2);
  ASSERT_TRUE(state.advance(2).isOk());
  EXPECT_EQ(*sampler.choose(logits, state, 1), 2);
  ASSERT_TRUE(state.advance(2).isOk());
  EXPECT_EQ(*sampler.choose(logits, state, 2), 1);
  state.rollback(std::vector<std::int32_t>{2});
  EXPECT_EQ(*sampler.choose(logits, state, 1), 2);
  params.minTokens = -1;
  EXPECT_THAT(validate(params, 4).message(), HasSubstr("min_tokens is -1"));
}
