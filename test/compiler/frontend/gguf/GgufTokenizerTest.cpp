// Tokenizer metadata of GGUF files: everything is carried over or refused.
#include "compiler/frontend/gguf/GgufTokenizer.h"

#include "test/compiler/frontend/GgufBuilder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ingot;
using ingot::testing::GgufBuilder;
using ::testing::HasSubstr;

namespace {

GgufBuilder base() {
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "gpt2");
  builder.text("tokenizer.ggml.pre", "qwen2");
  builder.texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  builder.texts("tokenizer.ggml.merges", {"a b"});
  builder.array<std::int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 3});
  builder.u32("tokenizer.ggml.eos_token_id", 2);
  builder.boolean("tokenizer.ggml.add_bos_token", 0);
  return builder;
}

Result<GgufVocabulary> read(const GgufBuilder &builder) {
  std::vector<std::uint8_t> bytes = builder.bytes();
  auto file = GgufFile::fromMemory(bytes, "x.gguf");
  if (!file.isOk())
    return file.status();
  return readGgufVocabulary(*file);
}

TEST(GgufTokenizer, CarriesEverything) {
  auto vocabulary = read(base());
  ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().message();
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->pre, "qwen2");
  EXPECT_THAT(vocabulary->tokens, ::testing::ElementsAre("a", "b", "ab"));
  EXPECT_THAT(vocabulary->merges, ::testing::ElementsAre("a b"));
  EXPECT_THAT(vocabulary->types, ::testing::ElementsAre(1, 1, 3));
  EXPECT_EQ(vocabulary->eosId, 2);
  EXPECT_EQ(vocabulary->bosId, std::nullopt);
  EXPECT_EQ(vocabulary->addBos, false);
  EXPECT_EQ(vocabulary->addSpacePrefix, std::nullopt);
}

TEST(GgufTokenizer, RefusesWrongValues) {
  GgufBuilder builder = base();
  builder.u32("tokenizer.ggml.bos_token_id", 3);
  EXPECT_THAT(read(builder).status().message(), HasSubstr("bos_token_id"));
  builder = base();
  builder.array<float>("tokenizer.ggml.scores", 6, {1.0f, 2.0f});
  EXPECT_THAT(read(builder).status().message(), HasSubstr("scores"));
  builder = base();
  builder.boolean("tokenizer.ggml.remove_extra_whitespaces", 1);
  EXPECT_EQ(read(builder).status().code(), StatusCode::Unsupported);
  builder = base();
  builder.u32("tokenizer.ggml.novel", 1);
  builder.u32("tokenizer.other", 1);
  EXPECT_THAT(read(builder).status().message(),
              ::testing::AllOf(HasSubstr("tokenizer.ggml.novel"),
                               HasSubstr("tokenizer.other")));
  EXPECT_FALSE(read(GgufBuilder()).isOk());
}

// Every vocabulary file of llama.cpp that is at hand can be read.
TEST(GgufTokenizer, VocabularyFiles) {
  std::string folder = INGOT_SHARED_DIR "/data/tokenizers/llamacpp-vocab";
  if (!std::filesystem::is_directory(folder))
    GTEST_SKIP() << folder << " is not here";
  int seen = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf")
      continue;
    auto file = GgufFile::open(entry.path().string());
    ASSERT_TRUE(file.isOk()) << file.status().message();
    auto vocabulary = readGgufVocabulary(*file);
    ASSERT_TRUE(vocabulary.isOk()) << vocabulary.status().message();
    EXPECT_GT(vocabulary->tokens.size(), 1000u);
    ++seen;
  }
  EXPECT_GT(seen, 0);
}

} // namespace
