// A decoder that exists as ONNX alone, its operators com.microsoft's: as an artifact it
// gives the logits and greedy tokens of onnxruntime
// (goldens/make_onnxruntime_goldens.py).
#include "test/compiler/frontend/TempFolder.h"
#include "test/e2e/CompiledModel.h"
#include "test/e2e/GoldenComparison.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

using namespace ingot;
using namespace ingot::test;

TEST(OnnxruntimeLogitsTest, tinyRandomGpt2) {
  namespace fs = std::filesystem;
  const fs::path shared = INGOT_SHARED_DIR "/data/onnx/tiny-random-gpt2-fp32";
  if (!fs::exists(shared / "past.onnx"))
    GTEST_SKIP() << shared << " is absent";
  // Without the tokenizer beside it, whose 50295 tokens are not the model's 1000.
  ingot::testing::TempFolder folder;
  for (const char *name : {"past.onnx", "genai_config.json"})
    fs::copy_file(shared / name, folder.file(name));
  const std::string model = folder.file("past.onnx");
  if (std::string missing = whyNotCompiled(model); !missing.empty())
    GTEST_SKIP() << missing;
  auto goldens = nlohmann::json::parse(std::ifstream(
      INGOT_SOURCE_DIR "/test/e2e/goldens/tiny-random-gpt2-fp32.json"));
  std::string path = compiledModel(model, "f32", "f32");
  ASSERT_FALSE(path.empty());
  EngineOptions options;
  options.context = 128;
  options.logitRows = options.stepTokens;
  auto engine = Engine::open(path, options);
  ASSERT_TRUE(engine.isOk()) << engine.status().message();
  ASSERT_EQ((*engine)->model().vocab(), 1000);
  double worst = 0;
  for (const auto &golden : goldens) {
    auto prompt = golden["prompt"].get<std::vector<std::int32_t>>();
    SCOPED_TRACE(std::to_string(prompt.size()) + " tokens");
    auto rows = scoreTokens(**engine, prompt);
    ASSERT_FALSE(rows.empty());
    auto logits = golden["logits"].get<std::vector<double>>();
    ASSERT_EQ(rows.back().size(), logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
      worst = std::max(worst, std::abs(double(rows.back()[i]) - logits[i]));
    TokenRequest request;
    request.prompt = prompt;
    request.sampling.temperature = 0;
    request.maxTokens = 24;
    request.ignoreEos = true;
    std::vector<std::int32_t> made;
    auto id = (*engine)->core().submit(
        std::move(request),
        [&](const RequestOutcome &done) { made = done.tokens; });
    ASSERT_TRUE(id.isOk()) << id.status().message();
    Status status = (*engine)->runUntilIdle();
    ASSERT_TRUE(status.isOk()) << status.message();
    // The smallest lead of a greedy token is 0.0145.
    EXPECT_EQ(made, golden["greedy"].get<std::vector<std::int32_t>>());
  }
  // Both are float32; the largest logit is 0.43.
  EXPECT_LE(worst, 2e-6);
  std::printf("largest error %.3g\n", worst);
}
