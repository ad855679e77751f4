// What measure-exits counts: operations against a count by hand of the small
// target's matrices, bytes against what the executor itself counts while an engine
// answers a request with a threshold, and the ends of the curve.
#include "compiler/calibrate/ExitTradeoff.h"
#include "compiler/calibrate/WindowRunner.h"
#include "test/e2e/CompiledModel.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

std::string secondHalf() {
  std::ostringstream text;
  text << std::ifstream(INGOT_SOURCE_DIR "/test/models/held-out.txt").rdbuf();
  return text.str().substr(text.str().size() / 2);
}

// Two exits without maps, whose heads are the model's own tail.
std::string artifact() {
  return compiledModel("target", "int8", "f16",
                       "--levels x86-64-v3 --exits 2,4");
}

ExitTradeoffRequest requestOf(std::vector<double> thresholds) {
  ExitTradeoffRequest request;
  request.artifact = artifact();
  request.text = secondHalf();
  request.thresholds = std::move(thresholds);
  request.windowTokens = 96;
  request.maxTokens = 3 * 96;
  return request;
}

TEST(ExitTradeoffTest, CountsWhatRuns) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  auto measured = measureExits(requestOf({1e-9, 0.2, 1, 0}));
  ASSERT_TRUE(measured) << measured.status().message();
  EXPECT_EQ(measured->windows, 3);
  EXPECT_EQ(measured->rows, 3 * (96 - 32));
  EXPECT_EQ(measured->layers, (std::vector<std::int64_t>{2, 4}));

  // By hand: 6 layers of 192, 6 heads of 32 that read 2 of keys, 512 columns,
  // 1024 tokens.
  const double kQkv = 2 * (192 + 2 * 64) * 192, kHead = 2 * 1024 * 192;
  const double kLayer = kQkv + 2 * 192 * 192 + 2 * 3 * 512 * 192;
  const double kAttention = 4 * 6 * 32; // of a layer, for each position
  const ExitWork &work = measured->work;
  EXPECT_EQ(work.whole.operations, 6 * kLayer + kHead);
  EXPECT_EQ(work.whole.operationsPerPosition, 6 * kAttention);
  EXPECT_EQ(work.layers[0].operations, 2 * kLayer);
  EXPECT_EQ(work.layers[1].operations, 2 * kLayer);
  EXPECT_EQ(work.layers[1].operationsPerPosition, 2 * kAttention);
  EXPECT_EQ(work.heads[0].operations, kHead);
  EXPECT_EQ(work.fills[0].operations, 4 * kQkv);
  EXPECT_EQ(work.fills[1].operations, 2 * kQkv);
  EXPECT_EQ(work.fills[1].operationsPerPosition, 0);
  EXPECT_EQ(work.rest.operations, 2 * kLayer + kHead);

  // All leave at the first exit: the layers, the head and the fill.
  const ThresholdPoint &first = measured->points[0];
  EXPECT_EQ(first.left, (std::vector<std::int64_t>{measured->rows, 0, 0}));
  double positions = (33 + 96) / 2.0;
  double whole = 6 * (kLayer + kAttention * positions) + kHead;
  EXPECT_NEAR(measured->operations, whole, 1);
  EXPECT_NEAR(first.operations,
              (2 * (kLayer + kAttention * positions) + kHead + 4 * kQkv) /
                  whole,
              1e-12);
  EXPECT_GT(first.disagreement, 0.2);
  EXPECT_LT(first.bytes, 0.8);

  // None leaves, and no head is tried: nothing saved, nothing changed.
  for (std::size_t exact : {2, 3}) {
    const ThresholdPoint &point = measured->points[exact];
    EXPECT_EQ(point.left, (std::vector<std::int64_t>{0, 0, measured->rows}));
    EXPECT_EQ(point.bytes, 1);
    EXPECT_EQ(point.operations, 1);
    EXPECT_EQ(point.disagreement, 0);
  }
  // In between: some leave, and those that do not pay for heads.
  const ThresholdPoint &some = measured->points[1];
  EXPECT_GT(some.left[0] + some.left[1], 0);
  EXPECT_GT(some.left[2], 0);
  EXPECT_LT(some.disagreement, first.disagreement);
  EXPECT_GT(some.bytes, first.bytes);
}

// The bytes of a request's rows, as the engine's own executor counts them.
TEST(ExitTradeoffTest, BytesAreTheExecutors) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  auto measured = measureExits(requestOf({0.5}));
  ASSERT_TRUE(measured) << measured.status().message();
  for (double threshold : {0.0, 1e-9, 0.2}) {
    EngineOptions options;
    options.context = 128;
    auto engine = Engine::open(artifact(), options);
    ASSERT_TRUE(engine) << engine.status().message();
    TokenRequest request;
    for (std::int32_t i = 0; i < 40; ++i)
      request.prompt.push_back(i * 7 % 1000);
    request.sampling.temperature = 0;
    request.maxTokens = 41;
    request.ignoreEos = true;
    request.exitThreshold = threshold;
    ASSERT_TRUE((*engine)->core().submit(std::move(request), {}));
    while ((*engine)->core().counters().promptRows < 40)
      ASSERT_TRUE((*engine)->step());
    (*engine)->executor().setProfiling(true);
    ASSERT_TRUE((*engine)->runUntilIdle());
    double bytes = 0;
    for (const LaunchProfile &launch : (*engine)->executor().profile())
      bytes += launch.bytes;
    // 40 rows, of 41 to 80 positions; where each left is told by depth alone.
    auto depths = (*engine)->metrics().exitDepths;
    const ExitWork &work = measured->work;
    double low = 0, high = 0, mean = 0;
    double rows[] = {double(depths[0]), double(depths[1]), double(depths[2])};
    if (threshold == 0) {
      mean =
          40 * work.whole.bytesAt(0) + work.whole.bytesPerPosition * 40 * 60.5;
      low = high = mean;
    } else {
      EXPECT_EQ(rows[0] + rows[1] + rows[2], 40);
      RowWork paths[3];
      paths[0] = work.layers[0];
      paths[0] += work.heads[0];
      paths[1] = paths[0];
      paths[1] += work.layers[1];
      paths[1] += work.heads[1];
      paths[2] = paths[1];
      paths[0] += work.fills[0];
      paths[1] += work.fills[1];
      paths[2] += work.rest;
      for (int p = 0; p < 3; ++p) {
        low += rows[p] * paths[p].bytesAt(41);
        high += rows[p] * paths[p].bytesAt(80);
      }
      if (threshold < 0.1) {
        EXPECT_EQ(rows[0], 40);
        low = high =
            40 * paths[0].bytesAt(0) + paths[0].bytesPerPosition * 40 * 60.5;
      }
    }
    EXPECT_GE(bytes, low * (1 - 1e-9)) << threshold;
    EXPECT_LE(bytes, high * (1 + 1e-9)) << threshold;
  }
}

// A window that begins with states that were kept goes on to the same bits, in a
// cache that another window has used meanwhile.
TEST(WindowRunnerTest, BeginsBehindLayers) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  auto runner = WindowRunner::open(artifact(), 64, 2);
  ASSERT_TRUE(runner) << runner.status().message();
  auto windows = runner->windowsOf(secondHalf(), 64, 128);
  ASSERT_TRUE(windows);
  ASSERT_EQ(windows->size(), 2u);
  std::int32_t cut = runner->executor().limits().exitsAfter[0];
  ASSERT_TRUE(runner->begin((*windows)[0]));
  ASSERT_TRUE(runner->runTo(cut));
  std::vector<float> states = runner->states();
  ASSERT_TRUE(runner->runTo(cut + 1));
  std::vector<float> expected = runner->states();
  ASSERT_TRUE(runner->begin((*windows)[1]));
  ASSERT_TRUE(runner->runTo(-1));
  ASSERT_TRUE(runner->beginBehind((*windows)[0], cut, states));
  ASSERT_TRUE(runner->runTo(cut + 1));
  EXPECT_EQ(runner->states(), expected);
  EXPECT_THAT(runner->beginBehind((*windows)[0], 99, states).message(),
              HasSubstr("behind segment 99 is no cut"));
  states.pop_back();
  EXPECT_THAT(runner->beginBehind((*windows)[0], cut, states).message(),
              HasSubstr("are no rows of 192"));
}

TEST(ExitTradeoffTest, Refuses) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  ExitTradeoffRequest request = requestOf({1.5});
  EXPECT_THAT(measureExits(request).status().message(),
              HasSubstr("threshold of 1.5"));
  request.thresholds = {0.5};
  request.promptTokens = 96;
  EXPECT_THAT(measureExits(request).status().message(),
              HasSubstr("prompts of 96 tokens in windows of 96"));
  request.promptTokens = 8;
  request.text = "short";
  EXPECT_THAT(measureExits(request).status().message(),
              HasSubstr("no window of 96"));
  request.artifact =
      compiledModel("target", "int8", "f16", "--levels x86-64-v3");
  EXPECT_THAT(measureExits(request).status().message(),
              HasSubstr("has no early exits"));
}

} // namespace
