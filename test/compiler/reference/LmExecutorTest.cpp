// The lm reference executor against transformers, and every lm pass against the
// executor: what a pass promises ("the same bits") is checked on whole models.
#include "compiler/reference/LmExecutor.h"
#include "compiler/frontend/ImportModel.h"
#include "compiler/frontend/lm/LmBuilder.h"
#include "compiler/pipeline/Phases.h"
#include "passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

using namespace ingot;
using mlir::ModuleOp;
using mlir::OwningOpRef;
using nlohmann::json;

namespace {

const char *kModels[] = {"tiny-llama",       "tiny-mistral",
                         "tiny-qwen2",       "tiny-qwen3",
                         "families/mixtral", "families/qwen3-moe-mixed",
                         "encoders/bert",    "encoders/bert-masked"};

json readJson(const std::string &path) {
  std::ifstream file(path);
  return file ? json::parse(file) : json();
}

std::string modelPath(const std::string &name) {
  return std::string(INGOT_SOURCE_DIR) + "/test/models/" + name;
}

void registerPasses() {
  static bool once = [] {
    registerIngotLmPasses();
    mlir::registerCanonicalizerPass();
    return true;
  }();
  (void)once;
}

class LmExecutorTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    registerPasses();
    Result<ModelSpec> imported = importModel(modelPath(GetParam()));
    ASSERT_TRUE(imported.isOk()) << imported.status().message();
    spec = std::move(imported).value();
  }

  OwningOpRef<ModuleOp> build(const LmBuildOptions &options = {
                                  .kvDtype = KvDtype::F32}) {
    auto module = buildLm(context, spec, options);
    EXPECT_TRUE(mlir::succeeded(module));
    return mlir::succeeded(module) ? std::move(*module) : nullptr;
  }

  void run(ModuleOp module, const std::string &passes) {
    mlir::PassManager manager(&context);
    ASSERT_TRUE(mlir::succeeded(mlir::parsePassPipeline(passes, manager)));
    ASSERT_TRUE(mlir::succeeded(manager.run(module))) << passes;
    ASSERT_TRUE(mlir::succeeded(mlir::verify(module))) << passes;
  }

  static std::vector<float> logits(ModuleOp module,
                                   const std::vector<std::int32_t> &tokens,
                                   const std::vector<std::int64_t> &rows,
                                   const std::string &folder = "") {
    Result<LmExecutor> executor = LmExecutor::create(module, folder);
    EXPECT_TRUE(executor.isOk()) << executor.status().message();
    if (!executor)
      return {};
    Result<std::vector<float>> result = executor->run(tokens, rows);
    EXPECT_TRUE(result.isOk()) << result.status().message();
    return result ? *result : std::vector<float>();
  }

  // Tokens that cross a block of the attention law and a sliding window.
  std::vector<std::int32_t> someTokens(std::size_t count) const {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < count; ++i)
      tokens.push_back(static_cast<std::int32_t>(
          (i * 37 + 11) % std::min<std::size_t>(500, spec.vocabSize)));
    return tokens;
  }

  mlir::MLIRContext context;
  ModelSpec spec;
};

// The imported module gives transformers' logits, as near as float32 allows.
TEST_P(LmExecutorTest, MatchesTransformers) {
  std::string folder = std::string(INGOT_SOURCE_DIR) + "/test/e2e/goldens/";
  json golden = readJson(folder + GetParam() + ".json");
  if (golden.is_null())
    GTEST_SKIP() << "no golden file for " << GetParam();
  json prompts = readJson(folder + golden["promptFile"].get<std::string>());
  ASSERT_FALSE(prompts.is_null());
  OwningOpRef<ModuleOp> module = build();
  ASSERT_TRUE(module);
  int compared = 0;
  for (const json &entry : golden.value("texts", json::array())) {
    auto tokens = prompts["prompts"][entry["prompt"].get<std::size_t>()]
                      .get<std::vector<std::int32_t>>();
    if (tokens.size() > 72)
      continue;
    // A vector of the text, whichever of its rows asks for it.
    std::vector<float> both = logits(
        *module, tokens, {0, static_cast<std::int64_t>(tokens.size()) - 1});
    auto truth = entry["mean"].get<std::vector<double>>();
    ASSERT_EQ(both.size(), 2 * truth.size());
    for (std::size_t i = 0; i < both.size(); ++i)
      EXPECT_NEAR(both[i], truth[i % truth.size()],
                  8 * entry["meanError"].get<double>() + 1e-6)
          << "text of " << tokens.size();
    ++compared;
  }
  for (const json &entry : golden.value("logits", json::array())) {
    auto tokens = prompts["prompts"][entry["prompt"].get<std::size_t>()]
                      .get<std::vector<std::int32_t>>();
    if (tokens.size() > 72)
      continue;
    std::vector<float> row =
        logits(*module, tokens, {static_cast<std::int64_t>(tokens.size()) - 1});
    ASSERT_EQ(row.size(), golden["vocabulary"].get<std::size_t>());
    double tolerance = 8 * entry["maxError"].get<double>() + 2e-6;
    for (std::size_t i = 0; i < entry["ids"].size(); ++i)
      EXPECT_NEAR(row[entry["ids"][i].get<std::size_t>()],
                  entry["logits"][i].get<double>(), tolerance)
          << "prompt " << entry["prompt"] << " of " << tokens.size();
    double sum = 0;
    for (float x : row)
      sum += std::exp(static_cast<double>(x));
    EXPECT_NEAR(std::log(sum), entry["logSumExp"].get<double>(), tolerance);
    ++compared;
  }
  EXPECT_GE(compared, 3);
}

// Simplify, insert-quantize and fuse promise the same bits; so does each pass.
TEST_P(LmExecutorTest, PassesKeepEveryBit) {
  std::vector<std::int32_t> tokens = someTokens(40);
  std::vector<std::int64_t> rows{0, 30, 31, 32, 39};
  for (const char *encoding : {"none", "int8", "int4"}) {
    OwningOpRef<ModuleOp> module = build({});
    ASSERT_TRUE(module);
    run(*module,
        std::string("quantize-weights{group=32 encoding=") + encoding + "}");
    std::vector<float> imported = logits(*module, tokens, rows);
    ASSERT_FALSE(imported.empty());
    for (const char *pass : {"canonicalize", "merge-qkv", "merge-gate-up"}) {
      run(*module, pass);
      EXPECT_EQ(logits(*module, tokens, rows), imported) << encoding << pass;
    }
    run(*module, "insert-quantize");
    std::vector<float> quantized = logits(*module, tokens, rows);
    EXPECT_EQ(quantized == imported, std::string(encoding) == "none");
    for (const char *pass : {"fuse-rotary-cache-write", "fuse-quantize",
                             "fuse-epilogues", "canonicalize"}) {
      run(*module, pass);
      EXPECT_EQ(logits(*module, tokens, rows), quantized) << encoding << pass;
    }
    run(*module, "verify-phase{after=fuse}");
    std::size_t linears = 0, expected = spec.embedding ? 0 : 1; // the head
    module->walk([&](lm::LinearOp) { ++linears; });
    for (const LayerSpec &layer : spec.layers)
      expected += layer.experts > 0 ? 3 : 4; // qkv, o and the router
    EXPECT_EQ(linears, expected) << encoding;
  }
}

// Keys and values that are rounded to codes change the logits a little, and the
// same through every phase.
TEST_P(LmExecutorTest, Int8CacheIsNearAndKept) {
  std::vector<std::int32_t> tokens = someTokens(40);
  std::vector<std::int64_t> rows{0, 31, 32, 39};
  std::vector<float> exact = logits(*build(), tokens, rows);
  OwningOpRef<ModuleOp> module = build({.kvDtype = KvDtype::I8});
  ASSERT_TRUE(module);
  std::vector<float> rounded = logits(*module, tokens, rows);
  ASSERT_EQ(rounded.size(), exact.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    error = std::max(error, std::abs(double(rounded[i]) - exact[i]));
    size = std::max(size, std::abs(double(exact[i])));
  }
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.06 * size); // of random weights; trained ones lose less
  run(*module, "merge-qkv,merge-gate-up,fuse-rotary-cache-write,fuse-epilogues,"
               "canonicalize,verify-phase{after=fuse}");
  EXPECT_EQ(logits(*module, tokens, rows), rounded);
}

// An exit's head is the model with the layers before it alone, and the program
// keeps every bit; so through every phase.
TEST_P(LmExecutorTest, ExitsAreTheModelCutShort) {
  if (spec.embedding)
    GTEST_SKIP() << "an encoder has no head that an exit could have";
  std::vector<std::int32_t> tokens = someTokens(40);
  std::vector<std::int64_t> rows{0, 31, 32, 39};
  OwningOpRef<ModuleOp> module = build({.kvDtype = KvDtype::F32});
  ASSERT_TRUE(module);
  std::vector<float> whole = logits(*module, tokens, rows);
  std::string last = std::to_string(spec.layers.size() - 1);
  std::string exits = last == "1" ? "1" : "1," + last;
  run(*module, "insert-early-exits{layers=" + exits + " cut-final=true}");
  auto ofExit = [&](const std::string &name) {
    Result<LmExecutor> executor = LmExecutor::create(*module, "");
    EXPECT_TRUE(executor.isOk()) << executor.status().message();
    Result<std::vector<float>> result = executor->run(tokens, rows, name);
    EXPECT_TRUE(result.isOk()) << result.status().message();
    return result ? *result : std::vector<float>();
  };
  std::vector<float> first = ofExit("exit1"), later = ofExit("exit" + last);
  EXPECT_EQ(logits(*module, tokens, rows), whole);
  spec.layers.resize(1);
  EXPECT_EQ(logits(*build({.kvDtype = KvDtype::F32}), tokens, rows), first);
  EXPECT_NE(first, whole);
  run(*module,
      "merge-qkv,merge-gate-up,insert-quantize,fuse-rotary-cache-write,"
      "fuse-quantize,fuse-epilogues,fill-exits,canonicalize,"
      "verify-phase{after=fuse}");
  EXPECT_EQ(logits(*module, tokens, rows), whole);
  EXPECT_EQ(ofExit("exit1"), first);
  EXPECT_EQ(ofExit("exit" + last), later);
  std::size_t filled = 0;
  module->walk([&](lm::RopeCacheWriteOp write) {
    filled += write->getParentOfType<lm::ExitOp>() != nullptr;
  });
  EXPECT_GT(filled, 0u);
  EXPECT_FALSE(LmExecutor::create(*module, "")->run(tokens, rows, "exit9"));
}

// Fewer bits are further from the imported model, and int8 is near it.
TEST_P(LmExecutorTest, ErrorGrowsAsBitsShrink) {
  for (const LayerSpec &layer : spec.layers)
    if (layer.experts > layer.expertsPerToken)
      GTEST_SKIP() << "a rounding may choose another expert";
  std::vector<std::int32_t> tokens = someTokens(24);
  std::vector<std::int64_t> rows{11, 23};
  auto rms = [](const std::vector<float> &a, const std::vector<float> &b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum / a.size());
  };
  std::vector<float> truth = logits(*build(), tokens, rows);
  double last = 0;
  for (const char *encoding : {"f16", "int8", "int4"}) {
    OwningOpRef<ModuleOp> module = build();
    PhaseOptions options;
    options.encoding = encoding;
    options.group = 32;
    for (Phase phase :
         {Phase::Import, Phase::Simplify, Phase::Compress, Phase::Fuse})
      run(*module, phasePipeline(phase, options));
    double error = rms(logits(*module, tokens, rows), truth);
    EXPECT_GE(error, last) << encoding;
    EXPECT_LT(error, std::string(encoding) == "int4" ? 2.0 : 0.25) << encoding;
    last = error;
  }
}

// The text of a module is all of it: parsed again it gives the same logits.
TEST_P(LmExecutorTest, TextIsTheModule) {
  OwningOpRef<ModuleOp> module = build({.hidePaths = true});
  PhaseOptions options;
  options.encoding = "int8";
  run(*module, phasePipeline(Phase::Compress, options));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  EXPECT_EQ(text.find(INGOT_SOURCE_DIR), std::string::npos);
  auto parsed = mlir::parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(parsed);
  std::string again;
  llvm::raw_string_ostream stream2(again);
  parsed->print(stream2, mlir::OpPrintingFlags().enableDebugInfo());
  EXPECT_EQ(again, text);
  std::string folder = modelPath(GetParam());
  std::vector<std::int32_t> tokens = someTokens(5);
  EXPECT_EQ(logits(*parsed, tokens, {4}, folder),
            logits(*module, tokens, {4}, folder));
}

// A token's logits do not depend on the rows that are asked for with it.
TEST_P(LmExecutorTest, RowsAreIndependent) {
  OwningOpRef<ModuleOp> module = build();
  std::vector<std::int32_t> tokens = someTokens(9);
  if (spec.embedding) {
    // Every row gives the vector of the text, and each token has its part in it.
    std::vector<float> first = logits(*module, tokens, {0});
    EXPECT_EQ(logits(*module, tokens, {8}), first);
    tokens.back() = 1;
    EXPECT_NE(logits(*module, tokens, {0}), first);
    return;
  }
  std::vector<float> all = logits(*module, tokens, {2, 8});
  std::vector<float> one =
      logits(*module, {tokens.begin(), tokens.begin() + 3}, {2});
  all.resize(one.size());
  EXPECT_EQ(all, one);
}

// Ids outside the embedding and rows outside the tokens are refused.
TEST_P(LmExecutorTest, RefusesWhatIsOutside) {
  OwningOpRef<ModuleOp> module = build();
  Result<LmExecutor> executor = LmExecutor::create(*module);
  ASSERT_TRUE(executor.isOk());
  std::vector<std::int32_t> tokens{0,
                                   static_cast<std::int32_t>(spec.vocabSize)};
  std::vector<std::int64_t> rows{0};
  EXPECT_EQ(executor->run(tokens, rows).status().code(),
            StatusCode::InvalidInput);
  tokens = {0};
  rows = {1};
  EXPECT_EQ(executor->run(tokens, rows).status().code(),
            StatusCode::InvalidInput);
}

INSTANTIATE_TEST_SUITE_P(Models, LmExecutorTest, testing::ValuesIn(kModels),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

} // namespace
