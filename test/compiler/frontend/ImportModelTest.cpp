// One model through every door is one spec, and the door is told by content.
#include "compiler/frontend/ImportModel.h"

#include "test/compiler/frontend/TempFolder.h"
#include "test/compiler/frontend/TinyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ingot;
using ingot::testing::TempFolder;
using ingot::testing::TinyModel;
using ::testing::HasSubstr;

namespace {

// What must not depend on the way in: all but where the bytes lie.
void expectSame(const ModelSpec &a, const ModelSpec &b) {
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.vocabSize, b.vocabSize);
  EXPECT_EQ(a.hiddenSize, b.hiddenSize);
  EXPECT_EQ(a.contextLength, b.contextLength);
  EXPECT_EQ(a.tiedHead, b.tiedHead);
  EXPECT_EQ(a.normEps, b.normEps);
  EXPECT_EQ(a.embeddingScale, b.embeddingScale);
  EXPECT_EQ(a.logitScale, b.logitScale);
  EXPECT_EQ(a.logitSoftcap, b.logitSoftcap);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.eosIds, b.eosIds);
  EXPECT_EQ(a.bosId, b.bosId);
  EXPECT_EQ(a.chatTemplates, b.chatTemplates);
  EXPECT_EQ(a.sampling, b.sampling);
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto &[role, source] : a.parameters) {
    ASSERT_TRUE(b.parameters.count(role)) << role;
    EXPECT_EQ(source.shape, b.parameters.at(role).shape) << role;
    EXPECT_EQ(source.dtype, b.parameters.at(role).dtype) << role;
  }
}

class Routes : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Families, Routes,
                         ::testing::Values("llama", "qwen2", "qwen3"));

TEST_P(Routes, GiveTheSameSpec) {
  for (bool tied : {false, true})
    for (const char *dtype : {"F32", "BF16"}) {
      TinyModel model = TinyModel::make(GetParam());
      for (auto &[name, tensor] : model.tensors)
        tensor.dtype = dtype;
      model.config["tie_word_embeddings"] = tied;
      if (tied)
        model.tensors.erase("lm_head.weight");
      TempFolder single, sharded, gguf;
      model.writeFolder(single.path());
      model.writeSharded(sharded.path(), 2);
      // No extension: the content tells.
      gguf.write("model", model.gguf());
      auto a = importModel(single.path());
      auto b = importModel(sharded.path());
      auto c = importModel(gguf.file("model"));
      ASSERT_TRUE(a.isOk()) << a.status().message();
      ASSERT_TRUE(b.isOk()) << b.status().message();
      ASSERT_TRUE(c.isOk()) << c.status().message();
      expectSame(*a, *b);
      expectSame(*a, *c);
    }
}

TEST(ImportModel, BiasesOfLlama) {
  TinyModel model = TinyModel::make("llama");
  model.config["attention_bias"] = true;
  model.config["mlp_bias"] = true;
  model.addAttentionBiases(true);
  model.addMlpBiases();
  TempFolder folder;
  model.writeFolder(folder.path());
  folder.write("x.safetensors.gguf", model.gguf());
  auto a = importModel(folder.path());
  auto b = importModel(folder.file("x.safetensors.gguf"));
  ASSERT_TRUE(a.isOk()) << a.status().message();
  ASSERT_TRUE(b.isOk()) << b.status().message();
  expectSame(*a, *b);
}

// A name says nothing: a GGUF called .bin is read, a text called .gguf is not.
TEST(ImportModel, ToldByContent) {
  TempFolder folder;
  folder.write("x.safetensors", TinyModel::make("llama").gguf());
  EXPECT_TRUE(importModel(folder.file("x.safetensors")).isOk());
  folder.write("x.gguf", std::string("GGML and more"));
  auto other = importModel(folder.file("x.gguf"));
  ASSERT_FALSE(other.isOk());
  EXPECT_EQ(other.status().code(), StatusCode::Unsupported);
  folder.write("empty", std::string());
  EXPECT_FALSE(importModel(folder.file("empty")).isOk());
  EXPECT_FALSE(importModel(folder.file("absent")).isOk());
  // A folder without a config is named as such.
  auto bare = importModel(folder.path());
  ASSERT_FALSE(bare.isOk());
  EXPECT_THAT(bare.status().message(), HasSubstr("config.json"));
}

} // namespace
