// Streaming text: the deltas put together are decode(all ids), only an
// incomplete character waits, and broken bytes never stall the stream.
#include "runtime/text/IncrementalDetokenizer.h"

#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"
#include "test/runtime/text/TextTables.h"

#include <gtest/gtest.h>

#include <random>

namespace ingot {
namespace {

class Detokenizer : public testing::Test {
protected:
  void open(const test::TextTablesOptions &options = {}) {
    tables_ = test::textTables(options);
    auto opened = Tokenizer::open(tables_);
    ASSERT_TRUE(opened.isOk()) << opened.status().message();
    tokenizer_.emplace(std::move(opened).value());
  }
  std::vector<std::string> stream(const std::vector<int32_t> &ids) {
    IncrementalDetokenizer detokenizer(*tokenizer_);
    std::vector<std::string> deltas;
    for (int32_t id : ids) {
      auto delta = detokenizer.push(id);
      EXPECT_TRUE(delta.isOk());
      deltas.push_back(*delta);
    }
    deltas.push_back(detokenizer.flush());
    return deltas;
  }
  static std::string joined(const std::vector<std::string> &deltas) {
    std::string text;
    for (const std::string &delta : deltas)
      text += delta;
    return text;
  }

  std::vector<uint8_t> tables_;
  std::optional<Tokenizer> tokenizer_;
};

// A character in several tokens comes out whole with the last of them.
TEST_F(Detokenizer, HoldsBackIncompleteCharacter) {
  open();
  EXPECT_EQ(
      stream({0xF0, 0x9F, 0x98, 0x80, 'a'}),
      (std::vector<std::string>{"", "", "", "\xF0\x9F\x98\x80", "a", ""}));
  EXPECT_EQ(stream({0xC4, 0x8F}),
            (std::vector<std::string>{"", "\xC4\x8F", ""}));
}

// A stream that ends inside a character gives one U+FFFD.
TEST_F(Detokenizer, CutCharacterAtTheEnd) {
  open();
  EXPECT_EQ(stream({'x', 0xF0, 0x9F}),
            (std::vector<std::string>{"x", "", "", "\xEF\xBF\xBD"}));
}

// Broken bytes in the middle are replaced as soon as they are known broken.
TEST_F(Detokenizer, BrokenBytesDoNotStall) {
  open();
  EXPECT_EQ(stream({0xFF, 'a', 0xF0, 'b', 0x80}),
            (std::vector<std::string>{"\xEF\xBF\xBD", "a", "",
                                      "\xEF\xBF\xBD"
                                      "b",
                                      "\xEF\xBF\xBD", ""}));
}

TEST_F(Detokenizer, SkipsSpecialTokensOnRequest) {
  open();
  EXPECT_EQ(*tokenizer_->decode(std::vector<int32_t>{259, 258, 'o', 260}),
            "hello");
  EXPECT_EQ(*tokenizer_->decode(std::vector<int32_t>{259, 258, 'o'}, false),
            "<eos>hello");
}

TEST_F(Detokenizer, RefusesIdsOutsideTheVocabulary) {
  open();
  IncrementalDetokenizer detokenizer(*tokenizer_);
  for (int32_t id : {-1, 262, INT32_MAX, INT32_MIN}) {
    auto delta = detokenizer.push(id);
    ASSERT_FALSE(delta.isOk());
    EXPECT_NE(delta.status().message().find(std::to_string(id)),
              std::string::npos);
    EXPECT_NE(delta.status().message().find("261"), std::string::npos);
  }
}

// Strip at the start, one space a text, whole or split over tokens.
TEST_F(Detokenizer, StripsTheStartOnce) {
  test::TextTablesOptions options;
  options.stripText = " ";
  options.stripCount = 1;
  open(options);
  EXPECT_EQ(joined(stream({' ', ' ', 'a', ' ', 'b'})), " a b");
  options.stripText = "ab";
  options.stripCount = 2;
  open(options);
  EXPECT_EQ(joined(stream({'a', 'b', 'a', 'b', 'a', 'b'})), "ab");
  EXPECT_EQ(joined(stream({'a', 'b', 'a'})), "a");
}

// At the end only what is still there when the text ends goes.
TEST_F(Detokenizer, StripsTheEnd) {
  test::TextTablesOptions options;
  options.stripText = " ";
  options.stripCount = 1;
  options.stripEndCount = 2;
  open(options);
  EXPECT_EQ(stream({'a', ' ', 'b', ' ', ' ', ' '}),
            (std::vector<std::string>{"a", "", " b", "", "", " ", ""}));
  EXPECT_EQ(joined(stream({' ', ' ', ' ', ' '})), " ");
  EXPECT_EQ(joined(stream({'a', ' ', 0xE2})), "a \xEF\xBF\xBD");
  EXPECT_EQ(joined(stream({})), "");
}

// Behind a prompt nothing is the start of a text, unless all of the prompt is
// left out; a character that it leaves open is completed.
TEST_F(Detokenizer, GoesOnFromAPrompt) {
  test::TextTablesOptions options;
  options.stripText = " ";
  options.stripCount = 1;
  open(options);
  auto behind = [&](std::vector<int32_t> prompt, std::vector<int32_t> ids) {
    IncrementalDetokenizer detokenizer(*tokenizer_);
    detokenizer.follow(prompt);
    std::string text;
    for (int32_t id : ids)
      text += *detokenizer.push(id);
    return text + detokenizer.flush();
  };
  EXPECT_EQ(behind({}, {' ', 'a'}), "a");
  EXPECT_EQ(behind({259}, {' ', 'a'}), "a"); // <eos>
  EXPECT_EQ(behind({'x', 259}, {' ', 'a'}), " a");
  EXPECT_EQ(behind({259, 'x'}, {' ', 'a'}), " a");
  EXPECT_EQ(behind({' '}, {' ', 'a'}), " a");
  EXPECT_EQ(behind({'x', 1000, -1}, {'a'}), "a");
  EXPECT_EQ(behind({'x', 0xF0, 0x9F}, {0x98, 0x80}), "\xF0\x9F\x98\x80");
}

TEST_F(Detokenizer, DropsRepeats) {
  test::TextTablesOptions options;
  options.dropRepeats = true;
  open(options);
  EXPECT_EQ(joined(stream({'a', 'a', 'b', 259, 'b', 'a'})), "aba");
}

// Random bytes, valid and not: deltas are valid UTF-8 and add up.
TEST_F(Detokenizer, DeltasAddUpForAnyBytes) {
  open();
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids;
    std::string bytes;
    for (size_t n = random() % 12; n > 0; --n) {
      std::string character;
      appendUtf8(character,
                 random() % 4 ? 0x1F600 + random() % 64 : random() % 0xD000);
      // Sometimes a part of a character only.
      character.resize(random() % 5 ? character.size()
                                    : random() % character.size() + 1);
      bytes += character;
    }
    for (char b : bytes)
      ids.push_back(static_cast<uint8_t>(b));
    std::vector<std::string> deltas = stream(ids);
    for (const std::string &delta : deltas)
      EXPECT_EQ(findInvalidUtf8(delta), std::string_view::npos);
    std::string whole;
    if (appendValidUtf8(whole, bytes))
      whole += ReplacementCharacter;
    EXPECT_EQ(joined(deltas), whole);
    EXPECT_EQ(*tokenizer_->decode(ids), whole);
    if (findInvalidUtf8(bytes) == std::string_view::npos) {
      EXPECT_EQ(whole, bytes);
    }
  }
}

} // namespace
} // namespace ingot
