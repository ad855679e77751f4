// A real model: SmolLM2-135M-Instruct (GGUF, Q4_1) against transformers. The
// environment variable INGOT_SMOLLM2 names the file, which is not part of the
// tree; goldens/README.md says where it comes from.
#include "test/e2e/CompiledModel.h"
#include "test/e2e/Goldens.h"
#include "test/e2e/PerplexityComparison.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace ingot;
using namespace ingot::test;

namespace {

class Smollm2Test : public ::testing::Test {
protected:
  void SetUp() override {
    const char *path = std::getenv("INGOT_SMOLLM2");
    if (!path)
      GTEST_SKIP()
          << "INGOT_SMOLLM2 does not name SmolLM2-135M-Instruct's GGUF";
    model_ = {"smollm2-135m-instruct", path};
  }

  // The text that perplexity.json names; empty where it is not there.
  static std::string wikitext() {
    return readText(INGOT_SHARED_DIR "/data/corpora/wikitext-2/test.txt");
  }

  GoldenModel model_;
};

} // namespace

TEST_F(Smollm2Test, agreesWithTransformers) { compareWithTransformers(model_); }

TEST_F(Smollm2Test, perplexityAgreesWithTransformers) {
  std::string text = wikitext();
  if (text.empty())
    GTEST_SKIP() << "the test text of wikitext-2 is not there";
  comparePerplexity(model_, text);
}

// The weights are stored with four bits a value: int8 holds them nearly exactly.
TEST_F(Smollm2Test, int8StaysNearFloat32) {
  std::string text = wikitext();
  if (text.empty())
    GTEST_SKIP() << "the test text of wikitext-2 is not there";
  compareIntegers(model_, text, 20, {"int8", 0.002, 0.005});
}

// Its exports to ONNX (test/models/README.md tells how they are made), beside the
// folder that they are exports of: every logit and every greedy token is the same,
// bit by bit.
class Smollm2OnnxTest : public ::testing::TestWithParam<std::string> {
protected:
  struct Results {
    std::vector<std::vector<float>> logits;      // of all tokens of one prompt
    std::vector<std::vector<std::int32_t>> made; // greedily, of the others
  };

  static void resultsOf(const std::string &model, Results &results) {
    std::string path = compiledModel(model, "int8");
    ASSERT_FALSE(path.empty());
    auto goldens = readGoldens("smollm2-135m-instruct");
    ASSERT_TRUE(goldens.isOk()) << goldens.status().message();
    EngineOptions options;
    options.context = 512;
    options.logitRows = options.stepTokens;
    auto engine = Engine::open(path, options);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    for (const GoldenGreedy &golden : goldens->greedy) {
      TokenRequest request;
      request.prompt = goldens->prompts[std::size_t(golden.prompt)];
      request.sampling.temperature = 0;
      request.maxTokens = 64;
      request.ignoreEos = true;
      auto id = (*engine)->core().submit(std::move(request),
                                         [&](const RequestOutcome &done) {
                                           results.made.push_back(done.tokens);
                                         });
      ASSERT_TRUE(id.isOk()) << id.status().message();
      Status status = (*engine)->runUntilIdle();
      ASSERT_TRUE(status.isOk()) << status.message();
      ASSERT_EQ(results.made.back().size(), 64u);
    }
    results.logits = scoreTokens(
        **engine, goldens->prompts[std::size_t(goldens->greedy[0].prompt)]);
    ASSERT_FALSE(results.logits.empty());
  }
};

INSTANTIATE_TEST_SUITE_P(Forms, Smollm2OnnxTest,
                         ::testing::Values("decomposed", "attention", "gqa"));

TEST_P(Smollm2OnnxTest, isAsItsFolder) {
  const char *folder = std::getenv("INGOT_SMOLLM2_ONNX");
  if (!folder)
    GTEST_SKIP() << "INGOT_SMOLLM2_ONNX does not name a folder of SmolLM2 with "
                    "its exports";
  static Results expected;
  if (expected.logits.empty())
    ASSERT_NO_FATAL_FAILURE(resultsOf(folder, expected));
  Results found;
  ASSERT_NO_FATAL_FAILURE(
      resultsOf(std::string(folder) + "/" + GetParam() + ".onnx", found));
  EXPECT_EQ(found.made, expected.made);
  EXPECT_EQ(found.logits, expected.logits);
}
