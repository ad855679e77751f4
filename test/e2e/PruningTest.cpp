// What is left of the small target when parts of it are left out, with and without
// healing, on text that the choice has not seen: healing recovers half of what is
// lost or more, and the artifact is smaller by what went.
#include "compiler/calibrate/MeasureText.h"
#include "test/e2e/CompiledModel.h"
#include "test/e2e/HalvedText.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

using namespace ingot;
using namespace ingot::test;

namespace {

// One level of code makes compiling shorter, and no bit different.
const std::string kLevel = "--levels x86-64-v3";

// Enough text to choose and heal by; more heals a little better.
const std::string kCalibrated = kLevel + " --calibration-tokens 12288 ";

struct Measured {
  TextMeasure text;
  double weightBytes = 0; // that a step reads
  std::uint64_t kvBytes = 0;
};

Measured measure(const std::string &flags,
                 const std::string &quantize = "none") {
  static std::optional<TextMeasurer> measurer;
  static std::map<std::string, Measured> known;
  if (auto found = known.find(quantize + flags); found != known.end())
    return found->second;
  Measured result;
  if (!measurer) {
    auto created =
        TextMeasurer::create(compiledModel("target", "none", "f16", kLevel),
                             halvedText().evaluation(), 256, 24 * 256, 2);
    EXPECT_TRUE(created) << created.status().message();
    if (!created)
      return result;
    measurer.emplace(std::move(*created));
  }
  std::string path = compiledModel(
      "target", quantize, "f16",
      flags.empty() ? kLevel : kCalibrated + halvedText().flags() + flags);
  auto text = measurer->measure(path);
  EXPECT_TRUE(text) << text.status().message();
  if (text)
    result.text = *text;
  auto runner = WindowRunner::open(path, 64, 1);
  EXPECT_TRUE(runner) << runner.status().message();
  if (runner) {
    result.weightBytes = runner->executor().weightBytesPerStep();
    for (const fbs::StateGroup *state :
         *runner->engine().artifact().plan().states())
      result.kvBytes += state->layers() * state->kv_heads();
  }
  std::printf("%-40s perplexity %.4f, mean KL %.5f, weights %.3f MB a step\n",
              (quantize + flags).c_str(), result.text.perplexity,
              result.text.meanKl, result.weightBytes / 1e6);
  return known[quantize + flags] = result;
}

// Pruned by `flags`, healing recovers half of the loss in log perplexity at least,
// and this share of the divergence.
Measured expectHealed(const std::string &flags, double klShare = 0.5) {
  Measured whole = measure(""), bare = measure(flags + " --no-heal"),
           healed = measure(flags);
  double lost = std::log(bare.text.perplexity / whole.text.perplexity);
  double left = std::log(healed.text.perplexity / whole.text.perplexity);
  std::printf(
      "healing recovers %.1f %% of the loss in log perplexity and %.1f %% "
      "of the divergence\n",
      100 * (1 - left / lost),
      100 * (1 - healed.text.meanKl / bare.text.meanKl));
  EXPECT_GT(lost, 0.01);
  EXPECT_LT(left, lost * 0.5);
  EXPECT_LT(healed.text.meanKl, bare.text.meanKl * (1 - klShare));
  EXPECT_EQ(healed.weightBytes, bare.weightBytes);
  EXPECT_LT(healed.weightBytes, whole.weightBytes);
  return healed;
}

#define SKIP_WITHOUT_MODEL()                                                   \
  if (std::string missing = whyNotCompiled("target"); !missing.empty())        \
  GTEST_SKIP() << missing

TEST(PruningTest, FeedForwardHeals) {
  SKIP_WITHOUT_MODEL();
  Measured whole = measure(""), half = expectHealed(" --prune-ffn 0.5");
  // 256 of 512 columns of three matrices of 192, in each of six layers, in f16.
  EXPECT_NEAR(whole.weightBytes - half.weightBytes, 6 * 3 * 256 * 192 * 2,
              1000);
}

TEST(PruningTest, HeadsHeal) {
  SKIP_WITHOUT_MODEL();
  Measured whole = measure(""), pruned = expectHealed(" --prune-heads 3", 0.4);
  EXPECT_EQ(whole.kvBytes, 12u);
  EXPECT_EQ(pruned.kvBytes, 9u) << "nine key heads of twelve have a cache";
}

TEST(PruningTest, LayersHeal) {
  SKIP_WITHOUT_MODEL();
  Measured whole = measure(""), pruned = expectHealed(" --prune-layers 1");
  EXPECT_EQ(pruned.kvBytes, 10u);
  EXPECT_NEAR((whole.weightBytes - pruned.weightBytes) /
                  (2 * (2 * 192 * 192 + 2 * 64 * 192 + 3 * 512 * 192)),
              1, 0.01);
}

// All of it together, and then codes by the inputs of what is left.
TEST(PruningTest, ComposesWithQuantization) {
  SKIP_WITHOUT_MODEL();
  const std::string all = " --prune-layers 1 --prune-heads 2 --prune-ffn 0.25";
  Measured pruned = measure(all), codes = measure(all, "int8-gptq");
  EXPECT_LT(codes.weightBytes, 0.7 * pruned.weightBytes);
  EXPECT_NEAR(codes.text.perplexity / pruned.text.perplexity, 1, 0.005);
}

} // namespace
