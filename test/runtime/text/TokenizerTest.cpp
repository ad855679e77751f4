// The runtime's side of the tokenizer on hand-made tables: merging, added
// tokens, plain ranges, and tables that must not be trusted.
#include "runtime/text/Tokenizer.h"

#include "test/runtime/text/TextTables.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

namespace ingot {
namespace {

using Ids = std::vector<int32_t>;

class SmallTokenizer : public testing::Test {
protected:
  SmallTokenizer() : tables_(test::textTables()) {
    auto opened = Tokenizer::open(tables_);
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    tokenizer_.emplace(std::move(opened).value());
  }
  Ids encode(std::string_view text, std::vector<TextRange> plain = {}) {
    EncodeOptions options;
    options.addSpecialTokens = false;
    options.plainRanges = plain;
    auto ids = tokenizer_->encode(text, options);
    EXPECT_TRUE(ids.isOk()) << ids.status().message();
    return ids.isOk() ? *ids : Ids();
  }

  std::vector<uint8_t> tables_;
  std::optional<Tokenizer> tokenizer_;
};

TEST_F(SmallTokenizer, MergesByRank) {
  EXPECT_EQ(encode("hello"), (Ids{258, 'o'}));
  EXPECT_EQ(encode("lll he"), (Ids{257, 'l', ' ', 256}));
  EXPECT_EQ(encode(""), Ids());
}

// A long word takes the heap, a short one the scan: both merge alike.
TEST_F(SmallTokenizer, LongWordsMergeLikeShortOnes) {
  std::string text;
  Ids expected;
  for (int i = 0; i < 500; ++i) {
    text += "hellolh";
    for (int32_t id : {258, int('o'), int('l'), int('h')})
      expected.push_back(id);
  }
  EXPECT_EQ(encode(text), expected);
}

TEST_F(SmallTokenizer, LongestAddedTokenWins) {
  EXPECT_EQ(encode("<eos2><eos>"), (Ids{260, 259}));
  EXPECT_EQ(encode("a<pad >b"), (Ids{'a', 261, 'b'}));
  EXPECT_EQ(encode("<eo"), (Ids{'<', 'e', 'o'}));
}

TEST_F(SmallTokenizer, SpecialTokensAroundOnRequest) {
  auto ids = tokenizer_->encode("he");
  ASSERT_TRUE(ids.isOk());
  EXPECT_EQ(*ids, (Ids{259, 256}));
}

// No special token takes a byte of a plain range: not inside it, not across
// either end of it. Outside, they are found.
TEST_F(SmallTokenizer, PlainRangesFormNoSpecialToken) {
  const std::string text = "<eos>x<eos>y<eos>";
  auto count = [&](const Ids &ids) {
    return std::count(ids.begin(), ids.end(), 259);
  };
  EXPECT_EQ(count(encode(text)), 3);
  for (size_t begin = 0; begin <= text.size(); ++begin)
    for (size_t end = begin; end <= text.size(); ++end) {
      Ids ids = encode(text, {{begin, end}});
      long expected = 0;
      for (size_t at : {0, 6, 12})
        expected += begin == end || at + 5 <= begin || end <= at;
      EXPECT_EQ(count(ids), expected) << begin << " " << end;
      EXPECT_EQ(*tokenizer_->decode(ids, false), text);
    }
}

TEST_F(SmallTokenizer, RefusesBadRangesAndBadText) {
  EncodeOptions options;
  for (std::vector<TextRange> plain :
       {std::vector<TextRange>{{2, 1}}, {{0, 9}}, {{2, 3}, {1, 2}}}) {
    options.plainRanges = plain;
    EXPECT_FALSE(tokenizer_->encode("hello", options).isOk());
  }
  for (const char *text : {"\xFF", "a\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80"})
    EXPECT_FALSE(tokenizer_->encode(text).isOk()) << text;
}

TEST_F(SmallTokenizer, FindsIdsBySpelling) {
  EXPECT_EQ(tokenizer_->idOf("hell"), 258);
  EXPECT_EQ(tokenizer_->idOf("\xC4\xA0"), ' '); // the alphabet's space
  EXPECT_EQ(tokenizer_->idOf("<eos2>"), 260);
  EXPECT_EQ(tokenizer_->idOf("nothing"), std::nullopt);
  EXPECT_TRUE(tokenizer_->isSpecial(259));
  EXPECT_FALSE(tokenizer_->isSpecial(256));
  EXPECT_FALSE(tokenizer_->isSpecial(-5));
  EXPECT_TRUE(tokenizer_->isMissing(262));
}

// Encoding is const: threads agree with each other.
TEST_F(SmallTokenizer, ThreadsShareOneTokenizer) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += "hello " + std::to_string(i * 7919) + "<eos>";
  const Ids expected = encode(text);
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round)
        equal[t] += encode(text) == expected;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 5));
}

// A regex that would run forever is stopped and reported.
TEST(TokenizerTables, RunawayRegexIsAnError) {
  test::TextTablesOptions options;
  options.pattern = "(?:a+)+(?:a+)+(?:a+)+[bc]d";
  auto tables = test::textTables(options);
  auto tokenizer = Tokenizer::open(tables);
  ASSERT_TRUE(tokenizer.isOk());
  auto ids = tokenizer->encode(std::string(200, 'a') + "c!d");
  ASSERT_FALSE(ids.isOk());
  EXPECT_NE(ids.status().message().find("limit"), std::string::npos)
      << ids.status().message();
}

TEST(TokenizerTables, BadRegexIsAnError) {
  test::TextTablesOptions options;
  options.pattern = "(a";
  auto tables = test::textTables(options);
  EXPECT_FALSE(Tokenizer::open(tables).isOk());
}

TEST(TokenizerTables, EveryTruncationIsAnError) {
  const std::vector<uint8_t> tables = test::textTables();
  // The last few bytes may be padding.
  for (size_t size = 0; size + 8 < tables.size(); ++size) {
    std::vector<uint8_t> cut(tables.begin(), tables.begin() + size);
    EXPECT_FALSE(Tokenizer::open(cut).isOk()) << size;
  }
}

// Random damage: an error, or a tokenizer that works without reading outside
// the tables.
TEST(TokenizerTables, DamagedTablesNeverCrash) {
  const std::vector<uint8_t> tables = test::textTables();
  std::mt19937 random(3);
  size_t numRefused = 0;
  for (int round = 0; round < 6000; ++round) {
    std::vector<uint8_t> damaged = tables;
    for (size_t n = random() % 4 + 1; n > 0; --n) {
      size_t at = random() % damaged.size();
      switch (random() % 3) {
      case 0:
        damaged[at] = static_cast<uint8_t>(random());
        break;
      case 1:
        damaged[at] ^= 1u << random() % 8;
        break;
      default:
        at &= ~size_t(3);
        uint32_t word = random() % 2 ? 0xFFFFFFFFu : uint32_t(random());
        std::memcpy(&damaged[at], &word,
                    std::min<size_t>(4, damaged.size() - at));
      }
    }
    auto tokenizer = Tokenizer::open(damaged);
    numRefused += !tokenizer.isOk();
    if (!tokenizer.isOk())
      continue;
    auto ids = tokenizer->encode("hello <eos2> \xF0\x9F\x98\x80 hell");
    if (ids.isOk()) {
      EXPECT_TRUE(tokenizer->decode(*ids, false).isOk());
    }
    (void)tokenizer->idOf("hell");
  }
  EXPECT_GT(numRefused, 1000u);
}

} // namespace
} // namespace ingot
