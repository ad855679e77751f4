// Vocabularies from real GGUF files: ids equal to llama.cpp's recorded ones.
#include "compiler/frontend/gguf/GgufTokenizer.h"
#include "test/compiler/frontend/tokenizer/TokenizerFixtures.h"

namespace ingot {
namespace {

using namespace test;

Result<std::vector<uint8_t>> buildFrom(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(path));
  INGOT_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, readGgufVocabulary(file));
  return buildTokenizer(vocabulary);
}

class GgufFileTokenizer : public testing::TestWithParam<const char *> {};

TEST_P(GgufFileTokenizer, GivesTheRecordedIds) {
  INGOT_NEED_SHARED("tokenizers/llamacpp-vocab");
  std::string name = GetParam();
  OpenTokenizer tokenizer = open(buildFrom(
      sharedPath("tokenizers/llamacpp-vocab/ggml-vocab-" + name + ".gguf")));
  std::vector<VectorCase> cases = readVectors(name);
  EXPECT_GT(cases.size(), 40u);
  for (const VectorCase &one : cases) {
    EXPECT_EQ(tokenizer.encode(one.text), one.ids) << one.text;
    EXPECT_EQ(tokenizer.decode(one.ids), one.text);
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, GgufFileTokenizer,
                         testing::Values("gpt-2", "deepseek-coder",
                                         "llama-spm"));

// WordPiece is not supported, and the message says what was found.
TEST(GgufFileTokenizer, NamesAnUnsupportedModel) {
  INGOT_NEED_SHARED("tokenizers/llamacpp-vocab");
  auto built = buildFrom(
      sharedPath("tokenizers/llamacpp-vocab/ggml-vocab-bert-bge.gguf"));
  ASSERT_FALSE(built.isOk());
  EXPECT_NE(built.status().message().find("bert"), std::string::npos)
      << built.status().message();
}

// The same vocabulary by both routes: the same ids.
TEST(GgufFileTokenizer, AgreesWithTokenizerJson) {
  INGOT_NEED_SHARED("models/llama-2-tiny-random.gguf");
  INGOT_NEED_SHARED("corpora/wikitext-2/test.txt");
  OpenTokenizer gguf =
      open(buildFrom(sharedPath("models/llama-2-tiny-random.gguf")));
  OpenTokenizer json =
      open(buildTokenizerFromFolder(sharedPath("tokenizers/llama2")));
  std::string text =
      readFile(sharedPath("corpora/tinyshakespeare.txt")).substr(0, 300000);
  EXPECT_EQ(gguf.encode(text, true), json.encode(text, true));
}

} // namespace
} // namespace ingot
