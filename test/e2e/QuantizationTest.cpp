// What the methods of quantisation cost the small target, on text that calibration
// has not seen: the second half of the held-out text, the first being what codes
// are chosen by. Differences of mean divergence are over the same windows, with a
// bootstrap interval (20 000 resamples of windows).
#include "compiler/calibrate/MeasureText.h"
#include "test/e2e/CompiledModel.h"
#include "test/e2e/HalvedText.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

using namespace ingot;
using namespace ingot::test;

namespace {

// One level of code makes compiling shorter, and no bit different.
const std::string kLevel = "--levels x86-64-v3";

const std::string kCalibrated = " --calibration-tokens 8192 ";

// Of the target in an encoding against its float32 twin; measured once each.
const TextMeasure &measureOf(const std::string &quantize) {
  static std::map<std::string, TextMeasure> known;
  if (auto found = known.find(quantize); found != known.end())
    return found->second;
  static std::optional<TextMeasurer> measurer;
  if (!measurer) {
    std::string reference = compiledModel("target", "f32", "f32", kLevel);
    auto created = TextMeasurer::create(reference, halvedText().evaluation(),
                                        256, 60 * 256, 2);
    EXPECT_TRUE(created) << created.status().message();
    if (!created)
      return known[quantize];
    measurer.emplace(std::move(*created));
  }
  bool isCalibrated = quantize.find("gptq") != std::string::npos ||
                      quantize.find("awq") != std::string::npos;
  std::string path = compiledModel(
      "target", quantize, "f32",
      kLevel + (isCalibrated ? kCalibrated + halvedText().flags() : ""));
  auto measure = measurer->measure(path);
  EXPECT_TRUE(measure) << measure.status().message();
  if (measure) {
    known[quantize] = *measure;
    std::printf("%-18s perplexity %.5f, mean KL %.6f, p99 %.5f, first choice "
                "%.2f %%, %.2f MB\n",
                quantize.c_str(), measure->perplexity, measure->meanKl,
                measure->p99Kl, 100 * measure->agreement,
                double(measure->fileBytes) / 1e6);
  }
  return known[quantize];
}

struct Interval {
  double low = 0, mean = 0, high = 0;
};

// Of the difference a - b, window by window.
Interval difference(const TextMeasure &a, const TextMeasure &b) {
  std::size_t count = a.windowKl.size();
  std::mt19937_64 random(7);
  std::vector<double> means;
  double mean = 0;
  for (std::size_t w = 0; w < count; ++w)
    mean += (a.windowKl[w] - b.windowKl[w]) / double(count);
  for (int i = 0; i < 20000; ++i) {
    double sum = 0;
    for (std::size_t w = 0; w < count; ++w) {
      std::size_t pick = random() % count;
      sum += a.windowKl[pick] - b.windowKl[pick];
    }
    means.push_back(sum / double(count));
  }
  std::sort(means.begin(), means.end());
  return {means[500], mean, means[19499]};
}

void expectBetter(const std::string &method, const std::string &rounded) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  const TextMeasure &a = measureOf(rounded), &b = measureOf(method);
  ASSERT_EQ(a.windowKl.size(), b.windowKl.size());
  ASSERT_GE(a.windowKl.size(), 50u);
  Interval gain = difference(a, b);
  std::printf("%s is nearer than %s by %.6f nats [%.6f, %.6f] of %.6f\n",
              method.c_str(), rounded.c_str(), gain.mean, gain.low, gain.high,
              a.meanKl);
  EXPECT_GT(gain.low, 0);
  EXPECT_NEAR(double(a.fileBytes), double(b.fileBytes), 16384)
      << "the same encodings take as much";
}

TEST(QuantizationTest, GptqIsNearerThanRounding) {
  expectBetter("int4-g32-gptq", "int4-g32");
}

TEST(QuantizationTest, AwqIsNearerThanRounding) {
  expectBetter("int4-g32-awq", "int4-g32");
}

// Groups of 128 end in a short one here.
TEST(QuantizationTest, WideGroupsGainToo) {
  expectBetter("int4-g128-awq", "int4-g128");
}

// int8 costs less than 0.1 % of perplexity, rounded or calibrated.
TEST(QuantizationTest, Int8CostsLittle) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  double plain = measureOf("f32").perplexity;
  EXPECT_LT(measureOf("f32").meanKl, 1e-9);
  for (const char *quantize : {"int8", "int8-gptq"})
    EXPECT_NEAR(measureOf(quantize).perplexity / plain, 1, 0.001) << quantize;
}

// Scales are folded into norms, into rows of v and their biases (of random weights,
// whose q, k and v have some): the program means what it did.
TEST(QuantizationTest, FoldsKeepTheModel) {
  if (std::string missing = whyNotCompiled("tiny-qwen2"); !missing.empty())
    GTEST_SKIP() << missing;
  std::string reference = compiledModel("tiny-qwen2", "f32", "f32", kLevel);
  auto measurer =
      TextMeasurer::create(reference, halvedText().evaluation(), 128, 1024, 2);
  ASSERT_TRUE(measurer) << measurer.status().message();
  double kl[2];
  for (int i = 0; i < 2; ++i) {
    auto measure = measurer->measure(compiledModel(
        "tiny-qwen2", i == 0 ? "int8" : "int8-awq", "f32",
        i == 0
            ? kLevel
            : kLevel + " --calibration-tokens 2048 " + halvedText().flags()));
    ASSERT_TRUE(measure) << measure.status().message();
    kl[i] = measure->meanKl;
  }
  std::printf("tiny-qwen2 int8: mean KL %.3g rounded, %.3g by awq\n", kl[0],
              kl[1]);
  EXPECT_GT(kl[1], 0);
  EXPECT_LT(kl[1], 1.2 * kl[0]);
}

// A layer that keeps more bits costs less than one that does not.
TEST(QuantizationTest, LayersMayDiffer) {
  if (std::string missing = whyNotCompiled("target"); !missing.empty())
    GTEST_SKIP() << missing;
  const TextMeasure &mixed =
      measureOf("int4-g32-gptq,layer.0.*=int8,*.down=int8-g32-gptq");
  const TextMeasure &all = measureOf("int4-g32-gptq");
  EXPECT_LT(mixed.meanKl, all.meanKl);
  EXPECT_GT(mixed.fileBytes, all.fileBytes);
}

} // namespace
