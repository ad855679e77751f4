// Texts to vectors over an executor that only counts: what shares a step, what is
// held of the cache and for how long, and what a failure leaves behind.
#include "runtime/engine/EncoderCore.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

using namespace ingot;

namespace {

using Tokens = std::vector<std::int32_t>;

// The vector of a text is its length and its sum.
class CountingExecutor : public Executor {
public:
  CountingExecutor() {
    limits_.maxTokens = 64;
    limits_.maxLogitRows = 4;
    limits_.maxSequences = 4;
    limits_.vocab = 100;
    limits_.numSegments = 1;
  }
  const StepLimits &limits() const override { return limits_; }
  Status run(const StepPlan &plan, const KvCache &cache) override {
    INGOT_RETURN_IF_ERROR(checkStepPlan(plan, limits_));
    steps.push_back(std::int32_t(plan.sequences.size()));
    rows_.clear();
    for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
      const StepSequence &sequence = plan.sequences[s];
      EXPECT_EQ(sequence.firstPosition, 0);
      EXPECT_EQ(plan.logitRows[s], sequence.firstRow + sequence.numRows - 1);
      // Blocks for every row, which no other text of the step has.
      EXPECT_EQ(cache.blockTable(sequence.id, 0).size(),
                std::size_t(sequence.numRows + 31) / 32);
      auto first = plan.tokens.begin() + sequence.firstRow;
      rows_.push_back(
          {float(sequence.numRows),
           float(std::accumulate(first, first + sequence.numRows, 0))});
      if (*first == 99)
        rows_.back()[1] = std::numeric_limits<float>::quiet_NaN();
    }
    return fails ? Status::internal("the step failed") : Status::ok();
  }
  std::span<const float> logits(std::int32_t row) const override {
    return rows_[std::size_t(row)];
  }
  void setProfiling(bool) override {}
  std::vector<LaunchProfile> profile() const override { return {}; }

  std::vector<std::int32_t> steps; // texts of each
  bool fails = false;

private:
  StepLimits limits_;
  std::vector<Embedding> rows_;
};

class EncoderCoreTest : public ::testing::Test {
protected:
  void SetUp() override { make(6, 48); }
  void make(std::int32_t blocks, std::int32_t context) {
    GroupGeometry geometry;
    geometry.name = "kv";
    geometry.layers = 1;
    geometry.layerBytes = 64;
    auto made = KvCache::create({geometry}, std::vector<std::int32_t>{blocks});
    ASSERT_TRUE(made.isOk()) << made.status().message();
    cache = std::make_unique<KvCache>(std::move(*made));
    core = std::make_unique<EncoderCore>(executor, *cache, context);
  }
  void expectNothingHeld(std::int32_t blocks = 6) {
    EXPECT_EQ(cache->numSequences(), 0u);
    EXPECT_EQ(cache->allocator(0).numAvailable(), blocks);
    Status status = cache->checkInvariants();
    EXPECT_TRUE(status.isOk()) << status.message();
  }

  CountingExecutor executor;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<EncoderCore> core;
};

} // namespace

// A step ends at the row, the text, the block or the sequence that is too many.
TEST_F(EncoderCoreTest, stepsTakeWhatFits) {
  std::vector<Tokens> texts = {Tokens(30, 1), Tokens(33, 2), Tokens(2, 3),
                               Tokens(1, 4),  Tokens(1, 5),  Tokens(1, 6),
                               Tokens(48, 7), Tokens(33, 1)};
  auto made = core->embed(texts);
  ASSERT_TRUE(made.isOk()) << made.status().message();
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ((*made)[i],
              (Embedding{float(texts[i].size()),
                         float(texts[i].size()) * float(texts[i][0])}));
  // 63 rows; four texts; the 49th row of the next would be one too many.
  EXPECT_EQ(executor.steps, (std::vector<std::int32_t>{2, 4, 1, 1}));
  expectNothingHeld();

  // Blocks for one of the two at a time, rows for both.
  make(2, 48);
  executor.steps.clear();
  ASSERT_TRUE(
      core->embed(std::vector<Tokens>{Tokens(20, 1), Tokens(33, 1)}).isOk());
  EXPECT_EQ(executor.steps, (std::vector<std::int32_t>{1, 1}));
  expectNothingHeld(2);
}

// The longest text is what context, step and blocks all hold.
TEST_F(EncoderCoreTest, boundsAreTheLeastOfAll) {
  EXPECT_EQ(core->longestText(), 48);
  make(6, 1000);
  EXPECT_EQ(core->longestText(), 64);
  make(1, 1000);
  EXPECT_EQ(core->longestText(), 32);
  Status status = core->embed(std::vector<Tokens>{Tokens(33, 1)}).status();
  EXPECT_EQ(status.code(), StatusCode::InvalidInput);
  EXPECT_EQ(status.message(), "the text has 33 tokens, the longest that is "
                              "taken has 32; nothing is cut off in silence");
  EXPECT_TRUE(executor.steps.empty());
}

// A text that cannot run ends the step before it, and is told when it is first.
TEST_F(EncoderCoreTest, aBadTextDoesNotTakeOthersWithIt) {
  std::vector<Tokens> texts = {{1}, {2}, {}, {3}};
  std::vector<Result<Embedding>> results;
  auto taken = core->step(texts, results);
  ASSERT_TRUE(taken.isOk());
  EXPECT_EQ(*taken, 2u);
  EXPECT_EQ(core->step(std::span(texts).subspan(2), results).status().message(),
            "the text has no tokens");
  EXPECT_EQ(results.size(), 2u);
  // Nor does one whose vector is no number.
  texts = {{1}, {99}, {3}};
  results.clear();
  taken = core->step(texts, results);
  ASSERT_TRUE(taken.isOk());
  ASSERT_EQ(results.size(), 3u);
  EXPECT_TRUE(results[0].isOk() && results[2].isOk());
  EXPECT_EQ(results[1].status().message(),
            "the vector of a text of 1 tokens is not finite");
  EXPECT_EQ(core->embed(texts).status().code(), StatusCode::Internal);
  expectNothingHeld();
}

TEST_F(EncoderCoreTest, aFailedStepHoldsNothing) {
  executor.fails = true;
  std::vector<Result<Embedding>> results;
  std::vector<Tokens> texts = {{1}, {2}};
  EXPECT_EQ(core->step(texts, results).status().message(), "the step failed");
  EXPECT_TRUE(results.empty());
  expectNothingHeld();
  executor.fails = false;
  EXPECT_TRUE(core->embed(texts).isOk());
  EXPECT_EQ(core->step({}, results).status().message(),
            "there is no text to embed");
}
