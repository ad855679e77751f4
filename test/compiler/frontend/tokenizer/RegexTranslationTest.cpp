// Regexes of Oniguruma, said again for PCRE2: what matches stays the same, also
// for characters that PCRE2's Unicode does not know; the rest is refused.
#include "compiler/frontend/tokenizer/RegexTranslation.h"

#include "runtime/text/SplitRegex.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

std::vector<std::string> matches(const std::string &pattern,
                                 const std::string &text) {
  auto translated = translateRegex(pattern, RegexDialect::Oniguruma);
  EXPECT_TRUE(translated.isOk()) << translated.status().message();
  if (!translated)
    return {};
  auto regex = SplitRegex::compile(*translated);
  EXPECT_TRUE(regex.isOk()) << *translated << ": " << regex.status().message();
  if (!regex)
    return {};
  RegexScratch scratch;
  std::vector<TextRange> ranges;
  EXPECT_TRUE(regex->findAll(text, scratch, ranges).isOk());
  std::vector<std::string> out;
  for (TextRange range : ranges)
    out.push_back(text.substr(range.begin, range.end - range.begin));
  return out;
}

using Strings = std::vector<std::string>;

TEST(RegexTranslation, NewCharactersHaveTheirCategories) {
  // U+1C89 and U+1C8A are letters, U+10D40 is a digit, since Unicode 16.
  EXPECT_EQ(matches("\\p{L}+", "a\xE1\xB2\x89\xE1\xB2\x8A."),
            (Strings{"a\xE1\xB2\x89\xE1\xB2\x8A"}));
  EXPECT_EQ(matches("\\p{Lu}", "a\xE1\xB2\x89\xE1\xB2\x8A."),
            (Strings{"\xE1\xB2\x89"}));
  EXPECT_EQ(matches("[^\\p{L}\\p{N}]+", "\xE1\xB2\x89\xF0\x90\xB5\x80.!"),
            (Strings{".!"}));
  EXPECT_EQ(matches("\\P{L}", "\xE1\xB2\x89."), (Strings{"."}));
  EXPECT_EQ(matches("[\\P{L}]", "\xE1\xB2\x89."), (Strings{"."}));
  EXPECT_EQ(matches("\\p{^L}", "\xE1\xB2\x89."), (Strings{"."}));
  EXPECT_EQ(matches("\\d", "7\xF0\x90\xB5\x80x"),
            (Strings{"7", "\xF0\x90\xB5\x80"}));
  EXPECT_EQ(matches("\\p{Han}", "\xE4\xB8\x80\xF0\xB1\x8D\x90x").size(), 2u);
}

TEST(RegexTranslation, WordsAndSpaces) {
  // Marks, superscript digits and joining punctuation belong to a word.
  EXPECT_EQ(matches("\\w+", "e\xCC\x81_1\xC2\xB2\xE2\x80\xBF.\xE2\x92\xB6"),
            (Strings{"e\xCC\x81_1\xC2\xB2\xE2\x80\xBF", "\xE2\x92\xB6"}));
  EXPECT_EQ(matches("\\bb\\w*", "ab bc\xCC\x81"), (Strings{"bc\xCC\x81"}));
  EXPECT_EQ(matches("\\Bb", "ab b"), (Strings{"b"}));
  EXPECT_EQ(matches("\\s", "\xE1\xA0\x8E\xC2\xA0"), (Strings{"\xC2\xA0"}));
  // B17: the separators of lines and paragraphs are white space.
  EXPECT_EQ(matches("\\s+", "a\xE2\x80\xA8\xE2\x80\xA9\xC2\x85z"),
            (Strings{"\xE2\x80\xA8\xE2\x80\xA9\xC2\x85"}));
  EXPECT_EQ(matches("[^\\s\\p{L}]+|\\S+", "a\xE2\x80\xA9z"),
            (Strings{"a", "z"}));
  EXPECT_EQ(matches("\\h+", "fAx9"), (Strings{"fA", "9"}));
}

TEST(RegexTranslation, Classes) {
  EXPECT_EQ(matches("[a[bc]d]+", "abcde"), (Strings{"abcd"}));
  EXPECT_EQ(matches("[^(\\s|[.,])]+", "ab c.d|e"),
            (Strings{"ab", "c", "d", "e"}));
  EXPECT_EQ(matches("[a-z&&[^aeiou]]+", "abcde"), (Strings{"bcd"}));
  EXPECT_EQ(matches("[^a-z&&[^aeiou]]+", "abcde"), (Strings{"a", "e"}));
  EXPECT_EQ(matches("[]x]+", "x]y"), (Strings{"x]"}));
  EXPECT_EQ(matches("[a\\-c]+", "a-bc"), (Strings{"a-", "c"}));
  EXPECT_EQ(matches("[\\x41\\x{42}\\u0043]+", "ABCD"), (Strings{"ABC"}));
  EXPECT_EQ(matches("[[:punct:]]+", "a.$\xE2\x82\xAC\x62"),
            (Strings{".$\xE2\x82\xAC"}));
  EXPECT_EQ(matches("[\\w]+", "a\xC2\xB2\x62"), (Strings{"a", "b"}));
  // A comma of ideographic texts is of no script, though Han texts use it.
  EXPECT_EQ(matches("\\p{Han}", "\xE3\x80\x81"), (Strings{}));
}

TEST(RegexTranslation, GroupsAndIntervals) {
  EXPECT_EQ(matches("(?i:'s)|x", "'S 's x X"), (Strings{"'S", "'s", "x"}));
  EXPECT_EQ(matches("(?m:a.b)", "a\nb"), (Strings{"a\nb"}));
  EXPECT_EQ(matches("a.b", "a\nb"), (Strings{}));
  EXPECT_EQ(matches("^a", "a\na"), (Strings{"a", "a"}));
  EXPECT_EQ(matches("a{,2}b", "aaab"), (Strings{"aab"}));
  EXPECT_EQ(matches("a{x}", "a{x}"), (Strings{"a{x}"}));
  EXPECT_EQ(matches("(?>a+)b|a(?=c)|(?<=c)d", "aab acd").size(), 3u);
}

TEST(RegexTranslation, RefusedByName) {
  for (const char *pattern :
       {"\\R", "\\X", "\\K", "\\G", "\\1", "\\k<a>", "\\p{Greekish}", "\\p{L",
        "a\\", "[a", "[z-a]", "(?~a)", "a{1,3}+", "[a-\\d]", "[[:nope:]]",
        "\\xE9", "\\u12"}) {
    auto translated = translateRegex(pattern, RegexDialect::Oniguruma);
    EXPECT_FALSE(translated.isOk()) << pattern;
    EXPECT_NE(translated.status().message().find("regex \""),
              std::string::npos);
  }
}

} // namespace
} // namespace ingot
