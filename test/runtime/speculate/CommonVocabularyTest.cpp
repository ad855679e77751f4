// One model may guess for another where every id is the same token to both.
#include "runtime/speculate/CommonVocabulary.h"
#include "test/runtime/text/TextTables.h"

#include <gmock/gmock.h>

#include <cstring>
#include <optional>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

class Vocabulary {
public:
  explicit Vocabulary(const std::vector<std::uint8_t> &tables)
      : words_((tables.size() + 7) / 8) {
    std::memcpy(words_.data(), tables.data(), tables.size());
    auto opened = Tokenizer::open(std::span<const std::uint8_t>(
        reinterpret_cast<const std::uint8_t *>(words_.data()), tables.size()));
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    tokenizer_.emplace(std::move(opened).value());
  }
  const Tokenizer &operator*() const { return *tokenizer_; }

private:
  std::vector<std::uint64_t> words_; // aligned as a mapping is
  std::optional<Tokenizer> tokenizer_;
};

} // namespace

TEST(CommonVocabularyTest, theSameTokens) {
  Vocabulary a(textTables()), b(textTables());
  auto common = commonVocabulary(*a, *b);
  ASSERT_TRUE(common.isOk()) << common.status().message();
  EXPECT_EQ(*common, 262);
}

// Padding of either: ids without a token at the end.
TEST(CommonVocabularyTest, onlyPaddingDiffers) {
  TextTablesOptions padded;
  padded.padding = 7;
  Vocabulary a(textTables()), b(textTables(padded));
  EXPECT_EQ(*commonVocabulary(*a, *b), 262);
  EXPECT_EQ(*commonVocabulary(*b, *a), 262);
  EXPECT_EQ(*commonVocabulary(*b, *b), 262);
}

// Of equal size, with other strings.
TEST(CommonVocabularyTest, otherStringsAreRefused) {
  TextTablesOptions other;
  other.merged = {"he", "lo", "hell"};
  Vocabulary a(textTables()), b(textTables(other));
  auto common = commonVocabulary(*a, *b);
  ASSERT_FALSE(common.isOk());
  EXPECT_EQ(common.status().code(), StatusCode::InvalidInput);
  EXPECT_THAT(
      common.status().message(),
      HasSubstr("token id 257 is \"lo\" there and \"ll\" in the model"));
}

// A token that one of them has not, at the end or as another kind.
TEST(CommonVocabularyTest, moreTokensAreRefused) {
  TextTablesOptions longer;
  longer.extraSpecial = "<tool>";
  Vocabulary a(textTables()), b(textTables(longer));
  EXPECT_THAT(
      commonVocabulary(*a, *b).status().message(),
      HasSubstr("token id 262 is special \"<tool>\" there and no token in the "
                "model"));
  EXPECT_THAT(
      commonVocabulary(*b, *a).status().message(),
      HasSubstr("token id 262 is no token there and special \"<tool>\" in the "
                "model"));
}
