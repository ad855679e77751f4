// The builder of lm modules: what it groups, what it shares and what it refuses.
#include "compiler/frontend/lm/LmBuilder.h"
#include "compiler/frontend/ImportModel.h"
#include "dialects/lm/LmOps.h"

#include <gtest/gtest.h>

using namespace ingot;

namespace {

class LmBuilderTest : public testing::Test {
protected:
  ModelSpec import(const std::string &name) {
    Result<ModelSpec> spec =
        importModel(std::string(INGOT_SOURCE_DIR) + "/test/models/" + name);
    EXPECT_TRUE(spec.isOk()) << spec.status().message();
    return spec ? std::move(spec).value() : ModelSpec();
  }

  mlir::OwningOpRef<mlir::ModuleOp> build(const ModelSpec &spec,
                                          const LmBuildOptions &options = {}) {
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            message = diagnostic.str();
                                            return mlir::success();
                                          });
    auto module = buildLm(context, spec, options);
    return mlir::succeeded(module) ? std::move(*module) : nullptr;
  }

  template <typename OpT> std::vector<OpT> ops(mlir::ModuleOp module) {
    std::vector<OpT> found;
    module.walk([&](OpT op) { found.push_back(op); });
    return found;
  }

  mlir::MLIRContext context;
  std::string message;
};

// Layers of one geometry share a state; a layer of another has its own.
TEST_F(LmBuilderTest, StatesFollowGeometry) {
  ModelSpec spec = import("tiny-llama");
  ASSERT_EQ(spec.layers.size(), 3u);
  spec.layers[1].slidingWindow = 64;
  auto module = build(spec);
  ASSERT_TRUE(module) << message;
  auto states = ops<lm::StateOp>(*module);
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].getLayers(), 2u);
  EXPECT_EQ(states[0].getWindow(), 0u);
  EXPECT_EQ(states[1].getLayers(), 1u);
  EXPECT_EQ(states[1].getWindow(), 64u);
  auto attentions = ops<lm::AttentionOp>(*module);
  EXPECT_EQ(attentions[2].getState(), "kv0");
  EXPECT_EQ(attentions[2].getStateLayer(), 1u);
  EXPECT_EQ(attentions[1].getState(), "kv1");
  EXPECT_TRUE(states[0].getDtype().isF16());
}

// Layers with the same frequencies share a table.
TEST_F(LmBuilderTest, RotationTablesAreShared) {
  ModelSpec spec = import("tiny-llama");
  auto module = build(spec);
  ASSERT_TRUE(module) << message;
  EXPECT_EQ(ops<lm::RopeTableOp>(*module).size(), 1u);
  spec.layers[2].rotary.invFreq[0] = 0.5f;
  module = build(spec);
  ASSERT_TRUE(module) << message;
  EXPECT_EQ(ops<lm::RopeTableOp>(*module).size(), 2u);
}

// Biases, head norms and a tied head come from the spec.
TEST_F(LmBuilderTest, FamiliesDiffer) {
  auto qwen2 = build(import("tiny-qwen2"));
  ASSERT_TRUE(qwen2) << message;
  int biases = 0;
  for (lm::LinearOp linear : ops<lm::LinearOp>(*qwen2))
    biases += linear.getBias().has_value();
  EXPECT_EQ(biases, 6);
  EXPECT_EQ(ops<lm::LinearOp>(*qwen2).back().getWeight(), "embed");
  auto qwen3 = build(import("tiny-qwen3"));
  ASSERT_TRUE(qwen3) << message;
  EXPECT_EQ(ops<lm::HeadNormOp>(*qwen3).size(), 4u);
  auto mistral = build(import("tiny-mistral"));
  ASSERT_TRUE(mistral) << message;
  EXPECT_EQ(ops<lm::AttentionOp>(*mistral)[0].getWindow(), 64u);
  EXPECT_EQ(ops<lm::LinearOp>(*mistral).back().getWeight(), "lm_head");
}

// Options reach the module; every op says where it came from.
TEST_F(LmBuilderTest, Options) {
  ModelSpec spec = import("tiny-llama");
  auto module = build(spec, {.context = 7,
                             .kvDtype = KvDtype::F32,
                             .hidePaths = true,
                             .name = "named"});
  ASSERT_TRUE(module) << message;
  auto info = (*module)->getAttrOfType<mlir::DictionaryAttr>(lm::kModelAttr);
  EXPECT_EQ(info.getAs<mlir::IntegerAttr>("context").getInt(), 7);
  EXPECT_EQ(info.getAs<mlir::StringAttr>("name").getValue(), "named");
  EXPECT_TRUE(ops<lm::StateOp>(*module)[0].getDtype().isF32());
  auto codes = build(spec, {.kvDtype = KvDtype::I8});
  ASSERT_TRUE(codes) << message;
  EXPECT_TRUE(ops<lm::StateOp>(*codes)[0].getDtype().isInteger(8));
  for (lm::SourceOp source : ops<lm::SourceOp>(*module))
    EXPECT_FALSE(source.getPath().has_value());
  module->walk([&](mlir::Operation *op) {
    if (!mlir::isa<mlir::ModuleOp>(op))
      EXPECT_FALSE(lm::locationName(op->getLoc()).empty());
  });
}

// Logits are scaled and capped where the model asks for it.
TEST_F(LmBuilderTest, Logits) {
  ModelSpec spec = import("tiny-llama");
  EXPECT_TRUE(ops<lm::CapOp>(*build(spec)).empty());
  spec.logitScale = 0.5;
  spec.logitSoftcap = 30;
  auto module = build(spec);
  ASSERT_TRUE(module) << message;
  auto caps = ops<lm::CapOp>(*module);
  ASSERT_EQ(caps.size(), 1u);
  EXPECT_EQ(caps[0].getScale().convertToFloat(), 0.5f);
  EXPECT_EQ(caps[0].getSoftCap().convertToFloat(), 30.0f);
}

// What no later step can compute is refused, not dropped.
TEST_F(LmBuilderTest, Refuses) {
  ModelSpec spec = import("tiny-llama");
  EXPECT_FALSE(build(spec, {.context = spec.contextLength + 1}));
  EXPECT_NE(message.find("is not within the model's"), std::string::npos);
  ModelSpec mixed = spec;
  mixed.layers[0].rotary.kind = RotaryKind::Dynamic;
  mixed.layers[1].rotary.kind = RotaryKind::LongRope;
  EXPECT_FALSE(build(mixed));
  EXPECT_NE(message.find("dynamic and with longrope"), std::string::npos);
  ModelSpec missing = spec;
  missing.parameters.erase("layer.1.q");
  EXPECT_FALSE(build(missing));
  EXPECT_NE(message.find("@layer.1.q"), std::string::npos);
  ModelSpec moved = spec;
  moved.sources[0].sizeBytes += 1;
  EXPECT_FALSE(build(moved));
  EXPECT_NE(message.find("bytes, expected"), std::string::npos);
  EXPECT_FALSE(build(ModelSpec()));
  EXPECT_NE(message.find("no layers"), std::string::npos);
}

} // namespace
