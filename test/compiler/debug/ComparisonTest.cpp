// The rule by which two runs are compared that neither of them is a module: a tensor
// diverges whose error is more than tolerance + what encodings cost + the rounding of
// its own storage + growth times the largest error of what it was made from.
#include "compiler/debug/Comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace ingot::debug {
namespace {

constexpr std::int64_t kRows = 3, kColumns = 8;

// Rows of ones; in row `row` the size of what is added is `error` times theirs.
LmRows rows(double error, std::int64_t row = 1) {
  LmRows made = LmRows::zeros(kRows, kColumns);
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t k = 0; k < kColumns; ++k)
      made.row(r)[k] = r == row ? float(1 + (k % 2 ? error : -error)) : 1.0f;
  return made;
}

struct Step {
  std::string name;
  double error = 0;
  std::int64_t row = 1;
  std::string op = "linear";
  std::vector<std::size_t> inputs = {}; // by number
  std::optional<WeightEncoding> encoding = WeightEncoding{WeightCode::I8, 32};
};

Recording record(const std::vector<Step> &steps, bool isExact,
                 const std::string &codesHash = {}) {
  Recorder recorder({});
  for (const Step &step : steps) {
    Producer producer;
    producer.name = step.name;
    producer.op = step.op;
    producer.origins = {{step.name, {}}};
    producer.encoding = step.encoding;
    producer.inputs = step.inputs;
    std::size_t index = recorder.addProducer(producer);
    recorder.add(step.name, index, rows(isExact ? 0 : step.error, step.row), 0);
  }
  Recording recording = recorder.take();
  recording.codesHash = codesHash;
  return recording;
}

std::string firstOf(const std::vector<Step> &steps,
                    const CompareOptions &options = {}) {
  auto comparison =
      compareRecordings(record(steps, false), record(steps, true), options);
  EXPECT_TRUE(comparison) << comparison.status().message();
  if (!comparison)
    return "failed";
  return comparison->first() ? comparison->first()->name : "none";
}

// At the limit and beyond it.
TEST(ComparisonTest, ErrorsGrowByTheirInputs) {
  std::vector<Step> steps = {{"layer.0.a", 0.9e-4},
                             {"layer.0.b", 4.5e-4, 1, "linear", {0}},
                             {"layer.1.c", 18e-4, 1, "linear", {1}}};
  // 1e-4 + 4 * 0.9e-4 = 4.6e-4; 1e-4 + 4 * 4.5e-4 = 19e-4.
  EXPECT_EQ(firstOf(steps), "none");
  steps[2].error = 20e-4;
  EXPECT_EQ(firstOf(steps), "layer.1.c");
  steps[1].error = 4.8e-4;
  EXPECT_EQ(firstOf(steps), "layer.0.b");
  steps[0].error = 1.1e-4;
  EXPECT_EQ(firstOf(steps), "layer.0.a");
  steps[0].error = 0.9e-4;
  EXPECT_EQ(firstOf(steps, {.tolerance = 1e-4, .growth = 8}), "none");
  EXPECT_EQ(firstOf(steps, {.tolerance = 1e-4, .growth = 1}), "layer.0.b");
}

// Of several inputs the worst counts, row by row: an error of another position
// explains nothing, except to attention, which reads them all.
TEST(ComparisonTest, ErrorsAreOfTheirOwnPosition) {
  std::vector<Step> steps = {{"layer.0.a", 0.9e-4, 1},
                             {"layer.0.b", 0, 1},
                             {"layer.0.c", 4e-4, 1, "linear", {0, 1}}};
  EXPECT_EQ(firstOf(steps), "none");
  steps[2].row = 2;
  EXPECT_EQ(firstOf(steps), "layer.0.c");
  auto comparison =
      compareRecordings(record(steps, false), record(steps, true));
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->first()->firstPosition, 2);
  EXPECT_EQ(comparison->first()->numPositions, 1);
  steps[2].op = "attention";
  EXPECT_EQ(firstOf(steps), "none");
}

// Where what made it was not compared, what that was made from counts.
TEST(ComparisonTest, LooksPastWhatOneSideLacks) {
  std::vector<Step> steps = {{"layer.0.a", 0.9e-4},
                             {"layer.0.b", 0.5, 1, "linear", {0}},
                             {"layer.0.c", 4.5e-4, 1, "linear", {1}}};
  Recording ours = record(steps, false);
  std::vector<Step> fewer = {steps[0], steps[2]};
  fewer[1].inputs = {0};
  auto comparison = compareRecordings(ours, record(fewer, true));
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->first(), nullptr);
  EXPECT_THAT(comparison->onlyObserved, ::testing::ElementsAre("layer.0.b"));
  steps[2].error = 5e-4;
  comparison = compareRecordings(record(steps, false), record(fewer, true));
  ASSERT_TRUE(comparison);
  ASSERT_NE(comparison->first(), nullptr);
  EXPECT_EQ(comparison->first()->name, "layer.0.c");
}

// Encodings that differ, or codes of one encoding that different methods or texts
// chose, cost what they are known to: a quarter for 4 bits, a fiftieth for 8.
TEST(ComparisonTest, EncodingsCost) {
  auto first = [](WeightCode a, WeightCode b, double error,
                  const std::string &aHash = {},
                  const std::string &bHash = {}) {
    std::vector<Step> ours = {{"layer.0.a", error}}, theirs = ours;
    ours[0].encoding = WeightEncoding{a, 32};
    theirs[0].encoding = WeightEncoding{b, 32};
    auto comparison = compareRecordings(record(ours, false, aHash),
                                        record(theirs, true, bHash));
    EXPECT_TRUE(comparison);
    return comparison->first() != nullptr;
  };
  EXPECT_FALSE(first(WeightCode::I8, WeightCode::F16, 0.0195));
  EXPECT_TRUE(first(WeightCode::I8, WeightCode::F16, 0.0205));
  EXPECT_FALSE(first(WeightCode::F32, WeightCode::I4, 0.245));
  EXPECT_TRUE(first(WeightCode::F32, WeightCode::I4, 0.255));
  EXPECT_TRUE(first(WeightCode::I4, WeightCode::I4, 2e-4));
  EXPECT_TRUE(first(WeightCode::I4, WeightCode::I4, 2e-4, "a", "a"));
  EXPECT_FALSE(first(WeightCode::I4, WeightCode::I4, 0.245, "a", ""));
  EXPECT_FALSE(first(WeightCode::I4, WeightCode::I4, 0.245, "a", "b"));
  EXPECT_TRUE(first(WeightCode::I4, WeightCode::I4, 0.255, "a", "b"));
}

// A number that is not finite is beyond everything, unless both sides have it.
TEST(ComparisonTest, NotFinite) {
  std::vector<Step> steps = {{"layer.0.a", 0.5},
                             {"layer.0.b", 0, 1, "linear", {0}}};
  Recording ours = record(steps, false), theirs = record(steps, true);
  ours.tensors[1].rows.row(2)[3] = NAN;
  auto comparison = compareRecordings(ours, theirs, {.tolerance = 1});
  ASSERT_TRUE(comparison);
  ASSERT_NE(comparison->first(), nullptr);
  EXPECT_EQ(comparison->first()->name, "layer.0.b");
  EXPECT_EQ(comparison->first()->firstPosition, 2);
  EXPECT_EQ(comparison->first()->worstColumn, 3);
  theirs.tensors[1].rows.row(2)[3] = NAN;
  comparison = compareRecordings(ours, theirs, {.tolerance = 1});
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->first(), nullptr);
}

} // namespace
} // namespace ingot::debug
