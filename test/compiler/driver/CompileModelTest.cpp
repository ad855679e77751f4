// From the small models of test/models to artifacts: they open, they are the
// same whenever and wherever they are made, and a saved stage goes on to the
// same bytes.
#include "compiler/driver/CompileModel.h"
#include "compiler/driver/TextModel.h"
#include "runtime/plan/Artifact.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ingot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kModels = INGOT_SOURCE_DIR "/test/models/";

std::string readFile(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

struct Outcome {
  Status status;
  std::string diagnostics;
  std::uint64_t weightsBytes = 0;
};

Outcome compile(CompileRequest request) {
  Outcome outcome;
  request.diagnostic = [&](const std::string &text) {
    outcome.diagnostics += text + "\n";
  };
  mlir::MLIRContext context;
  prepareContext(context);
  Result<CompiledModel> compiled = compileModel(context, request);
  outcome.status = compiled.status();
  if (compiled)
    outcome.weightsBytes = compiled->artifact.weightsBytes;
  return outcome;
}

CompileRequest requestOf(const std::string &model, const std::string &output,
                         const std::string &quantize = "none") {
  CompileRequest request;
  request.modelPath = model;
  request.outputPath = output;
  request.options.quantize = quantize;
  request.options.levels = {"x86-64-v3"};
  return request;
}

class CompileModelTest : public ::testing::Test {
protected:
  testing::TempFolder folder;
};

TEST_F(CompileModelTest, EveryFamilyGivesAnArtifactThatOpens) {
  for (const char *name :
       {"tiny-llama", "tiny-mistral", "tiny-qwen2", "tiny-qwen3"}) {
    SCOPED_TRACE(name);
    std::string path = folder.file("a.ingot");
    Outcome outcome = compile(requestOf(kModels + name, path, "int8"));
    ASSERT_TRUE(outcome.status)
        << outcome.status.message() << outcome.diagnostics;
    Result<Artifact> artifact = Artifact::open(path, {.verifyChecksums = true});
    ASSERT_TRUE(artifact) << artifact.status().message();
    const fbs::Plan &plan = artifact->plan();
    EXPECT_EQ(plan.model()->name()->str(), name);
    EXPECT_EQ(plan.weights_bytes(), outcome.weightsBytes);
    const fbs::Target *target = artifact->target("cpu");
    ASSERT_NE(target, nullptr);
    EXPECT_EQ(target->levels()->size(), 1u);
    // Names and layers come from the model's own words.
    bool hasLayer = false;
    for (const fbs::Launch *launch : *target->segments()->Get(0)->launches())
      if (launch->layer() == 1)
        hasLayer |= launch->name()->str().rfind("layer.1.", 0) == 0;
    EXPECT_TRUE(hasLayer);
    for (const fbs::InputFile *input : *plan.provenance()->inputs())
      EXPECT_EQ(input->path()->str().find('/'), std::string::npos);
    EXPECT_THAT(plan.provenance()->pipeline()->str(),
                HasSubstr("encoding=int8"));
  }
}

TEST_F(CompileModelTest, EveryEncodingGivesAnArtifactThatOpens) {
  for (const char *quantize : {"none", "f32", "f16", "bf16", "int8", "int4-g32",
                               "int4-g64", "int4-g128"}) {
    SCOPED_TRACE(quantize);
    std::string path = folder.file("a.ingot");
    Outcome outcome =
        compile(requestOf(kModels + "tiny-llama", path, quantize));
    ASSERT_TRUE(outcome.status)
        << outcome.status.message() << outcome.diagnostics;
    Result<Artifact> artifact = Artifact::open(path, {.verifyChecksums = true});
    EXPECT_TRUE(artifact) << artifact.status().message();
  }
}

TEST_F(CompileModelTest, ArtifactsAreTheSameWhereverTheyAreMade) {
  std::string first = folder.file("first.ingot"),
              second = folder.file("second.ingot");
  CompileRequest request = requestOf(kModels + "tiny-qwen3", first, "int4-g32");
  ASSERT_TRUE(compile(request).status);

  fs::create_directories(folder.file("elsewhere"));
  fs::copy(kModels + "tiny-qwen3", folder.file("elsewhere/tiny-qwen3"));
  request.modelPath = folder.file("elsewhere/tiny-qwen3");
  request.outputPath = second;
  request.threads = 1;
  ASSERT_TRUE(compile(request).status);
  EXPECT_EQ(readFile(first), readFile(second));
}

TEST_F(CompileModelTest, EveryStageGoesOnToTheSameBytes) {
  std::string whole = folder.file("whole.ingot");
  CompileRequest request = requestOf(kModels + "tiny-llama", whole, "int8");
  request.stagesFolder = folder.file("stages");
  ASSERT_TRUE(compile(request).status);
  std::string expected = readFile(whole);
  for (Phase phase : kPhases) {
    SCOPED_TRACE(phaseName(phase));
    std::string stage = request.stagesFolder + "/" +
                        std::to_string(static_cast<int>(phase)) + "-" +
                        phaseName(phase) + ".mlir";
    ASSERT_TRUE(fs::exists(stage));
    CompileRequest resumed;
    resumed.modelPath = stage;
    resumed.outputPath = folder.file("resumed.ingot");
    if (phase != Phase::Lower) {
      resumed.options = request.options;
      resumed.from = static_cast<Phase>(static_cast<int>(phase) + 1);
    }
    Outcome outcome = compile(resumed);
    ASSERT_TRUE(outcome.status)
        << outcome.status.message() << outcome.diagnostics;
    EXPECT_EQ(readFile(resumed.outputPath), expected);
  }
}

TEST_F(CompileModelTest, WhatAStageCannotFollowIsRefused) {
  CompileRequest request = requestOf(kModels + "tiny-llama", "");
  request.stagesFolder = folder.file("stages");
  ASSERT_TRUE(compile(request).status);
  std::string import = folder.file("stages/0-import.mlir");
  std::string lower = folder.file("stages/4-lower.mlir");

  CompileRequest late = requestOf(lower, folder.file("a.ingot"), "int8");
  EXPECT_THAT(compile(late).status.message(), HasSubstr("no phase is left"));

  CompileRequest renamed = requestOf(import, folder.file("a.ingot"));
  renamed.options.context = 16;
  EXPECT_THAT(compile(renamed).status.message(), HasSubstr("fixed at import"));

  folder.write("broken.mlir", "module { lm.program @main");
  Outcome broken =
      compile(requestOf(folder.file("broken.mlir"), folder.file("a.ingot")));
  EXPECT_EQ(broken.status.code(), StatusCode::InvalidInput);
  EXPECT_THAT(broken.diagnostics, HasSubstr("broken.mlir:1:"));

  folder.write("empty.mlir", "module {}");
  EXPECT_THAT(
      compile(requestOf(folder.file("empty.mlir"), folder.file("a.ingot")))
          .status.message(),
      HasSubstr("neither an lm.program nor a plan.target"));
  EXPECT_FALSE(fs::exists(folder.file("a.ingot")));
}

TEST_F(CompileModelTest, SourcesThatChangedAreRefused) {
  fs::copy(kModels + "tiny-qwen2", folder.file("model"));
  CompileRequest request = requestOf(folder.file("model"), "");
  request.stagesFolder = folder.file("stages");
  ASSERT_TRUE(compile(request).status);
  std::string weights = folder.file("model/model.safetensors");
  std::string bytes = readFile(weights);
  bytes.back() ^= 1;
  std::ofstream(weights, std::ios::binary) << bytes;
  CompileRequest resumed;
  resumed.modelPath = folder.file("stages/4-lower.mlir");
  resumed.outputPath = folder.file("a.ingot");
  EXPECT_THAT(compile(resumed).status.message(),
              HasSubstr("has changed since"));
  EXPECT_FALSE(fs::exists(folder.file("a.ingot")));
}

TEST_F(CompileModelTest, AModelIsNeverOverwrittenByItsArtifact) {
  fs::copy(kModels + "tiny-qwen2", folder.file("model"));
  std::string weights = folder.file("model/model.safetensors");
  std::string before = readFile(weights);
  EXPECT_THAT(
      compile(requestOf(folder.file("model"), weights)).status.message(),
      HasSubstr("is a source of the model"));
  EXPECT_EQ(readFile(weights), before);
}

// A weight that is not a number would reach every logit: the tensor and the
// place are named, whatever the weight is and becomes.
TEST_F(CompileModelTest, WeightsThatAreNotFiniteAreNamed) {
  fs::copy(kModels + "tiny-qwen2", folder.file("model"));
  const std::string weights = folder.file("model/model.safetensors");
  const std::string whole = readFile(weights);
  std::uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, whole.data(), 8);
  auto header = nlohmann::json::parse(whole.substr(8, headerBytes));
  struct Case {
    const char *quantize, *tensor;
    std::size_t element;
    float value;
    const char *place;
  };
  for (const Case &one :
       {Case{"none", "model.embed_tokens.weight", 3 * 48 + 5, NAN,
             "row 3 column 5"},
        Case{"none", "model.layers.0.self_attn.k_proj.bias", 7, -INFINITY,
             "row 7 column 0"},
        Case{"int8", "model.layers.0.self_attn.q_proj.weight", 47 * 48, NAN,
             "row 47 column 0"},
        Case{"int8", "model.layers.1.input_layernorm.weight", 9, NAN,
             "row 9 column 0"},
        Case{"int4-g32", "model.layers.0.mlp.down_proj.weight", 71, INFINITY,
             "row 0 column 71"}}) {
    SCOPED_TRACE(one.tensor);
    std::string bytes = whole;
    std::size_t begin = header[one.tensor]["data_offsets"][0];
    std::memcpy(bytes.data() + 8 + headerBytes + begin + 4 * one.element,
                &one.value, 4);
    std::ofstream(weights, std::ios::binary) << bytes;
    Outcome outcome = compile(
        requestOf(folder.file("model"), folder.file("a.ingot"), one.quantize));
    EXPECT_EQ(outcome.status.code(), StatusCode::InvalidInput);
    EXPECT_THAT(outcome.status.message(),
                HasSubstr("tensor \"" + std::string(one.tensor) + "\" " +
                          one.place + ": expected a finite weight, found " +
                          (std::isnan(one.value) ? "NaN" : "infinity")));
    EXPECT_FALSE(fs::exists(folder.file("a.ingot")));
  }
}

TEST_F(CompileModelTest, ATemplateThatDoesNotParseIsAnError) {
  fs::copy(kModels + "tiny-qwen2", folder.file("model"));
  folder.write("model/chat_template.jinja",
               "{% for m in messages %}{{ m.content }}");
  Outcome outcome =
      compile(requestOf(folder.file("model"), folder.file("a.ingot")));
  EXPECT_THAT(outcome.status.message(), HasSubstr("chat template"));
  EXPECT_FALSE(fs::exists(folder.file("a.ingot")));
}

TEST_F(CompileModelTest, TokenizersOfFolderAndArtifactAgree) {
  std::string path = folder.file("a.ingot");
  ASSERT_TRUE(compile(requestOf(kModels + "tiny-llama", path)).status);
  Result<TextModel> fromFolder = TextModel::open(kModels + "tiny-llama");
  Result<TextModel> fromArtifact = TextModel::open(path);
  ASSERT_TRUE(fromFolder) << fromFolder.status().message();
  ASSERT_TRUE(fromArtifact) << fromArtifact.status().message();
  for (const char *text : {"", "ROMEO: what light", "\n\n  x", "é"}) {
    auto left = fromFolder->tokenizer().encode(text);
    auto right = fromArtifact->tokenizer().encode(text);
    ASSERT_TRUE(left && right);
    EXPECT_EQ(*left, *right) << text;
  }
  EXPECT_FALSE(TextModel::open(folder.file("none")));
}

} // namespace
} // namespace ingot
