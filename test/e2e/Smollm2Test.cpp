// A real model: SmolLM2-135M-Instruct (GGUF, Q4_1) against transformers. The
// environment variable INGOT_SMOLLM2 names the file, which is not part of the
// tree; goldens/README.md says where it comes from.
#include "test/e2e/PerplexityComparison.h"

#include <gtest/gtest.h>

#include <cstdlib>

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
