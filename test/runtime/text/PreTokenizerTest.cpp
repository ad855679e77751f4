// The steps that cut and rewrite text, one by one.
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/Normalizer.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

using Strings = std::vector<std::string>;

PreTokenizerStep split(const char *pattern, SplitBehavior behavior,
                       bool invert = false) {
  PreTokenizerStep step{PreTokenizerKind::Split, pattern};
  step.behavior = behavior;
  step.invert = invert;
  return step;
}

Strings pieces(std::vector<PreTokenizerStep> steps, std::string_view text,
               bool atStart = true) {
  auto preTokenizer = PreTokenizer::create(std::move(steps));
  EXPECT_TRUE(preTokenizer.isOk());
  RegexScratch scratch;
  Pieces out;
  EXPECT_TRUE(preTokenizer->split(text, atStart, scratch, out).isOk());
  Strings strings;
  for (TextRange range : out.ranges)
    strings.emplace_back(out.text.substr(range.begin, range.end - range.begin));
  return strings;
}

TEST(PreTokenizer, SplitBehaviors) {
  const char *text = "the-final--countdown";
  EXPECT_EQ(pieces({split("-", SplitBehavior::Removed)}, text),
            (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(pieces({split("-", SplitBehavior::Isolated)}, text),
            (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(pieces({split("-", SplitBehavior::MergedWithPrevious)}, text),
            (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(pieces({split("-", SplitBehavior::MergedWithNext)}, text),
            (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(pieces({split("-", SplitBehavior::Contiguous)}, text),
            (Strings{"the", "-", "final", "--", "countdown"}));
}

TEST(PreTokenizer, InvertSwapsMatchAndGap) {
  EXPECT_EQ(pieces({split("[a-z]+", SplitBehavior::Removed, true)}, "ab-cd"),
            (Strings{"ab", "cd"}));
}

// A later step sees each piece as a text of its own: the lookahead does not see
// the letter behind the piece.
TEST(PreTokenizer, StepsSeePiecesAlone) {
  EXPECT_EQ(pieces({split("x", SplitBehavior::Isolated),
                    split("\\s+(?!\\S)|\\s+|\\S", SplitBehavior::Isolated)},
                   "a  x"),
            (Strings{"a", "  ", "x"}));
}

// An empty match cuts between two characters, and never loops.
TEST(PreTokenizer, EmptyMatches) {
  EXPECT_EQ(pieces({split("(?=b)", SplitBehavior::Isolated)}, "abab"),
            (Strings{"a", "ba", "b"}));
  EXPECT_EQ(pieces({split("b*", SplitBehavior::Isolated)}, "abba"),
            (Strings{"a", "bb", "a"}));
}

TEST(PreTokenizer, PrefixSpace) {
  PreTokenizerStep prefix{PreTokenizerKind::PrefixSpace};
  EXPECT_EQ(pieces({prefix}, "a"), (Strings{" a"}));
  EXPECT_EQ(pieces({prefix}, " a"), (Strings{" a"}));
  EXPECT_EQ(pieces({prefix}, "\ta"), (Strings{" \ta"}));
  EXPECT_EQ(pieces({prefix}, ""), Strings{});
}

TEST(PreTokenizer, Metaspace) {
  PreTokenizerStep step{PreTokenizerKind::Metaspace};
  step.replacement = "_";
  step.prependScheme = PrependScheme::First;
  auto cut = split("_", SplitBehavior::MergedWithNext);
  EXPECT_EQ(pieces({step, cut}, "hey you  x"),
            (Strings{"_hey", "_you", "_", "_x"}));
  EXPECT_EQ(pieces({step, cut}, "hey", false), (Strings{"hey"}));
  step.prependScheme = PrependScheme::Always;
  EXPECT_EQ(pieces({step}, "hey", false), (Strings{"_hey"}));
  EXPECT_EQ(pieces({step}, " hey"), (Strings{"_hey"}));
  step.prependScheme = PrependScheme::Never;
  EXPECT_EQ(pieces({step}, "a b"), (Strings{"a_b"}));
}

TEST(PreTokenizer, RefusesAnEmptyPattern) {
  EXPECT_FALSE(
      PreTokenizer::create({split("", SplitBehavior::Isolated)}).isOk());
}

std::string normalize(std::vector<NormalizerStep> steps, std::string text) {
  auto normalizer = Normalizer::create(std::move(steps));
  EXPECT_TRUE(normalizer.isOk());
  RegexScratch scratch;
  EXPECT_TRUE(normalizer->apply(text, scratch).isOk());
  return text;
}

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(normalize({{NormalizerKind::Nfc, "", ""}}, "e\xCC\x81"),
            "\xC3\xA9");
  EXPECT_EQ(normalize({{NormalizerKind::Nfd, "", ""}}, "\xC3\xA9"),
            "e\xCC\x81");
  EXPECT_EQ(normalize({{NormalizerKind::Nfkc, "", ""}}, "\xEF\xAC\x81"), "fi");
  EXPECT_EQ(normalize({{NormalizerKind::Nfkd, "", ""}}, "\xC2\xBD"),
            "1\xE2\x81\x84"
            "2");
  // A NUL is text like any other.
  EXPECT_EQ(normalize({{NormalizerKind::Nfc, "", ""}},
                      std::string("e\xCC\x81\0z", 5)),
            std::string("\xC3\xA9\0z", 4));
}

TEST(Normalizer, Rewrites) {
  EXPECT_EQ(normalize({{NormalizerKind::Lowercase, "", ""}}, "AB\xC3\x89"),
            "ab\xC3\xA9");
  EXPECT_EQ(normalize({{NormalizerKind::Prepend, "", "_"},
                       {NormalizerKind::ReplaceString, " ", "_"}},
                      "a b"),
            "_a_b");
  EXPECT_EQ(normalize({{NormalizerKind::Prepend, "", "_"}}, ""), "");
  EXPECT_EQ(normalize({{NormalizerKind::ReplaceRegex, " {2,}", "$1"}}, "a   b"),
            "a$1b");
}

} // namespace
} // namespace ingot
