// Recipes: the same options as flags, with nothing unknown and nothing ignored.
#include "compiler/driver/CompileOptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingot {
namespace {

using ::testing::HasSubstr;

TEST(CompileOptionsTest, RecipeGivesWhatFlagsLeaveOpen) {
  CompileOptions options;
  options.quantize = "int8";
  ASSERT_TRUE(
      applyRecipe(R"({"quantize": "f16", "context": 64, "skip": ["embed"]})",
                  "r.json", options));
  EXPECT_EQ(*options.quantize, "int8");
  EXPECT_EQ(*options.context, 64);
  EXPECT_THAT(*options.skip, ::testing::ElementsAre("embed"));
}

TEST(CompileOptionsTest, RecipeTextReadsBackAsTheSameOptions) {
  CompileOptions options;
  options.quantize = "int4-g32";
  options.calibrate = "a.txt";
  options.calibrationTokens = 4096;
  options.evaluate = "b.txt";
  options.evaluationTokens = 8192;
  options.maxKl = 0.01;
  options.maxPplIncrease = 0.5;
  options.pruneLayers = 1;
  options.pruneHeads = 2;
  options.pruneFfn = 0.25;
  options.heal = false;
  options.table = "int8";
  options.kv = "f32";
  options.quantizeKv = "int8";
  options.context = 128;
  options.name = "tiny";
  options.target = "cpu";
  options.levels = {"x86-64-v3"};
  options.skip = {"layer.0.q"};
  options.exits = {2, 4};
  options.exitMaps = "maps.safetensors";
  options.pipelines = {{"fuse", "fuse-quantize"}};
  CompileOptions again;
  ASSERT_TRUE(applyRecipe(recipeText(options), "r.json", again));
  EXPECT_EQ(recipeText(again), recipeText(options));
  EXPECT_EQ(again.maxKl, 0.01);
  EXPECT_EQ(again.heal, false);
  EXPECT_EQ(again.pipelines.at("fuse"), "fuse-quantize");
}

TEST(CompileOptionsTest, WhatARecipeMayNotSayIsNamed) {
  const std::pair<const char *, const char *> cases[] = {
      {R"({"quantise": "int8"})", "unknown key \"quantise\""},
      {R"({"quantize": 8})", "\"quantize\": expected a string, found 8"},
      {R"({"context": "long"})", "\"context\": expected an integer"},
      {R"({"context": 1.5})", "\"context\": expected an integer"},
      {R"({"levels": "v3"})", "\"levels\": expected an array of strings"},
      {R"({"levels": [3]})", "\"levels\": expected an array of strings"},
      {R"({"exits": 2})", "\"exits\": expected an array of integers"},
      {R"({"exits": ["2"]})", "\"exits\": expected an array of integers"},
      {R"({"exit_maps": 2})", "\"exit_maps\": expected a string"},
      {R"({"max_kl": "0.1"})", "\"max_kl\": expected a number"},
      {R"({"prune_layers": 0.5})", "\"prune_layers\": expected an integer"},
      {R"({"heal": 1})", "\"heal\": expected true or false"},
      {R"({"allow_library_gemm": "yes"})",
       "\"allow_library_gemm\": expected true or false"},
      {R"({"pipelines": {"melt": ""}})", "no phase is named \"melt\""},
      {R"({"pipelines": {"fuse": 1}})", "pipelines.fuse"},
      {R"([1])", "a recipe is a JSON object"},
      {R"({"kv": "f16", "kv": "f32"})", "kv"},
      {R"({"kv": )", "r.json"}};
  for (const auto &[text, message] : cases) {
    CompileOptions options;
    Status status = applyRecipe(text, "r.json", options);
    EXPECT_FALSE(status) << text;
    EXPECT_THAT(status.message(), HasSubstr(message)) << text;
    EXPECT_EQ(status.code(), StatusCode::InvalidInput) << text;
  }
}

TEST(CompileOptionsTest, ValuesAreChecked) {
  auto refused = [](auto &&set, const char *message) {
    CompileOptions options;
    set(options);
    Result<PhaseOptions> phases = phaseOptions(options);
    ASSERT_FALSE(phases);
    EXPECT_THAT(phases.status().message(), HasSubstr(message));
  };
  refused([](CompileOptions &o) { o.quantize = "int3"; }, "int3");
  refused([](CompileOptions &o) { o.quantize = "int4-g48"; }, "g48");
  refused([](CompileOptions &o) { o.quantize = "int4,a b=int8"; }, "a b");
  refused([](CompileOptions &o) { o.quantize = "int4,a[=int8"; }, "a[");
  refused([](CompileOptions &o) { o.calibrationTokens = 0; }, "tokens 0");
  refused([](CompileOptions &o) { o.evaluationTokens = -1; }, "tokens -1");
  refused([](CompileOptions &o) { o.maxKl = 1; }, "no evaluation text");
  refused([](CompileOptions &o) { o.evaluationTokens = 64; },
          "evaluation tokens 64: there is no evaluation text");
  refused([](CompileOptions &o) { o.calibrationTokens = 64; },
          "calibration tokens 64: there is no calibration text");
  refused([](CompileOptions &o) { o.levels = {""}; }, "is empty");
  refused([](CompileOptions &o) { o.skip = {""}; }, "is empty");
  refused([](CompileOptions &o) { o.pruneLayers = 0; }, "layers to prune");
  refused([](CompileOptions &o) { o.pruneHeads = -1; }, "key heads to prune");
  refused([](CompileOptions &o) { o.pruneFfn = 1; }, "feed-forward to prune");
  refused([](CompileOptions &o) { o.heal = true; }, "nothing is pruned");
  refused([](CompileOptions &o) { o.kv = "i8"; }, "kv \"i8\"");
  refused([](CompileOptions &o) { o.kv = "int4"; }, "f16, f32 or int8");
  refused([](CompileOptions &o) { o.quantizeKv = "int4"; }, "int8 or none");
  refused(
      [](CompileOptions &o) {
        o.kv = "int8";
        o.quantizeKv = "none";
      },
      "contradict");
  refused(
      [](CompileOptions &o) {
        o.kv = "int8";
        o.pipelines["compress"] = "quantize-weights";
      },
      "quantize-kv, which the pipeline of the compress phase lacks");
  refused([](CompileOptions &o) { o.context = 0; }, "context 0");
  refused([](CompileOptions &o) { o.target = "gpu"; }, "target \"gpu\"");
  refused([](CompileOptions &o) { o.target = "cuda:"; }, "expected a chip");
  refused([](CompileOptions &o) { o.target = "cuda:90"; }, "expected a chip");
  refused([](CompileOptions &o) { o.target = "sm_90"; }, "\"sm_90\" is none");
  refused([](CompileOptions &o) { o.target = "cpu,cpu"; }, "cpu stands twice");
  refused([](CompileOptions &o) { o.target = "cpu:sm_90"; },
          "levels of its own");
  refused(
      [](CompileOptions &o) {
        o.target = "cuda:sm_90";
        o.levels = {{"x86-64-v3"}};
      },
      "the cpu, which is not among the targets");
  refused([](CompileOptions &o) { o.allowLibraryGemm = true; },
          "allow-library-gemm: is for the target cuda");
  refused([](CompileOptions &o) { o.skip = {"a,b"}; }, "skip \"a,b\"");
  refused([](CompileOptions &o) { o.skip = {""}; }, "skip \"\"");
  refused([](CompileOptions &o) { o.levels = {"a}b"}; }, "level \"a}b\"");
  refused([](CompileOptions &o) { o.levels.emplace(); }, "levels");
  refused([](CompileOptions &o) { o.exits.emplace(); }, "exits");
  refused([](CompileOptions &o) { o.exitMaps = "m"; }, "exit maps \"m\"");
  refused([](CompileOptions &o) { o.table = "int5"; }, "table \"int5\"");
  refused([](CompileOptions &o) { o.table = ""; }, "table \"\"");
  refused([](CompileOptions &o) { o.name = ""; }, "name");
  refused([](CompileOptions &o) { o.name = "a\nb"; }, "control character");
  refused([](CompileOptions &o) { o.name = "\xff"; }, "UTF-8");
}

// The option is a pass of the lower phase, and part of a recipe.
TEST(CompileOptionsTest, ALibraryIsAPass) {
  CompileOptions options;
  options.target = "cuda:sm_90";
  Result<PhaseOptions> without = phaseOptions(options);
  ASSERT_TRUE(without) << without.status().message();
  EXPECT_EQ(phasePipeline(Phase::Lower, *without).find("library"),
            std::string::npos);
  options.allowLibraryGemm = true;
  Result<PhaseOptions> with = phaseOptions(options);
  ASSERT_TRUE(with) << with.status().message();
  EXPECT_THAT(phasePipeline(Phase::Lower, *with),
              HasSubstr("sms=sm_90},allow-library-gemm,assign-buffers"));
  CompileOptions again;
  ASSERT_TRUE(applyRecipe(recipeText(options), "r.json", again));
  EXPECT_EQ(again.allowLibraryGemm, true);
}

// MLIR's parser of pass options does not return from these.
TEST(CompileOptionsTest, WhatIsNotClosedIsRefused) {
  for (const char *text : {"[", "]", "a[b", "a]b[", "[[a]", "layer.[01]]"}) {
    CompileOptions options;
    options.skip = {text};
    EXPECT_FALSE(phaseOptions(options)) << text;
    options.skip.reset();
    options.levels = {text};
    EXPECT_FALSE(phaseOptions(options)) << text;
  }
  for (const char *text : {"quantize-weights{skip=[}", "a{", "a}", "a{b=(}",
                           "a{b='}", "a{b=\"}", "a{b={c}", "a{b=[(])}"}) {
    CompileOptions options;
    options.pipelines["fuse"] = text;
    Result<PhaseOptions> phases = phaseOptions(options);
    ASSERT_FALSE(phases) << text;
    EXPECT_THAT(phases.status().message(), HasSubstr("pipeline of fuse"));
  }
  CompileOptions options;
  options.skip = {"layer.[01].*"};
  options.pipelines["fuse"] = "a{b=[x,y] c='}' d={e=1}},b";
  EXPECT_TRUE(phaseOptions(options));
}

TEST(CompileOptionsTest, ExitsComeBeforeTheEncodings) {
  CompileOptions options;
  options.exits = {2, 4};
  Result<PhaseOptions> phases = phaseOptions(options);
  ASSERT_TRUE(phases);
  EXPECT_THAT(wholePipelineText(*phases, options),
              HasSubstr("insert-early-exits{layers=2,4},quantize-weights"));
}

TEST(CompileOptionsTest, PipelinesOfARecipeReplaceAPhase) {
  CompileOptions options;
  options.pipelines["fuse"] = "fuse-quantize";
  Result<PhaseOptions> phases = phaseOptions(options);
  ASSERT_TRUE(phases);
  std::string text = wholePipelineText(*phases, options);
  EXPECT_THAT(text, HasSubstr(",fuse-quantize,select-kernels"));
  EXPECT_THAT(text, ::testing::StartsWith("builtin.module("));
}

} // namespace
TEST(CompileOptionsTest, targets) {
  auto lower = [](const char *target) {
    CompileOptions options;
    options.target = target;
    auto phases = phaseOptions(options);
    EXPECT_TRUE(phases.isOk()) << phases.status().message();
    std::string text = phaseText(Phase::Lower, *phases, options);
    return text.substr(0, text.find(",assign-buffers"));
  };
  // The cpu alone is what no word means: the pipeline's text stays as it was.
  EXPECT_EQ(lower("cpu"), "select-kernels");
  EXPECT_EQ(lower("cuda"), "select-kernels{target=cuda}");
  EXPECT_EQ(lower("cuda:sm_80,sm_90a,cpu"),
            "select-kernels{target=cuda,cpu sms=sm_80,sm_90a}");
  EXPECT_EQ(lower("cpu,cuda:sm_90"),
            "select-kernels{target=cpu,cuda sms=sm_90}");
}

} // namespace ingot
