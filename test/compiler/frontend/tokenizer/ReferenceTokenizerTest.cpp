// Tiny tokenizers of every kind of model, and between them every component, that
// Hugging Face's library (or SentencePiece's) made and encoded texts with:
// Tokenizers.json and Megabytes.json, written by GenerateTokenizers.py.
#include "compiler/frontend/tokenizer/PrecompiledCharsmap.h"
#include "runtime/text/IncrementalDetokenizer.h"
#include "test/compiler/frontend/tokenizer/TokenizerFixtures.h"

#include <cstdlib>
#include <cstring>
#include <random>

namespace ingot {
namespace {

using nlohmann::json;
using namespace test;

std::string testPath(const std::string &name) {
  return std::string(INGOT_SOURCE_DIR) + "/test/compiler/frontend/tokenizer/" +
         name;
}

const json &reference() {
  static const json all = json::parse(readFile(testPath("Tokenizers.json")));
  return all;
}

OpenTokenizer openSentencePiece(const json &one) {
  auto model = decodeBase64(one["model"].get<std::string>());
  EXPECT_TRUE(model.isOk());
  SentencePieceTokenizer description;
  description.model = *model;
  return open(buildTokenizer(description));
}

// FNV-1a over numbers, as the script does it.
template <typename Items> std::string hashOf(const Items &items) {
  uint64_t value = 0xCBF29CE484222325;
  for (auto item : items)
    value = (value ^ static_cast<std::make_unsigned_t<decltype(item)>>(item)) *
            0x100000001B3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(value));
  return text;
}

// A text as words of eight bytes, with zeros at the end.
std::vector<uint64_t> wordsOf(const std::string &text) {
  std::vector<uint64_t> words((text.size() + 7) / 8);
  std::memcpy(words.data(), text.data(), text.size());
  return words;
}

// Token by token, in any company, the text is that of all at once.
std::string streamed(const OpenTokenizer &tokenizer, const Ids &ids,
                     bool skipSpecial = false) {
  IncrementalDetokenizer detokenizer(*tokenizer.tokenizer, skipSpecial);
  std::string text;
  for (int32_t id : ids)
    text += *detokenizer.push(id);
  return text + detokenizer.flush();
}

TEST(ReferenceTokenizers, GiveTheIdsAndTextsOfTheLibrary) {
  const auto texts = reference()["texts"].get<std::vector<std::string>>();
  for (const auto &[name, one] : reference()["tokenizers"].items()) {
    SCOPED_TRACE(name);
    OpenTokenizer tokenizer = open(build(one["tokenizer"]));
    if (!tokenizer.tokenizer)
      continue;
    for (size_t i = 0; i < texts.size(); ++i) {
      Ids ids = one["ids"][i].get<Ids>();
      EXPECT_EQ(tokenizer.encode(texts[i]), ids) << '"' << texts[i] << '"';
      EXPECT_EQ(tokenizer.decode(ids), one["decoded"][i].get<std::string>());
      EXPECT_EQ(tokenizer.decode(ids, true),
                one["skipped"][i].get<std::string>());
    }
    EXPECT_EQ(tokenizer.encode(texts[4], true), one["special"].get<Ids>());
  }
}

TEST(ReferenceTokenizers, SentencePieceModels) {
  for (const auto &[name, one] : reference()["sentencepiece"].items()) {
    SCOPED_TRACE(name);
    OpenTokenizer tokenizer = openSentencePiece(one);
    if (!tokenizer.tokenizer)
      continue;
    const auto texts = one["texts"].get<std::vector<std::string>>();
    for (size_t i = 0; i < texts.size(); ++i) {
      Ids ids = one["ids"][i].get<Ids>();
      EXPECT_EQ(tokenizer.encode(texts[i]), ids) << '"' << texts[i] << '"';
      // SentencePiece writes its own sign for what is unknown.
      if (std::find(ids.begin(), ids.end(), 0) == ids.end()) {
        EXPECT_EQ(tokenizer.decode(ids), one["decoded"][i].get<std::string>());
      }
    }
  }
}

// Every order of any tokens streams to the text that decoding all at once gives:
// what comes out first is never taken back.
TEST(ReferenceTokenizers, StreamsAtAnySplit) {
  std::mt19937 random(5);
  for (const auto &[name, one] : reference()["tokenizers"].items()) {
    SCOPED_TRACE(name);
    OpenTokenizer tokenizer = open(build(one["tokenizer"]));
    if (!tokenizer.tokenizer)
      continue;
    for (int round = 0; round < 200; ++round) {
      Ids ids;
      for (size_t n = random() % 12; n > 0; --n)
        ids.push_back(static_cast<int32_t>(random() % tokenizer->vocabSize()));
      IncrementalDetokenizer detokenizer(*tokenizer.tokenizer, false);
      std::string text;
      for (size_t i = 0; i < ids.size(); ++i) {
        text += *detokenizer.push(ids[i]);
        Ids soFar(ids.begin(), ids.begin() + i + 1);
        EXPECT_TRUE(tokenizer.decode(ids).starts_with(text)) << i;
      }
      text += detokenizer.flush();
      EXPECT_EQ(text, tokenizer.decode(ids));
      EXPECT_EQ(text, streamed(tokenizer, ids));
    }
  }
}

// Behind a prompt, the text is that of both together without the prompt's own.
TEST(ReferenceTokenizers, GoesOnFromAPrompt) {
  size_t checked = 0, spaces = 0;
  for (const auto &[name, one] : reference()["tokenizers"].items()) {
    SCOPED_TRACE(name);
    OpenTokenizer tokenizer = open(build(one["tokenizer"]));
    if (!tokenizer.tokenizer)
      continue;
    for (size_t i = 0; i < one["ids"].size(); ++i) {
      Ids ids = one["ids"][i].get<Ids>();
      const auto whole = one["skipped"][i].get<std::string>();
      for (size_t cut = 0; cut <= std::min<size_t>(ids.size(), 12); ++cut) {
        Ids prompt(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(cut));
        std::string before = tokenizer.decode(prompt, true);
        // Cut inside a character, or where the prompt's end reads otherwise.
        if (!whole.starts_with(before) || before.ends_with("\uFFFD"))
          continue;
        IncrementalDetokenizer detokenizer(*tokenizer.tokenizer);
        detokenizer.follow(prompt);
        std::string text;
        for (size_t k = cut; k < ids.size(); ++k)
          text += *detokenizer.push(ids[k]);
        text += detokenizer.flush();
        EXPECT_EQ(text, whole.substr(before.size())) << cut;
        ++checked;
        spaces += cut > 0 && text.starts_with(' ');
      }
    }
  }
  EXPECT_GT(checked, 1000u);
  EXPECT_GT(spaces, 100u);
}

class Megabytes : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder() = testing::TempDir() + "ingot-texts";
    std::filesystem::create_directories(folder());
    ASSERT_EQ(std::system(
                  ("python3 " + testPath("texts.py") + " " + folder()).c_str()),
              0);
  }
  static std::string &folder() {
    static std::string path;
    return path;
  }
  static void check(const std::string &name, const OpenTokenizer &tokenizer) {
    static const json all = json::parse(readFile(testPath("Megabytes.json")));
    for (const auto &[text, golden] : all[name].items()) {
      SCOPED_TRACE(name + ", " + text);
      Ids ids = tokenizer.encode(readFile(folder() + "/" + text + ".txt"));
      EXPECT_EQ(ids.size(), golden["count"].get<size_t>());
      EXPECT_EQ(hashOf(ids), golden["ids"].get<std::string>());
      std::string decoded = tokenizer.decode(ids);
      EXPECT_EQ(hashOf(wordsOf(decoded)), golden["decoded"].get<std::string>());
    }
  }
};

TEST_F(Megabytes, ReferenceTokenizers) {
  for (const auto &[name, one] : reference()["tokenizers"].items()) {
    OpenTokenizer tokenizer = open(build(one["tokenizer"]));
    if (tokenizer.tokenizer)
      check(name, tokenizer);
  }
}

TEST_F(Megabytes, SharedTokenizers) {
  INGOT_NEED_SHARED("tokenizers");
  for (const char *name : {"gpt2", "llama2", "llama3", "qwen3"})
    check(name,
          open(buildTokenizerFromFolder(sharedPath("tokenizers/") + name)));
  check(
      "tiny-random-gpt2-fp32",
      open(buildTokenizerFromFolder(sharedPath("onnx/tiny-random-gpt2-fp32"))));
}

TEST_F(Megabytes, SentencePieceModels) {
  static const json all = json::parse(readFile(testPath("Megabytes.json")));
  for (const auto &[name, one] : reference()["sentencepiece"].items()) {
    OpenTokenizer tokenizer = openSentencePiece(one);
    if (!tokenizer.tokenizer)
      continue;
    for (const auto &[text, golden] : all[name].items()) {
      SCOPED_TRACE(name + ", " + text);
      std::string whole = readFile(folder() + "/" + text + ".txt");
      std::erase(whole, '\0');
      Ids ids;
      for (size_t at = 0; at <= whole.size();) {
        size_t end = std::min(whole.find('\n', at), whole.size());
        Ids line = tokenizer.encode(whole.substr(at, end - at));
        ids.insert(ids.end(), line.begin(), line.end());
        at = end + 1;
      }
      EXPECT_EQ(ids.size(), golden["count"].get<size_t>());
      EXPECT_EQ(hashOf(ids), golden["ids"].get<std::string>());
    }
  }
}

} // namespace
} // namespace ingot
