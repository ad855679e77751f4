#include "test/e2e/PerplexityComparison.h"

#include "test/e2e/CompiledModel.h"
#include "test/e2e/Goldens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace ingot::test {
namespace {

using Tokens = std::vector<std::int32_t>;
using Rows = std::vector<std::vector<float>>;

constexpr std::int32_t kWindow = 512;

// An engine that scores one window a step; null, with a failure, on an error.
std::unique_ptr<Engine> open(const GoldenModel &model,
                             const std::string &quantize, const std::string &kv,
                             std::int32_t window) {
  std::string path = compiledModel(model.path, quantize, kv);
  if (path.empty())
    return nullptr;
  EngineOptions options;
  options.context = window;
  options.stepTokens = window;
  options.logitRows = window;
  auto engine = Engine::open(path, options);
  EXPECT_TRUE(engine.isOk()) << engine.status().message();
  return engine ? std::move(engine).value() : nullptr;
}

// Whole windows only; empty, with a failure, where the text cannot be encoded.
std::vector<Tokens> windowsOf(Engine &engine, const std::string &text,
                              std::int32_t window, std::size_t most) {
  if (!engine.tokenizer()) {
    ADD_FAILURE() << "the artifact has no tokenizer";
    return {};
  }
  EncodeOptions plain;
  plain.addSpecialTokens = false;
  auto ids = engine.tokenizer()->encode(text, plain);
  EXPECT_TRUE(ids.isOk()) << ids.status().message();
  std::vector<Tokens> windows;
  for (std::size_t begin = 0; ids.isOk() && windows.size() < most &&
                              begin + std::size_t(window) <= ids->size();
       begin += std::size_t(window))
    windows.emplace_back(ids->begin() + std::ptrdiff_t(begin),
                         ids->begin() + std::ptrdiff_t(begin) + window);
  return windows;
}

// Of the tokens 1.. of the window.
double negativeLogLikelihood(const Tokens &window, const Rows &rows) {
  double sum = 0;
  for (std::size_t i = 1; i < window.size(); ++i)
    sum += logSumExp(rows[i - 1]) - double(rows[i - 1][std::size_t(window[i])]);
  return sum;
}

// The divergence of `ours` from `truth`: sum of p (log p - log q).
double divergence(const std::vector<float> &truth,
                  const std::vector<float> &ours) {
  double truthSum = logSumExp(truth), ourSum = logSumExp(ours), sum = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    double logP = double(truth[i]) - truthSum;
    sum += std::exp(logP) * (logP - (double(ours[i]) - ourSum));
  }
  return sum;
}

} // namespace

std::string readText(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void comparePerplexity(const GoldenModel &model, const std::string &text) {
  std::string missing = whyNotCompiled(model.path);
  if (!missing.empty())
    GTEST_SKIP() << missing;
  auto golden = readPerplexity(model.name);
  if (golden.status().code() == StatusCode::NotFound)
    GTEST_SKIP() << golden.status().message();
  ASSERT_TRUE(golden.isOk()) << golden.status().message();
  ASSERT_NO_FATAL_FAILURE(expectWeights(model, golden->weightsSha256));

  auto engine = open(model, "f32", "f32", golden->window);
  ASSERT_TRUE(engine);
  auto windows =
      windowsOf(*engine, text, golden->window, std::size_t(golden->windows));
  ASSERT_EQ(windows.size(), std::size_t(golden->windows));
  double sum = 0, worst = 0;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    Rows rows = scoreTokens(*engine, windows[w]);
    ASSERT_FALSE(rows.empty());
    double ours = negativeLogLikelihood(windows[w], rows);
    double theirs = golden->windowNll[w];
    EXPECT_NEAR(ours, theirs, 1e-4 * theirs) << "window " << w;
    worst = std::max(worst, std::abs(ours / theirs - 1));
    sum += ours;
  }
  double perplexity = std::exp(sum / double(golden->scored));
  EXPECT_NEAR(perplexity, golden->perplexity, 1e-4 * golden->perplexity);
  std::printf("%s f32: perplexity %.6f, transformers %.6f, relative difference "
              "%.2g (allowed 1e-4); worst window %.2g\n",
              model.name.c_str(), perplexity, golden->perplexity,
              perplexity / golden->perplexity - 1, worst);
}

void compareIntegers(const GoldenModel &model, const std::string &text,
                     std::size_t maxWindows, const IntegerBound &bound) {
  std::string missing = whyNotCompiled(model.path);
  if (!missing.empty())
    GTEST_SKIP() << missing;
  auto truth = open(model, "f32", "f32", kWindow);
  auto rounded = open(model, bound.quantize, bound.kv, kWindow);
  ASSERT_TRUE(truth && rounded);
  auto windows = windowsOf(*truth, text, kWindow, maxWindows);
  ASSERT_FALSE(windows.empty());
  double truthSum = 0, roundedSum = 0, klSum = 0;
  for (const Tokens &window : windows) {
    Rows expected = scoreTokens(*truth, window);
    Rows ours = scoreTokens(*rounded, window);
    ASSERT_FALSE(expected.empty() || ours.empty());
    truthSum += negativeLogLikelihood(window, expected);
    roundedSum += negativeLogLikelihood(window, ours);
    for (std::size_t i = 0; i < expected.size(); ++i)
      klSum += divergence(expected[i], ours[i]);
  }
  double count = double(windows.size());
  double before = std::exp(truthSum / (count * (kWindow - 1)));
  double after = std::exp(roundedSum / (count * (kWindow - 1)));
  double change = after / before - 1;
  double meanKl = klSum / (count * kWindow);
  std::printf(
      "%s %s, kv %s: perplexity %.4f, f32 %.4f, change %+.3f %% (allowed "
      "%.3g %%), mean KL %.3g (allowed %.3g), %zu windows\n",
      model.name.c_str(), bound.quantize.c_str(), bound.kv.c_str(), after,
      before, 100 * change, 100 * bound.perplexity, meanKl, bound.meanKl,
      windows.size());
  EXPECT_LE(std::abs(change), bound.perplexity);
  EXPECT_LE(meanKl, bound.meanKl);
  EXPECT_GT(meanKl, 0) << "both artifacts seem to hold the same weights";
}

} // namespace ingot::test
