// The figures of the accuracy ledger are what they say: each is computed again from
// the logits of both models, row by row, in the plainest way.
#include "compiler/calibrate/MeasureText.h"
#include "test/e2e/CompiledModel.h"
#include "test/e2e/HalvedText.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace ingot;
using namespace ingot::test;

namespace {

std::vector<double> probabilities(std::span<const float> logits) {
  std::vector<double> p(logits.begin(), logits.end());
  double most = *std::max_element(p.begin(), p.end()), sum = 0;
  for (double &value : p)
    sum += value = std::exp(value - most);
  for (double &value : p)
    value /= sum;
  return p;
}

TEST(MeasureTextTest, FiguresAreWhatTheySay) {
  if (std::string missing = whyNotCompiled("draft"); !missing.empty())
    GTEST_SKIP() << missing;
  const std::string level = "--levels x86-64-v3";
  std::string whole = compiledModel("draft", "none", "f16", level),
              rounded = compiledModel("draft", "int4-g128", "f16", level);
  ASSERT_FALSE(whole.empty() || rounded.empty());
  constexpr std::int32_t size = 64;
  constexpr std::int64_t tokens = 8 * size;
  const std::string text = HalvedText().evaluation();
  auto measurer = TextMeasurer::create(whole, text, size, tokens, 2);
  ASSERT_TRUE(measurer) << measurer.status().message();
  auto measured = measurer->measure(rounded);
  ASSERT_TRUE(measured) << measured.status().message();

  auto ours = WindowRunner::open(rounded, size, 1),
       theirs = WindowRunner::open(whole, size, 1);
  ASSERT_TRUE(ours && theirs);
  auto windows = ours->windowsOf(text, size, tokens);
  ASSERT_TRUE(windows);
  std::vector<double> divergences;
  double logLikelihood = 0, agreed = 0;
  for (const std::vector<std::int32_t> &window : *windows) {
    for (WindowRunner *runner : {&*ours, &*theirs}) {
      ASSERT_TRUE(runner->begin(window));
      ASSERT_TRUE(runner->runTo(-1));
    }
    for (std::size_t r = 0; r + 1 < window.size(); ++r) {
      auto q = probabilities(ours->executor().logits(std::int32_t(r))),
           p = probabilities(theirs->executor().logits(std::int32_t(r)));
      double divergence = 0;
      for (std::size_t i = 0; i < p.size(); ++i)
        divergence += p[i] * std::log(p[i] / q[i]);
      divergences.push_back(divergence);
      logLikelihood += std::log(q[std::size_t(window[r + 1])]);
      agreed += std::max_element(p.begin(), p.end()) - p.begin() ==
                std::max_element(q.begin(), q.end()) - q.begin();
    }
  }
  auto count = double(divergences.size());
  double mean = 0;
  for (double divergence : divergences)
    mean += divergence / count;
  std::sort(divergences.begin(), divergences.end());
  EXPECT_EQ(measured->tokens, std::int64_t(divergences.size()));
  EXPECT_LT(agreed, count) << "no row tells one first choice from another";
  EXPECT_DOUBLE_EQ(measured->agreement, agreed / count);
  EXPECT_NEAR(measured->perplexity, std::exp(-logLikelihood / count),
              1e-9 * measured->perplexity);
  EXPECT_NEAR(measured->meanKl, mean, 1e-9);
  // The smallest that 99 of 100 rows do not exceed.
  EXPECT_NEAR(measured->p99Kl,
              divergences[std::size_t(std::ceil(count * 0.99)) - 1], 1e-9);
  EXPECT_GT(measured->p99Kl, 1.5 * measured->meanKl);
}

} // namespace
