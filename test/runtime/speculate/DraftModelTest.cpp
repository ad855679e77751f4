// A smaller model's guesses are what it would say itself, whoever else is in
// the step, and its cache follows what stood.
#include "runtime/speculate/DraftModel.h"
#include "test/runtime/sample/ToyMasks.h"
#include "test/runtime/speculate/FakeModel.h"

#include <gmock/gmock.h>

#include <deque>
#include <limits>
#include <random>

using namespace ingot;
using namespace ingot::test;

namespace {

struct Speaker {
  std::vector<std::int32_t> tokens;
  SamplerState state;
};

Speaker speaker(int length, unsigned salt, SamplingParams params = {}) {
  std::mt19937 random(salt);
  Speaker made{{}, SamplerState(params, salt)};
  for (int i = 0; i < length; ++i) {
    made.tokens.push_back(std::int32_t(random() % 30));
    made.state.addPromptToken(made.tokens.back());
  }
  return made;
}

// One after another, by the model's own words and the sampler.
Draft plainly(const FakeModel &model, Speaker speaker, int length,
              std::int32_t vocab) {
  Draft said;
  Sampler sampler(vocab);
  for (int i = 0; i < length; ++i) {
    auto logits = model.logitsAfter(speaker.tokens);
    logits.resize(std::size_t(vocab), -std::numeric_limits<float>::infinity());
    auto token = sampler.choose(logits, speaker.state,
                                std::int64_t(speaker.tokens.size()));
    said.push_back(*token);
    speaker.tokens.push_back(*token);
    if (speaker.state.isEnd(*token) || !speaker.state.advance(*token))
      break;
  }
  return said;
}

struct Harness {
  FakeModel model;
  KvCache cache;
  DraftModel drafter;
  std::int32_t targetVocab;

  explicit Harness(FakeModelOptions options = {}, std::int32_t numBlocks = 100,
                   std::int32_t targetVocab = 40, std::int32_t common = 40,
                   std::int32_t context = 200)
      : model(options), cache(FakeModel::makeCache(numBlocks, {true, 5})),
        drafter(model, cache, {targetVocab, common, context}),
        targetVocab(targetVocab) {}

  std::vector<Draft> propose(std::span<Speaker> speakers, std::int32_t length,
                             bool succeeds = true) {
    std::deque<SamplerBranch> branches;
    std::vector<DraftRequest> requests;
    for (std::size_t i = 0; i < speakers.size(); ++i)
      requests.push_back({i + 1, speakers[i].tokens,
                          &branches.emplace_back(speakers[i].state), length});
    std::vector<Draft> drafts(requests.size());
    EXPECT_EQ(drafter.propose(requests, drafts).isOk(), succeeds);
    EXPECT_TRUE(cache.checkInvariants().isOk());
    return drafts;
  }
  std::int32_t freeBlocks() const { return cache.allocator(0).numFree(); }
};

} // namespace

// Over many rounds, alone and together, with any part of a draft standing.
TEST(DraftModelTest, proposesWhatItWouldSay) {
  FakeModelOptions options;
  options.maxLogitRows = 2; // more steps than rounds
  options.maxTokens = 40;
  Harness harness(options);
  std::mt19937 random(9);
  SamplingParams penalised;
  penalised.repetitionPenalty = 1.4;
  penalised.frequencyPenalty = 0.3;
  SamplingParams greedy;
  greedy.temperature = 0;
  std::vector<Speaker> speakers;
  speakers.push_back(speaker(5, 1, greedy));
  speakers.push_back(speaker(13, 2));
  speakers.push_back(speaker(1, 3, penalised));
  speakers.push_back(speaker(9, 4));
  speakers[3].state.setMask(std::make_unique<RhymeMask>(5, 2.0f));
  for (int round = 0; round < 25; ++round) {
    auto drafts = harness.propose(speakers, 4);
    for (std::size_t i = 0; i < speakers.size(); ++i) {
      EXPECT_EQ(drafts[i], plainly(harness.model, speakers[i], 4, 40))
          << "sequence " << i << " in round " << round;
      // Some of it stands, and a token of another's choice follows.
      std::size_t accepted = random() % 5;
      drafts[i].resize(accepted);
      std::int32_t latest =
          drafts[i].empty() ? speakers[i].tokens.back() : drafts[i].back();
      drafts[i].push_back((latest + 1) % 40);
      for (std::int32_t token : drafts[i]) {
        ASSERT_TRUE(speakers[i].state.advance(token).isOk());
        speakers[i].tokens.push_back(token);
      }
      harness.drafter.settle(i + 1, std::int32_t(accepted));
      ASSERT_TRUE(harness.cache.checkInvariants().isOk());
    }
  }
  for (std::size_t i = 0; i < speakers.size(); ++i)
    harness.drafter.forget(i + 1);
  EXPECT_EQ(harness.freeBlocks(), 100);
}

// Nothing of a draft that fell stays in the cache.
TEST(DraftModelTest, settlingGivesBlocksBack) {
  Harness harness;
  std::vector<Speaker> one = {speaker(4, 1)};
  harness.propose(one, 9); // 4 committed, 8 more reserved: three blocks
  EXPECT_EQ(harness.freeBlocks(), 97);
  harness.drafter.settle(1, 0);
  EXPECT_EQ(harness.freeBlocks(), 99);
  EXPECT_EQ(harness.cache.committedTokens(1), 4);
  // A step that failed settles nothing: the same draft again.
  auto first = harness.propose(one, 9);
  EXPECT_EQ(harness.propose(one, 9), first);
  harness.drafter.settle(1, 9);
  EXPECT_EQ(harness.cache.committedTokens(1), 12);
}

// Long prompts are caught up by a step's rows a call; the others go on.
TEST(DraftModelTest, catchesUpInTurn) {
  FakeModelOptions options;
  options.maxTokens = 32;
  Harness harness(options);
  std::vector<Speaker> two = {speaker(5, 1), speaker(80, 2)};
  for (int round = 0; round < 4; ++round) {
    auto drafts = harness.propose(two, 2);
    EXPECT_LE(harness.model.largestStep, 32);
    EXPECT_EQ(drafts[0], plainly(harness.model, two[0], 2, 40));
    bool isDone = round == 3; // 27 + 31 + 31 of 80: the rest in the fourth
    if (round < 2)
      EXPECT_TRUE(drafts[1].empty());
    if (isDone)
      EXPECT_EQ(drafts[1], plainly(harness.model, two[1], 2, 40));
  }
}

// Ids that only pad the draft's rows are not proposed, a token that the draft
// does not know or a length that it cannot see gives no draft.
TEST(DraftModelTest, staysWithinWhatItKnows) {
  FakeModelOptions options;
  options.vocab = 48;
  options.says = [](std::span<const std::int32_t> tokens) {
    std::vector<float> logits(48, 0.0f);
    logits[45] = 9; // padding
    logits[std::size_t(tokens.size() % 30)] = 5;
    return logits;
  };
  Harness wider(options, 100, 64, 40, 20);
  SamplingParams greedy;
  greedy.temperature = 0;
  std::vector<Speaker> three = {speaker(7, 1, greedy), speaker(7, 1, greedy),
                                speaker(20, 1, greedy)};
  three[1].tokens[3] = 41;
  auto drafts = wider.propose(three, 3);
  EXPECT_EQ(drafts[0], (Draft{7, 8, 9}));
  EXPECT_TRUE(drafts[1].empty());
  EXPECT_TRUE(drafts[2].empty());
}

// A draft ends with an end id.
TEST(DraftModelTest, nothingFollowsAnEnd) {
  FakeModelOptions options;
  options.says = [](std::span<const std::int32_t> tokens) {
    std::vector<float> logits(40, 0.0f);
    logits[tokens.size() == 6 ? 3 : 8] = 9;
    return logits;
  };
  Harness harness(options);
  SamplingParams greedy;
  greedy.temperature = 0;
  std::vector<Speaker> one = {speaker(5, 1, greedy)};
  one[0].state.setEndIds({3});
  EXPECT_EQ(harness.propose(one, 5)[0], (Draft{8, 3}));
}

// The draft rotates a sequence one way, by its own plan's rule.
TEST(DraftModelTest, rotaryLengthStays) {
  for (auto scaling : {fbs::RopeScaling::fixed, fbs::RopeScaling::dynamic,
                       fbs::RopeScaling::listed}) {
    FakeModel model({});
    KvCache cache = FakeModel::makeCache(100);
    DraftModel drafter(model, cache, {40, 40, 200, {scaling, 16}});
    Speaker one = speaker(9, 1);
    for (int round = 0; round < 4; ++round) {
      SamplerBranch branch(one.state);
      std::vector<DraftRequest> requests = {{7, one.tokens, &branch, 3, 9, 60}};
      std::vector<Draft> drafts(1);
      ASSERT_TRUE(drafter.propose(requests, drafts).isOk());
      EXPECT_EQ(drafts[0].size(), 3u);
      drafter.settle(7, 3);
      drafts[0].push_back(1);
      one.tokens.insert(one.tokens.end(), drafts[0].begin(), drafts[0].end());
    }
    std::int32_t expected = scaling == fbs::RopeScaling::fixed     ? 0
                            : scaling == fbs::RopeScaling::dynamic ? 9
                                                                   : 60;
    EXPECT_THAT(model.rotaryLengths,
                ::testing::ElementsAre(::testing::Pair(7u, expected)));
  }
}

// Where its cache is full it gives no draft, takes room from those that are
// not in the step, and goes on when there is room.
TEST(DraftModelTest, fullCache) {
  Harness harness({}, 6);
  std::vector<Speaker> two = {speaker(10, 1), speaker(15, 2)};
  auto drafts = harness.propose(two, 3); // 3 and 5 of 6 blocks
  EXPECT_FALSE(drafts[0].empty());
  EXPECT_TRUE(drafts[1].empty());
  harness.drafter.settle(1, 0);
  std::vector<Speaker> other = {two[0], two[1]};
  // Sequence 2 alone: sequence 1 is dropped for it.
  std::deque<SamplerBranch> branches;
  std::vector<DraftRequest> requests = {
      {2, other[1].tokens, &branches.emplace_back(other[1].state), 3}};
  std::vector<Draft> alone(1);
  ASSERT_TRUE(harness.drafter.propose(requests, alone).isOk());
  EXPECT_EQ(alone[0], plainly(harness.model, other[1], 3, 40));
  EXPECT_FALSE(harness.cache.hasSequence(1));
  EXPECT_TRUE(harness.cache.checkInvariants().isOk());
}

// A failing draft model is an error, keeps nothing, and starts anew.
TEST(DraftModelTest, failuresLeaveNothing) {
  for (int failAt : {0, 1, 2, 3}) {
    Harness harness;
    std::vector<Speaker> two = {speaker(10, 1), speaker(15, 2)};
    harness.model.failAt = failAt;
    harness.propose(two, 4, false);
    EXPECT_EQ(harness.freeBlocks(), 100);
    EXPECT_EQ(two[0].state.numOutput(), 0);
    EXPECT_EQ(harness.propose(two, 4)[1],
              plainly(harness.model, two[1], 4, 40));
  }
}

// An id that comes again with other tokens starts anew.
TEST(DraftModelTest, otherTokensUnderTheSameId) {
  Harness harness;
  std::vector<Speaker> first = {speaker(10, 1)}, second = {speaker(12, 2)};
  harness.propose(first, 3);
  EXPECT_EQ(harness.propose(second, 3)[0],
            plainly(harness.model, second[0], 3, 40));
}
