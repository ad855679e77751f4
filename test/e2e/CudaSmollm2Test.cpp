// A real model through the unchanged CUDA back end on the stand-in driver: a prompt of
// eight tokens and four decoding steps of SmolLM2-135M-Instruct (GGUF, Q4_1), whose
// file INGOT_SMOLLM2 names (Smollm2Test). The emulator runs without its checks here:
// CudaModelTest has the same kernels under them, on models of their size.
#include "test/e2e/CompiledModel.h"
#include "test/e2e/StandInModel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>

using namespace ingot;
using namespace ingot::test;

namespace {

struct Encoding {
  std::string quantize, table;
  double maxKl; // in the mean over positions: the bound of docs/cuda.md
};
std::ostream &operator<<(std::ostream &out, const Encoding &encoding) {
  return out << encoding.quantize << " table " << encoding.table;
}

class CudaSmollm2Test : public testing::TestWithParam<Encoding> {
protected:
  void SetUp() override {
    const char *path = std::getenv("INGOT_SMOLLM2");
    if (!path)
      GTEST_SKIP()
          << "INGOT_SMOLLM2 does not name SmolLM2-135M-Instruct's GGUF";
    if (std::string missing = whyNoNvrtc(); !missing.empty())
      GTEST_SKIP() << missing;
    model_ = path;
  }
  std::string model_;
};

} // namespace

TEST_P(CudaSmollm2Test, aPromptAndFourTokens) {
  const Encoding &encoding = GetParam();
  const char *settings = std::getenv("INGOT_STANDIN");
  StandInScope scope(settings ? settings : "");
  std::string artifact = compiledModel(
      model_, encoding.quantize, "f16",
      "--target cuda:sm_90,cpu --levels x86-64-v3 --table " + encoding.table);
  ASSERT_FALSE(artifact.empty());
  auto engine = openEngine(artifact, deviceOptions(32));
  ASSERT_TRUE(engine);
  GenerateRequest text;
  text.prompt = "The capital of France is the city of";
  auto prompt = engine->promptIds(text);
  ASSERT_TRUE(prompt.isOk()) << prompt.status().message();
  ASSERT_EQ(prompt->size(), 8u);

  auto start = std::chrono::steady_clock::now();
  Tokens chosen = generateGreedily(*engine, *prompt, 5);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  ASSERT_EQ(chosen.size(), 5u);
  EXPECT_EQ(engine->cudaExecutor()->numGraphSteps(), 5u);

  Tokens all = *prompt;
  all.insert(all.end(), chosen.begin(), chosen.end() - 1);
  Logits found = scoreTokens(*engine, {all})[0];
  Logits truth =
      referenceLogits(model_, encoding.quantize, encoding.table, all);
  ASSERT_EQ(found.size(), all.size());
  ASSERT_EQ(truth.size(), all.size());
  ASSERT_EQ(found[0].size(), truth[0].size());
  LogitsError error = compareLogits(truth, found);
  std::printf("SmolLM2 %s: KL %.3g in the mean, %.3g at most; logits differ by "
              "%.3g; %d other first choices; 8 + 4 tokens took %.1f s\n",
              encoding.quantize.c_str(), error.meanKl, error.worstKl,
              error.largest, error.otherFirsts, seconds.count());
  EXPECT_LT(error.meanKl, encoding.maxKl);
  EXPECT_TRUE(std::isfinite(error.worstKl));
  EXPECT_EQ(error.wrongFirsts, 0);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    EXPECT_EQ(std::size_t(chosen[i]), firstOf(found[7 + i])) << "token " << i;

  // What the cpu's back end chooses, as far as the leads let it.
  EngineOptions cpu = deviceOptions(32);
  cpu.device = "cpu";
  auto onCpu = openEngine(artifact, cpu);
  ASSERT_TRUE(onCpu);
  LogitsError cpuError = compareLogits(truth, scoreTokens(*onCpu, {all})[0]);
  Tokens cpuChosen = generateGreedily(*onCpu, *prompt, 5);
  ASSERT_EQ(cpuChosen.size(), 5u);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (cpuChosen[i] == chosen[i])
      continue;
    const std::vector<float> &row = truth[7 + i];
    EXPECT_LT(
        std::fabs(row[std::size_t(cpuChosen[i])] - row[std::size_t(chosen[i])]),
        2 * (error.largest + cpuError.largest))
        << "token " << i;
    break; // what follows is another text
  }
}

// As stored, which is exact: four bits with minima, in groups of 32, and an embedding
// of int8; float16, which holds the same weights.
INSTANTIATE_TEST_SUITE_P(Encodings, CudaSmollm2Test,
                         testing::Values(Encoding{"none", "none", 1e-4},
                                         Encoding{"f16", "f16", 1e-5}),
                         [](const testing::TestParamInfo<Encoding> &info) {
                           return info.param.quantize;
                         });
