// What `ingot check` says before a compilation is what the compilation then
// does: sizes, encodings and conversions; and what stands against it is all
// told. Compilations of quantised checkpoints and of adapters are made here too.
#include "compiler/driver/CheckModel.h"
#include "compiler/driver/CompileSummary.h"
#include "runtime/plan/Artifact.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

namespace ingot {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

const std::string kModels = INGOT_SOURCE_DIR "/test/models/";
const std::string kSeeds = INGOT_SOURCE_DIR "/test/fuzz/seeds/";
const std::string kLora = INGOT_SOURCE_DIR "/test/compiler/frontend/lora/";

CompileRequest requestOf(const std::string &model,
                         const std::string &quantize) {
  CompileRequest request;
  request.modelPath = model;
  request.options.quantize = quantize;
  request.options.levels = {"x86-64-v3"};
  return request;
}

CheckReport check(const CompileRequest &request) {
  mlir::MLIRContext context;
  prepareContext(context);
  return checkModel(context, request);
}

class CheckModelTest : public ::testing::Test {
protected:
  testing::TempFolder folder;

  // Compiles, and compares with what the check says.
  json compileAsChecked(CompileRequest request) {
    CheckReport report = check(request);
    EXPECT_TRUE(report.status) << report.status.message();
    request.outputPath = folder.file("a.ingot");
    std::string diagnostics;
    request.diagnostic = [&](const std::string &text) {
      diagnostics += text + "\n";
    };
    mlir::MLIRContext context;
    prepareContext(context);
    Result<CompiledModel> compiled = compileModel(context, request);
    EXPECT_TRUE(compiled) << compiled.status().message() << diagnostics;
    if (!compiled)
      return {};
    EXPECT_EQ(report.weightsBytes, compiled->artifact.weightsBytes);
    EXPECT_NEAR(double(report.artifactBytes),
                double(compiled->artifact.fileBytes),
                0.1 * double(compiled->artifact.fileBytes) + 600e3);
    EXPECT_GT(report.seconds(), 0.0);
    EXPECT_EQ(report.notes, compiled->notes);
    EXPECT_EQ(report.conversions.size(), compiled->artifact.conversions.size());
    // The ledger holds what was measured.
    Result<Artifact> artifact =
        Artifact::open(request.outputPath, {.verifyChecksums = true});
    EXPECT_TRUE(artifact) << artifact.status().message();
    auto bytes = artifact->segment(container::SegmentKind::Ledger);
    json ledger = json::parse(bytes.begin(), bytes.end());
    json conversions = ledger["conversions"];
    EXPECT_EQ(conversions.size(), report.conversions.size());
    for (std::size_t i = 0; i < conversions.size(); ++i) {
      EXPECT_EQ(conversions[i]["stored"], report.conversions[i].stored);
      EXPECT_EQ(conversions[i]["encoding"], report.conversions[i].encoding);
      EXPECT_EQ(conversions[i]["tensors"], report.conversions[i].tensors);
    }
    return conversions;
  }
};

TEST_F(CheckModelTest, SaysWhatCompilationDoes) {
  EXPECT_TRUE(
      compileAsChecked(requestOf(kModels + "tiny-llama", "none")).empty());
  json int4 = compileAsChecked(requestOf(kModels + "tiny-qwen3", "int4-g32"));
  ASSERT_EQ(int4.size(), 2u); // matrices, and the head at int8
  for (const json &one : int4)
    EXPECT_GT(one["mean_relative_error"], 0.0);
}

// A cache of codes is told before, after and in the artifact.
TEST_F(CheckModelTest, Int8CacheIsSaid) {
  CheckReport halves = check(requestOf(kModels + "tiny-llama", "none"));
  ASSERT_TRUE(halves.status) << halves.status.message();
  EXPECT_EQ(halves.kvElements, "f16");
  CompileRequest request = requestOf(kModels + "tiny-llama", "none");
  request.options.kv = "int8";
  CheckReport codes = check(request);
  ASSERT_TRUE(codes.status) << codes.status.message();
  EXPECT_EQ(codes.kvElements, "i8");
  // Heads of 16: 16 codes and a scale of 4 bytes instead of 32 bytes.
  EXPECT_EQ(codes.kvBytesPerToken * 32, halves.kvBytesPerToken * 20);
  EXPECT_THAT(checkTable(codes), HasSubstr("i8 (keys and values rounded"));
  EXPECT_THAT(checkJson(codes), HasSubstr("\"kv_elements\": \"i8\""));

  request.outputPath = folder.file("codes.ingot");
  mlir::MLIRContext context;
  prepareContext(context);
  Result<CompiledModel> compiled = compileModel(context, request);
  ASSERT_TRUE(compiled) << compiled.status().message();
  EXPECT_THAT(summaryTable(*compiled, request.outputPath),
              HasSubstr("i8 (keys and values rounded"));
  EXPECT_THAT(summaryJson(*compiled, request.outputPath),
              HasSubstr("\"kv_elements\": \"i8\""));
  Result<Artifact> artifact = Artifact::open(request.outputPath, {});
  ASSERT_TRUE(artifact) << artifact.status().message();
  auto bytes = artifact->segment(container::SegmentKind::Ledger);
  json ledger = json::parse(bytes.begin(), bytes.end());
  EXPECT_EQ(ledger["kv_cache"]["encoding"], "i8");
  EXPECT_NEAR(ledger["kv_cache"]["max_relative_error"], 0.5 / 127, 1e-6);
}

// Experts are counted whole, and the router is left as it is.
TEST_F(CheckModelTest, Experts) {
  EXPECT_TRUE(compileAsChecked(requestOf(kModels + "families/mixtral", "none"))
                  .empty());
  compileAsChecked(requestOf(kModels + "families/qwen3-moe-mixed", "int8"));
  CheckReport report =
      check(requestOf(kModels + "families/qwen3-moe", "int4-g32"));
  ASSERT_TRUE(report.status) << report.status.message();
  EXPECT_EQ(report.parameters, 60128u);
  EXPECT_EQ(report.encodings.at("bf16").tensors, 2u); // a router a layer
  // gate and up of 8 experts, down, qkv and o, of two layers; and the embedding.
  EXPECT_EQ(report.encodings.at("i4-g32").tensors, 9u);
}

// A checkpoint that GPTQ made keeps its codes; minima are rounded to float16.
TEST_F(CheckModelTest, QuantizedCheckpoint) {
  json conversions =
      compileAsChecked(requestOf(kSeeds + "models/quantized", "none"));
  ASSERT_EQ(conversions.size(), 1u);
  EXPECT_EQ(conversions[0]["stored"], "gptq 4-bit with zero points");
  EXPECT_EQ(conversions[0]["encoding"], "i4-g32-min");
  EXPECT_EQ(conversions[0]["codes"], "kept");
  EXPECT_LT(conversions[0]["max_relative_error"], 2e-3);
  // int4 without minima is another thing.
  json other =
      compileAsChecked(requestOf(kSeeds + "models/quantized", "int4-g32"));
  json linear;
  for (const json &one : other)
    if (one["stored"] == "gptq 4-bit with zero points")
      linear = one;
  EXPECT_EQ(linear["encoding"], "i4-g32");
  EXPECT_EQ(linear["codes"], "rounded");
  EXPECT_GT(linear["max_relative_error"], 1e-2);
}

// Experts that GPTQ quantised: the checkpoint above, with its feed-forward three
// times over as the experts of a Mixtral.
TEST_F(CheckModelTest, QuantizedExperts) {
  std::ifstream file(kSeeds + "models/quantized/model.safetensors",
                     std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(file)), {});
  std::uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, all.data(), 8);
  json header = json::parse(all.substr(8, headerBytes)), made;
  std::string data;
  auto add = [&](const std::string &name, const json &tensor,
                 std::size_t bytes) {
    std::size_t from = tensor["data_offsets"][0];
    made[name] = tensor;
    made[name]["data_offsets"] = {data.size(), data.size() + bytes};
    data += all.substr(8 + headerBytes + from, bytes);
  };
  const std::map<std::string, std::string> names = {
      {"gate_proj", "w1"}, {"down_proj", "w2"}, {"up_proj", "w3"}};
  for (const auto &[name, tensor] : header.items()) {
    if (name == "__metadata__")
      continue;
    std::size_t bytes = std::size_t(tensor["data_offsets"][1]) -
                        std::size_t(tensor["data_offsets"][0]);
    std::size_t mlp = name.find(".mlp.");
    if (mlp == std::string::npos) {
      add(name, tensor, bytes);
      continue;
    }
    std::string matrix = name.substr(mlp + 5, name.rfind('.') - mlp - 5);
    for (int e = 0; e < 3; ++e)
      add(name.substr(0, mlp) + ".block_sparse_moe.experts." +
              std::to_string(e) + "." + names.at(matrix) +
              name.substr(name.rfind('.')),
          tensor, bytes);
  }
  json router = header["model.embed_tokens.weight"];
  router["shape"] = {3, 32};
  add("model.layers.0.block_sparse_moe.gate.weight", router, 3 * 32 * 2);
  std::string text = made.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::uint64_t size = text.size();
  folder.write("model.safetensors",
               std::string(reinterpret_cast<const char *>(&size), 8) + text +
                   data);
  json config =
      json::parse(std::ifstream(kSeeds + "models/quantized/config.json"));
  config["architectures"] = {"MixtralForCausalLM"};
  config["model_type"] = "mixtral";
  config["num_local_experts"] = 3;
  folder.write("config.json", config.dump());
  json conversions = compileAsChecked(requestOf(folder.path(), "none"));
  ASSERT_EQ(conversions.size(), 1u);
  EXPECT_EQ(conversions[0]["encoding"], "i4-g32-min");
  EXPECT_EQ(conversions[0]["codes"], "kept");
}

TEST_F(CheckModelTest, GgufBlocks) {
  json conversions =
      compileAsChecked(requestOf(kSeeds + "gguf/blocks.gguf", "none"));
  ASSERT_EQ(conversions.size(), 1u); // all others are exact
  EXPECT_EQ(conversions[0]["stored"], "Q5_1");
  // The codes of Q4_K are kept, Q5_K and Q6_K are rounded to int8.
  json wide = compileAsChecked(requestOf(kSeeds + "gguf/kquants.gguf", "none"));
  std::map<std::string, std::string> codes;
  for (const json &one : wide) {
    codes[one["stored"]] = one["codes"];
    EXPECT_LT(one["max_relative_error"], 0.5 / 127 * 1.01);
  }
  EXPECT_EQ(codes["Q4_K"], "kept");
  EXPECT_EQ(codes["Q6_K"], "rounded");
}

TEST_F(CheckModelTest, Adapter) {
  CompileRequest request = requestOf(kLora + "base", "none");
  request.options.lora = {kLora + "plain:0.5", kLora + "rslora"};
  // float32 and adapters: merged, and nothing is lost.
  json merged = compileAsChecked(request);
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_EQ(merged[0]["stored"], "F32+lora");
  EXPECT_EQ(merged[0]["max_relative_error"], 0.0);
  EXPECT_EQ(merged[0]["tensors"], 8u); // two layers: qkv, o, gate_up, down

  request.options.lora = {kLora + "none"};
  CheckReport report = check(request);
  EXPECT_EQ(report.status.code(), StatusCode::NotFound);
}

TEST_F(CheckModelTest, TellsAllThatStandsAgainstIt) {
  fs::copy(kModels + "tiny-llama", folder.file("bad"));
  std::ifstream in(kModels + "tiny-llama/config.json");
  json config = json::parse(in);
  config["new_key"] = 1;
  config["another_key"] = true;
  config["hidden_act"] = "swish7";
  config["vocab_size"] = 100000;
  folder.write("bad/config.json", config.dump());
  CheckReport report = check(requestOf(folder.file("bad"), "none"));
  EXPECT_EQ(report.status.code(), StatusCode::InvalidInput);
  for (const char *word : {"new_key", "another_key", "swish7", "embed_tokens"})
    EXPECT_THAT(checkTable(report), HasSubstr(word));
  json told = json::parse(checkJson(report));
  EXPECT_EQ(told["compiles"], false);
  EXPECT_THAT(told["error"].get<std::string>(), HasSubstr("new_key"));

  CompileRequest other = requestOf(kModels + "tiny-llama", "none");
  other.options.target = "tpu";
  EXPECT_EQ(check(other).status.code(), StatusCode::Unsupported);
}

// A server runs one of an artifact's targets, each with levels of its own.
TEST_F(CheckModelTest, TellsTargetsApart) {
  CompileRequest request = requestOf(kModels + "tiny-llama", "none");
  CheckReport cpu = check(request);
  request.options.target = "cuda:sm_90,cpu";
  CheckReport both = check(request);
  ASSERT_TRUE(both.status) << both.status.message();
  ASSERT_EQ(both.targets.size(), 2u);
  json targets = json::parse(checkJson(both))["targets"];
  ASSERT_EQ(targets.size(), 2u);
  for (const json &target : targets)
    EXPECT_EQ(target["levels"], target["name"] == "cpu"
                                    ? json({"x86-64-v3"})
                                    : json({"sm_90", "compute_80"}));
  EXPECT_THAT(checkTable(both), HasSubstr("cpu (x86-64-v3)\n"));
  EXPECT_GE(both.tokenArenaBytes, cpu.tokenArenaBytes);
  EXPECT_LT(both.tokenArenaBytes, 2 * cpu.tokenArenaBytes);
}

TEST_F(CheckModelTest, SaysThatThereIsNoTokenizer) {
  EXPECT_THAT(check(requestOf(kModels + "families/gpt2", "none")).notes,
              ::testing::Contains(HasSubstr("no tokenizer was found")));
  EXPECT_THAT(
      check(requestOf(kModels + "tiny-llama", "none")).notes,
      ::testing::Not(::testing::Contains(HasSubstr("no tokenizer was found"))));
}

TEST_F(CheckModelTest, WritesNothing) {
  fs::copy(kModels + "tiny-llama", folder.file("model"));
  auto names = [&] {
    std::vector<std::string> found;
    for (const auto &entry : fs::recursive_directory_iterator(folder.path()))
      found.push_back(entry.path());
    return found;
  };
  auto before = names();
  CompileRequest request = requestOf(folder.file("model"), "int8");
  request.outputPath = folder.file("out.ingot");
  request.stagesFolder = folder.file("stages");
  EXPECT_TRUE(check(request).status);
  EXPECT_EQ(names().size(), before.size());
}

} // namespace
} // namespace ingot
