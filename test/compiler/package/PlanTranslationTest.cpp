// The FlatBuffer says what the module says, nothing else, and always the same.
#include "compiler/package/PlanTranslation.h"
#include "runtime/plan/plan_generated.h"

#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ingot::package {
namespace {

using ::testing::HasSubstr;

// Two segments, a mixed set of operands, in the words of the dialect.
const std::string kModule = R"mlir(
module attributes {
  plan.model = {family = "llama", name = "tiny", architecture = "Arch", vocab = 64 : i64, hidden = 32 : i64,
    context = 128 : i64, tied_head = true, parameters = 7 : i64, bos = 1 : i64, eos = array<i64: 2, 3>,
    source_bytes = 9 : i64, sampling = {temperature = 0.5 : f64, min_p = 0.05 : f64, top_k = 40 : i64},
    layers = [{index = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 16 : i64, rotary_dim = 16 : i64,
      rope_kind = "default", rope_theta = 1.0e4 : f64, rope_attention_factor = 1.0 : f64, window = 0 : i64,
      softmax_scale = 0.25 : f64, soft_cap = 0.0 : f64, ffn = 64 : i64, activation = "silu", norm_eps = 1.0e-5 : f64,
      qk_norm = false, qkv_bias = true, output_bias = false}],
    tokenizer = {kind = "none"}, templates = [], licence = "", model_card = ""},
  plan.provenance = {compiler = "ingot test", pipeline = "builtin.module()"}} {
  plan.source @s name "m" size 65536 hash "2d06800538d394c2"
  plan.weight @embed encoding <f16> layout r16 rows 64 columns 32
    parts [#plan.part<source = @s, name = "e", offset = 0, size = 4096, stored = f16, rows = 64, columns = 32>]
    placement <offset = 0, size = 4096, scales = 0, mins = 0>
  plan.weight @layer.0.o encoding <i4, group = 32, minimum> layout r16 rows 32 columns 32
    parts [#plan.part<source = @s, name = "a", offset = 0, size = 320, stored = q4_1, rows = 16, columns = 32>,
           #plan.part<source = @s, name = "b", offset = 320, size = 320, stored = q4_1, rows = 16, columns = 32>]
    placement <offset = 4096, size = 704, scales = 512, mins = 576>
  plan.state @kv0 layers 3 kv_heads 1 head_dim 16 dtype f16 window 0
  plan.state @kv1 layers 1 kv_heads 3 head_dim 24 dtype i8 window 64
  plan.target @cpu layout "r16" levels ["best", "base"] logits @logits token_arena_bytes 256 logit_row_arena_bytes 256 {
    plan.buffer @h domain token offset 0 : !plan.rows<32>
    plan.buffer @xq domain token offset 128 : !plan.quantized_rows<32, group = 32, bits = 8>
    plan.buffer @logits domain logit_row offset 0 : !plan.rows<64>
    plan.kernel @embed_f16 op "embed" config {} scratch 0
    plan.kernel @linear_a op "linear" config {} scratch 64
    plan.kernel @linear_b op "linear" config {} scratch 128
    plan.segment @early output @h {
      plan.embed table @embed to @h scale = 2.0 variants [#plan.variant<1, 0, @embed_f16>] loc("embed")
    }
    plan.segment @main input @h {
      plan.linear @xq weight @layer.0.o residual @h to @h k = 32 n = 32 column = 0 domain = token
        variants [#plan.variant<1, 1, @linear_b>, #plan.variant<2, 0, @linear_a>] loc("layer.0.o")
    }
  }
}
)mlir";

class PlanTranslationTest : public ::testing::Test {
protected:
  PlanTranslationTest() {
    context.disableMultithreading();
    context.loadDialect<plan::PlanDialect>();
    context.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic &diagnostic) {
          messages += diagnostic.str() + "\n";
          return mlir::success();
        });
    for (const char *name : {"best", "base"}) {
      codegen::CompiledLevel level;
      level.name = name;
      level.features = {"avx2"};
      level.elf.resize(4096);
      level.mapSize = 4096;
      for (const char *kernel : {"embed_f16", "linear_a", "linear_b"})
        level.kernels.push_back({kernel, 64 * (level.kernels.size() + 1), 32});
      code.levels.push_back(level);
      code.codeOffsets.push_back(4096 * code.codeOffsets.size());
    }
  }

  // Replaces `from` by `to` in the module's text, then translates it.
  mlir::FailureOr<std::vector<uint8_t>> translate(const std::string &from = "",
                                                  const std::string &to = "") {
    std::string text = kModule;
    if (!from.empty()) {
      size_t at = text.find(from);
      EXPECT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << messages;
    if (!module)
      return mlir::failure();
    return translatePlan(*module, {code}, {{"m", 65536, "2d06800538d394c2"}});
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  TargetCode code;
  std::string messages;
};

TEST_F(PlanTranslationTest, SaysWhatTheModuleSays) {
  auto bytes = translate();
  ASSERT_TRUE(mlir::succeeded(bytes)) << messages;
  flatbuffers::Verifier verifier(bytes->data(), bytes->size());
  ASSERT_TRUE(fbs::VerifyPlanBuffer(verifier));
  const fbs::Plan &plan = *fbs::GetPlan(bytes->data());
  EXPECT_EQ(plan.model()->vocab(), 64u);
  EXPECT_EQ(plan.model()->bos(), 1);
  EXPECT_EQ(plan.model()->eos()->size(), 2u);
  EXPECT_FLOAT_EQ(plan.model()->default_temperature(), 0.5f);
  EXPECT_FLOAT_EQ(plan.model()->default_top_p(), 1.0f);
  EXPECT_EQ(plan.model()->default_top_k(), 40);
  EXPECT_FLOAT_EQ(plan.model()->default_min_p(), 0.05f);
  const fbs::LayerInfo &layer = *plan.model()->layers()->Get(0);
  EXPECT_TRUE(layer.qkv_bias());
  EXPECT_EQ(layer.encodings()->Get(0)->str(), "o=i4-g32-min");

  ASSERT_EQ(plan.weights()->size(), 2u);
  const fbs::Weight &weight = *plan.weights()->Get(1);
  EXPECT_EQ(weight.name()->str(), "layer.0.o");
  EXPECT_EQ(weight.source()->str(), "a+b");
  EXPECT_EQ(weight.encoding()->code(), fbs::WeightCode::i4);
  EXPECT_TRUE(weight.encoding()->minimum());
  EXPECT_EQ(weight.offset(), 4096u);
  EXPECT_EQ(weight.mins_offset(), 576u);
  EXPECT_EQ(plan.weights_bytes(), 4800u);

  const fbs::StateGroup &state = *plan.states()->Get(0);
  EXPECT_EQ(state.block_tokens(), 32u);
  EXPECT_EQ(state.value_offset(), 16u * 32 * 2);
  EXPECT_EQ(state.layer_block_bytes(), 2u * 16 * 32 * 2);
  // Codes, and a float32 scale for each token and head.
  const fbs::StateGroup &codes = *plan.states()->Get(1);
  EXPECT_EQ(codes.dtype(), fbs::DType::i8);
  EXPECT_EQ(codes.value_offset(), 3u * 32 * (24 + 4));
  EXPECT_EQ(codes.layer_block_bytes(), 2u * 3 * 32 * (24 + 4));

  const fbs::Target &target = *plan.targets()->Get(0);
  EXPECT_EQ(target.logits(), 2);
  EXPECT_EQ(target.levels()->Get(1)->code_offset(), 4096u);
  EXPECT_EQ(target.kernels()->Get(2)->symbols()->Get(1)->offset(), 192u);
  const fbs::Buffer &quantized = *target.buffers()->Get(1);
  EXPECT_EQ(quantized.dtype(), fbs::DType::i8);
  EXPECT_EQ(quantized.scales_offset(), 32u);
  EXPECT_EQ(quantized.sums_offset(), 36u);
  EXPECT_EQ(quantized.row_bytes(), 64u);

  ASSERT_EQ(target.segments()->size(), 2u);
  EXPECT_EQ(target.segments()->Get(0)->output(), 0);
  EXPECT_EQ(target.segments()->Get(1)->input(), 0);
  const fbs::Launch &embed = *target.segments()->Get(0)->launches()->Get(0);
  EXPECT_EQ(embed.name()->str(), "embed");
  EXPECT_EQ(embed.layer(), -1);
  EXPECT_FLOAT_EQ(embed.params_as_Embed()->scale(), 2.0f);
  const fbs::Launch &launch = *target.segments()->Get(1)->launches()->Get(0);
  EXPECT_EQ(launch.name()->str(), "layer.0.o");
  EXPECT_EQ(launch.layer(), 0);
  EXPECT_EQ(launch.variants()->Get(0)->kernel(), 2u);
  EXPECT_EQ(launch.variants()->Get(1)->first(), 2u);
  const fbs::Linear &linear = *launch.params_as_Linear();
  EXPECT_EQ(linear.weight(), 1);
  EXPECT_EQ(linear.bias(), -1);
  EXPECT_EQ(linear.residual(), 0);
  EXPECT_EQ(linear.input(), 1);

  EXPECT_EQ(plan.provenance()->inputs()->Get(0)->path()->str(), "m");
}

TEST_F(PlanTranslationTest, GivesTheSameBytesAgain) {
  auto first = translate(), second = translate();
  ASSERT_TRUE(mlir::succeeded(first) && mlir::succeeded(second));
  EXPECT_EQ(*first, *second);
}

TEST_F(PlanTranslationTest, WhatAModuleLacksIsNamed) {
  const std::tuple<const char *, const char *, const char *> cases[] = {
      {" loc(\"layer.0.o\")", "", "has no name in its location"},
      {"    placement <offset = 0, size = 4096, scales = 0, mins = 0>\n", "",
       "has no placement"},
      {" token_arena_bytes 256 logit_row_arena_bytes 256", "", "has no arenas"},
      {"vocab = 64 : i64", "vocab = 5000000000 : i64", "vocab is out of range"},
      {"eos = array<i64: 2, 3>", "eos = array<i64: -2>", "eos is out of range"},
      {"plan.provenance", "test.provenance",
       "expected the attribute plan.provenance"},
      {"levels [\"best\", \"base\"]", "levels [\"best\"]",
       "has 1 levels, but code for 2"},
      {"@embed_f16 op", "@embed_f17 op", ""}};
  for (const auto &[from, to, message] : cases) {
    messages.clear();
    if (std::string(to).find("f17") != std::string::npos) {
      code.levels[1].kernels[0].name = "embed_f17";
      EXPECT_TRUE(mlir::failed(translate()));
      EXPECT_THAT(messages, HasSubstr("has no code at level base"));
      continue;
    }
    context.allowUnregisteredDialects();
    EXPECT_TRUE(mlir::failed(translate(from, to))) << from;
    EXPECT_THAT(messages, HasSubstr(message));
  }
}

// A CUDA target: geometry and kernels of attention from the module, images from the
// code, each at its place in its level.
TEST_F(PlanTranslationTest, CudaTarget) {
  const char *text = R"(
    module attributes {plan.model = MODEL, plan.provenance = {compiler = "c", pipeline = "p"}} {
      plan.state @kv layers 1 kv_heads 1 head_dim 8 dtype f16 window 0
      plan.target @cuda layout "mma16" levels ["sm_90a", "compute_80"] logits @logits
          token_arena_bytes 448 logit_row_arena_bytes 64 {
        plan.buffer @q domain token offset 0 : !plan.rows<8>
        plan.buffer @a domain token offset 64 : !plan.rows<8>
        plan.buffer @h domain token offset 128 : !plan.half_rows<8, parts = 2>
        plan.buffer @logits domain logit_row offset 0 : !plan.rows<8>
        plan.kernel @wide op "attention" config {} scratch 0 geometry <threads = 128, shared = 256, rows = 64, tokens = 1>
        plan.kernel @split op "attention_split" config {} scratch 0 geometry <threads = 128, shared = 0, rows = 16, tokens = 1>
        plan.kernel @merge op "attention_merge" config {} scratch 0 geometry <threads = 256, shared = 36, rows = 1, tokens = 1>
        plan.segment @main {
          plan.attention @q state @kv layer 0 to @a quantized @h heads = 1 kv_heads = 1 head_dim = 8 window = 0
            scale = 1.0 soft_cap = 0.0 variants [#plan.variant<1, 0, @wide>] split @split merge @merge loc("layer.0.attention")
        }
      }
    })";
  std::string whole = text, model = kModule;
  std::size_t begin = model.find("plan.model = ") + 13;
  std::size_t end = model.find(",\n  plan.provenance");
  ASSERT_NE(end, std::string::npos);
  whole.replace(whole.find("MODEL"), 5, model.substr(begin, end - begin));
  module = mlir::parseSourceString<mlir::ModuleOp>(whole, &context);
  ASSERT_TRUE(module) << messages;

  TargetCode cuda;
  for (const char *name : {"sm_90a", "compute_80"}) {
    CudaLevelCode level;
    level.name = name;
    level.driverVersion = level.name == "sm_90a" ? 13000 : 12020;
    std::uint32_t registers = 40;
    for (const char *kernel : {"wide", "split", "merge"})
      level.add({.name = kernel,
                 .registers = registers++,
                 .spillBytes = 4,
                 .staticSharedBytes = 8,
                 .sourceHash = "00112233445566" + std::to_string(registers)},
                std::vector<std::uint8_t>(100, 1));
    cuda.cudaLevels.push_back(std::move(level));
    cuda.codeOffsets.push_back(4096 * cuda.codeOffsets.size());
  }
  auto bytes = translatePlan(*module, {cuda}, {});
  ASSERT_TRUE(mlir::succeeded(bytes)) << messages;
  const fbs::Plan &plan = *fbs::GetPlan(bytes->data());
  const fbs::Target &target = *plan.targets()->Get(0);
  EXPECT_EQ(target.weight_layout()->str(), "mma16");
  ASSERT_EQ(target.levels()->size(), 2u);
  EXPECT_EQ(target.levels()->Get(0)->driver_version(), 13000u);
  EXPECT_EQ(target.levels()->Get(1)->code_offset(), 4096u);
  EXPECT_EQ(target.levels()->Get(1)->code_size(), 356u);
  const fbs::Kernel &split = *target.kernels()->Get(1);
  EXPECT_EQ(split.block_threads(), 128u);
  EXPECT_EQ(split.tile_rows(), 16u);
  EXPECT_EQ(split.source_hash()->str(), "0011223344556642");
  ASSERT_EQ(split.symbols()->size(), 2u);
  EXPECT_EQ(split.symbols()->Get(1)->offset(), 128u);
  EXPECT_EQ(split.symbols()->Get(1)->size(), 100u);
  EXPECT_EQ(split.symbols()->Get(1)->registers(), 41u);
  EXPECT_EQ(split.symbols()->Get(1)->spill_bytes(), 4u);
  EXPECT_EQ(target.kernels()->Get(2)->shared_bytes(), 36u);
  auto *attention =
      target.segments()->Get(0)->launches()->Get(0)->params_as_Attention();
  ASSERT_TRUE(attention);
  EXPECT_EQ(attention->split_kernel(), 1);
  EXPECT_EQ(attention->merge_kernel(), 2);
  const fbs::Buffer &halves = *target.buffers()->Get(2);
  EXPECT_EQ(halves.dtype(), fbs::DType::f16);
  EXPECT_EQ(halves.sums_offset(), 128u);
  EXPECT_EQ(halves.scales_offset(), 256u);
  EXPECT_EQ(halves.row_bytes(), 320u);

  // What the code lacks, or has of another text, is named.
  messages.clear();
  cuda.cudaLevels[1].kernels[1].sourceHash = "ffffffffffffffff";
  EXPECT_TRUE(mlir::failed(translatePlan(*module, {cuda}, {})));
  EXPECT_NE(messages.find("compiled of another text at level compute_80"),
            std::string::npos)
      << messages;
  messages.clear();
  cuda.cudaLevels[1].kernels.pop_back();
  cuda.cudaLevels[1].kernels[1].sourceHash = "0011223344556642";
  EXPECT_TRUE(mlir::failed(translatePlan(*module, {cuda}, {})));
  EXPECT_NE(messages.find("has no code at level compute_80"), std::string::npos)
      << messages;
}

} // namespace
} // namespace ingot::package
