// Vocabularies from real GGUF files: ids equal to llama.cpp's recorded ones.
#include "compiler/frontend/gguf/GgufTokenizer.h"
#include "test/compiler/frontend/tokenizer/TokenizerFixtures.h"
#include "test/e2e/Sha256.h"

#include <cstdlib>
#include <set>

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

// Lowercasing loses what decoding would need: ids alone.
TEST(GgufFileTokenizer, GivesTheRecordedIdsOfWordPieces) {
  INGOT_NEED_SHARED("tokenizers/llamacpp-vocab");
  OpenTokenizer tokenizer = open(buildFrom(
      sharedPath("tokenizers/llamacpp-vocab/ggml-vocab-bert-bge.gguf")));
  std::vector<VectorCase> cases = readVectors("bert-bge");
  EXPECT_GT(cases.size(), 40u);
  for (const VectorCase &one : cases)
    EXPECT_EQ(tokenizer.encode(one.text), one.ids) << one.text;
  EXPECT_EQ(tokenizer.encode("Caf\xC3\xA9", true), (Ids{101, 7668, 102}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("Unaffable, isn't it?")),
            "unaffable, isn ' t it?");
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

// The texts of a shared file, as make_llama_cpp_ids.py takes them.
void addStrings(const nlohmann::json &value, std::set<std::string> &strings) {
  if (value.is_string())
    strings.insert(value.get<std::string>());
  for (const auto &element : value)
    if (value.is_structured())
      addStrings(element, strings);
}

std::vector<std::string> textsOf(const std::string &name) {
  std::string content = readFile(sharedPath(name));
  std::vector<std::string> texts;
  if (name.ends_with(".json")) {
    std::set<std::string> strings;
    addStrings(nlohmann::json::parse(content)["goldens"], strings);
    texts.assign(strings.begin(), strings.end());
  } else if (name.ends_with(".inp")) {
    const std::string separator = "\n__ggml_vocab_test__\n";
    size_t at = 0;
    for (size_t end; (end = content.find(separator, at)) != std::string::npos;
         at = end + separator.size())
      texts.push_back(content.substr(at, end - at));
  } else {
    texts.push_back(content);
  }
  return texts;
}

// SmolLM2's own GGUF on every shared text: the ids of llama.cpp, which
// make_llama_cpp_ids.py recorded; its --compare shows where they part.
TEST(GgufFileTokenizer, GivesLlamaCppsIdsOfSmolLM2) {
  const char *model = std::getenv("INGOT_SMOLLM2");
  if (!model)
    GTEST_SKIP() << "INGOT_SMOLLM2 does not name SmolLM2-135M-Instruct's GGUF";
  INGOT_NEED_SHARED("corpora/wikitext-2/test.txt");
  OpenTokenizer tokenizer = open(buildFrom(model));
  auto golden = nlohmann::json::parse(readFile(
      INGOT_SOURCE_DIR "/test/compiler/frontend/tokenizer/SmolLM2Ids.json"));
  auto check = [&](const nlohmann::json &entry, bool addSpecialTokens) {
    const std::string name = entry["file"];
    std::vector<std::string> texts = textsOf(name);
    EXPECT_EQ(texts.size(), entry["texts"].get<size_t>()) << name;
    test::Sha256 hash;
    size_t count = 0;
    for (const std::string &text : texts) {
      Ids ids = tokenizer.encode(text, addSpecialTokens);
      count += ids.size();
      ids.push_back(-1);
      hash.update({reinterpret_cast<const uint8_t *>(ids.data()),
                   ids.size() * sizeof(int32_t)});
    }
    EXPECT_EQ(count, entry["ids"].get<size_t>()) << name;
    EXPECT_EQ(hash.finish(), entry["sha256"].get<std::string>()) << name;
  };
  check(golden["with_added"], true);
  EXPECT_GE(golden["entries"].size(), 8u);
  for (const auto &entry : golden["entries"])
    check(entry, false);
}

} // namespace
} // namespace ingot
