// Whatever a drafter returns, what leaves the speculator is short enough,
// known and allowed, and the requests are as they were.
#include "runtime/speculate/Speculator.h"
#include "test/runtime/sample/ToyMasks.h"
#include "test/runtime/speculate/ScriptedDrafter.h"

#include <gtest/gtest.h>

using namespace ingot;
using namespace ingot::test;

namespace {

const std::vector<std::int32_t> kTokens = {1, 2, 3};

SpeculatorOptions free(std::int32_t maxLength) {
  SpeculatorOptions options;
  options.vocab = 40;
  options.maxLength = maxLength;
  return options;
}

Draft proposed(Draft answer, SamplerState &state, std::int32_t room = 8) {
  auto drafter = std::make_unique<ScriptedDrafter>(
      [&](const DraftRequest &) { return answer; });
  Speculator speculator(std::move(drafter), free(8));
  std::vector<DraftInput> inputs = {{1, kTokens, &state, room}};
  return speculator.propose(inputs)[0];
}

} // namespace

// Too long, and ids that do not exist.
TEST(SpeculatorTest, garbageIsCut) {
  SamplerState state({}, 1);
  EXPECT_EQ(proposed({4, 5, 6}, state), (Draft{4, 5, 6}));
  EXPECT_EQ(proposed({4, 5, 6}, state, 2), (Draft{4, 5}));
  EXPECT_EQ(proposed(Draft(100, 7), state).size(), 8u);
  EXPECT_EQ(proposed({4, 40, 6}, state), (Draft{4}));
  EXPECT_EQ(proposed({-1, 5}, state), Draft{});
  EXPECT_EQ(proposed({INT32_MAX}, state), Draft{});
  EXPECT_EQ(proposed({4}, state, 0), Draft{});
  EXPECT_EQ(state.numOutput(), 0);
}

// Up to the first token that the mask bans; the mask is where it was.
TEST(SpeculatorTest, maskedDraftsAreCut) {
  SamplerState state({}, 1);
  state.setMask(std::make_unique<BracketMask>(3, 4, 30));
  EXPECT_EQ(proposed({0, 2, 3, 1, 4, 0}, state), (Draft{0, 2, 3, 1, 4, 0}));
  EXPECT_EQ(proposed({0, 2, 1, 3}, state), (Draft{0, 2}));
  EXPECT_EQ(proposed({1}, state), Draft{});
  EXPECT_EQ(proposed({0, 0, 0, 0, 0}, state), (Draft{0, 0, 0, 0}));
  EXPECT_TRUE(state.mask()->isAllowed(30));
}

// An end is the last of a draft, and none while the output is too short.
TEST(SpeculatorTest, endsAreLast) {
  SamplingParams params;
  SamplerState state(params, 1);
  state.setEndIds({9});
  EXPECT_EQ(proposed({4, 9, 6}, state), (Draft{4, 9}));
  params.minTokens = 2;
  SamplerState shy(params, 1);
  shy.setEndIds({9});
  EXPECT_EQ(proposed({4, 9, 6}, shy), (Draft{4}));
  EXPECT_EQ(proposed({4, 5, 9, 6}, shy), (Draft{4, 5, 9}));
}

// An error of the drafter, or a drafter that has run ahead with the request's
// state, costs the drafts and nothing else.
TEST(SpeculatorTest, failuresAreNoDrafts) {
  SamplerState state({}, 1);
  auto drafter = std::make_unique<ScriptedDrafter>([](const DraftRequest &r) {
    for (int i = 0; i < 5; ++i)
      EXPECT_TRUE(r.sampler->advance(i).isOk());
    return Draft{3};
  });
  ScriptedDrafter &script = *drafter;
  Speculator speculator(std::move(drafter), free(8));
  std::vector<DraftInput> inputs = {{1, kTokens, &state, 8}};
  EXPECT_EQ(speculator.propose(inputs)[0], (Draft{3}));
  EXPECT_EQ(state.numOutput(), 0);
  EXPECT_TRUE(state.history().empty());
  script.fails = true;
  EXPECT_EQ(speculator.propose(inputs)[0], Draft{});
  EXPECT_EQ(speculator.numFailures(), 1u);
  EXPECT_EQ(speculator.latestFailure().message(), "planned failure");
}

// A limit for the step: the longest give way first, then the last.
TEST(SpeculatorTest, stepLimit) {
  SamplerState state({}, 1);
  auto sizes = [&](std::int32_t limit, std::vector<std::int32_t> rooms) {
    SpeculatorOptions options = free(8);
    options.maxStepTokens = limit;
    Speculator speculator(
        std::make_unique<ScriptedDrafter>([](const DraftRequest &r) {
          return Draft(std::size_t(r.length), 5);
        }),
        options);
    std::vector<DraftInput> inputs;
    for (std::size_t i = 0; i < rooms.size(); ++i)
      inputs.push_back({i, kTokens, &state, rooms[i]});
    std::vector<std::size_t> sizes;
    for (const Draft &draft : speculator.propose(inputs))
      sizes.push_back(draft.size());
    return sizes;
  };
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(sizes(INT32_MAX, {8, 8, 8}), (Sizes{8, 8, 8}));
  EXPECT_EQ(sizes(24, {8, 8, 8}), (Sizes{8, 8, 8}));
  EXPECT_EQ(sizes(12, {8, 2, 8}), (Sizes{5, 2, 5}));
  EXPECT_EQ(sizes(2, {8, 8, 8}), (Sizes{1, 1, 0}));
  EXPECT_EQ(sizes(0, {8, 8, 8}), (Sizes{0, 0, 0}));
}

// Rows of a full step are dear: with many sequences guesses of middling luck
// are left off that pay for a sequence alone.
TEST(SpeculatorTest, companyMakesGuessesDear) {
  SamplerState state({}, 1);
  SpeculatorOptions options = free(8);
  options.rowCost = 0.2;
  auto drafted = [&](std::size_t company) {
    Speculator speculator(
        std::make_unique<ScriptedDrafter>([](const DraftRequest &r) {
          return Draft(std::size_t(r.length), 5);
        }),
        options);
    std::vector<DraftInput> inputs;
    for (std::size_t i = 0; i < company; ++i)
      inputs.push_back({i, kTokens, &state, 8});
    std::size_t sum = 0;
    for (int step = 0; step < 10; ++step) {
      auto drafts = speculator.propose(inputs);
      for (std::size_t i = 0; i < company; ++i) {
        auto size = std::int32_t(drafts[i].size());
        speculator.settle(i, size, (size + 1) / 2);
        sum += drafts[i].size();
      }
    }
    return double(sum) / double(company);
  };
  EXPECT_GT(drafted(1), 12);
  EXPECT_LT(drafted(32), 6);
}

// Settling and forgetting reach the drafter, also where there was no draft.
TEST(SpeculatorTest, tellsTheDrafter) {
  auto drafter = std::make_unique<ScriptedDrafter>(
      [](const DraftRequest &) { return Draft{}; });
  ScriptedDrafter &script = *drafter;
  Speculator speculator(std::move(drafter), free(8));
  speculator.settle(4, 5, 3);
  speculator.settle(4, 0, 0);
  speculator.forget(4);
  EXPECT_EQ(script.log, "settle 4 3; settle 4 0; forget 4; ");
}
