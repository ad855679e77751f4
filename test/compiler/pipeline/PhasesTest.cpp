// The shorthand of quantisation and the text of pipelines.
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/PipelineText.h"

#include <gtest/gtest.h>

using namespace ingot;

namespace {

// A shorthand sets encoding and group; the group has a default.
TEST(PhasesTest, ReadsShorthands) {
  struct {
    const char *text, *encoding;
    std::int64_t group;
  } cases[] = {{"int8", "int8", 64},         {"int8-g128", "int8", 128},
               {"int4-g32-rtn", "int4", 32}, {"int4-rtn", "int4", 64},
               {"f16", "f16", 64},           {"none", "none", 64}};
  for (const auto &example : cases) {
    PhaseOptions options;
    options.group = 7;
    ASSERT_TRUE(applyQuantizeShorthand(example.text, options).isOk())
        << example.text;
    EXPECT_EQ(options.encoding, example.encoding);
    EXPECT_EQ(options.group, example.group);
  }
}

// What is not a shorthand is refused and changes nothing.
TEST(PhasesTest, RefusesOtherText) {
  for (const char *text :
       {"", "int5", "int8-", "int8-g", "int8-g16", "int8-g64x", "int4-awq-gptq",
        "int4-gptqx", "int4,", "int4,a", "int4,=int8", "int4,a=", "int4,a=int5",
        "f16-awq", "f16-g32", "none-rtn", "int8-rtn-rtn", "int8-rtn-g64"}) {
    PhaseOptions options;
    Status status = applyQuantizeShorthand(text, options);
    EXPECT_EQ(status.code(), StatusCode::InvalidInput) << text;
    EXPECT_EQ(options.encoding, "none") << text;
  }
}

// Methods, and encodings of weights that a pattern names.
TEST(PhasesTest, ReadsMethodsAndOverrides) {
  PhaseOptions options;
  ASSERT_TRUE(applyQuantizeShorthand(
      "int4-g32-gptq,layer.0.*=int8,*.down=f16,a=int4-awq", options));
  EXPECT_EQ(options.method, "gptq");
  EXPECT_EQ(options.overrides,
            (std::vector<std::string>{"layer.0.*=int8-g64-rtn", "*.down=f16",
                                      "a=int4-g64-awq"}));
  EXPECT_EQ(quantizeWeightsText(options),
            "quantize-weights{encoding=int4 group=32 table=auto method=gptq "
            "overrides=layer.0.*=int8-g64-rtn,*.down=f16,a=int4-g64-awq}");
  EXPECT_TRUE(needsCalibration(options));
  auto rounded = roundedShorthand("int4-g32-gptq,a=int8-g32-awq,b=none");
  ASSERT_TRUE(rounded);
  EXPECT_EQ(*rounded, "int4-g32-rtn,a=int8-g32-rtn,b=none");
  ASSERT_TRUE(applyQuantizeShorthand(*rounded, options));
  EXPECT_FALSE(needsCalibration(options));
  ASSERT_TRUE(applyQuantizeShorthand("int8,a=int8-gptq", options));
  EXPECT_TRUE(needsCalibration(options));
}

// The text holds the options, and covers the phases that were asked for.
TEST(PhasesTest, WritesPipelines) {
  PhaseOptions options;
  options.encoding = "int4";
  options.group = 128;
  options.skip = {"layer.0.*", "lm_head"};
  options.levels = {"x86-64-v3"};
  std::string text = pipelineText(options);
  EXPECT_EQ(text.find("builtin.module(verify-phase{after=import},"), 0u);
  EXPECT_NE(text.find("quantize-weights{encoding=int4 group=128 table=auto "
                      "skip=layer.0.*,lm_head}"),
            std::string::npos);
  EXPECT_NE(text.find("select-kernels{levels=x86-64-v3}"), std::string::npos);
  EXPECT_EQ(pipelineText(options, Phase::Fuse, Phase::Fuse),
            "builtin.module(" + phasePipeline(Phase::Fuse, options) + ")");
}

// What MLIR's parser of options would never return from.
TEST(PhasesTest, FindsWhatIsNotClosed) {
  for (const char *text :
       {"skip=[", "skip=(", "skip={", "skip=]", "skip=[}", "skip=\"a",
        "skip='a", "skip=[[]", "skip=a]b", "'\"'\""})
    EXPECT_EQ(checkClosed("text", text).code(), StatusCode::InvalidInput)
        << text;
  for (const char *text :
       {"", "skip=layer.[0-3].*", "a{b={c d} e=(f)}", "skip=\"[\"", "'{'"})
    EXPECT_TRUE(checkClosed("text", text)) << text;
  const char *bad[] = {"ingot-opt", "a.mlir", "-quantize-weights=skip=["};
  EXPECT_FALSE(checkPipelineArguments(3, bad));
  const char *apart[] = {"ingot-opt", "--pass-pipeline", "builtin.module("};
  EXPECT_FALSE(checkPipelineArguments(3, apart));
  // A file may be called anything.
  const char *good[] = {"ingot-opt", "a[1.mlir", "-canonicalize"};
  EXPECT_TRUE(checkPipelineArguments(3, good));
}

} // namespace
