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
  EXPECT_EQ(normalize({{NormalizerKind::Prepend, "", "_"},
                       {NormalizerKind::ReplaceString, " ", "_"}},
                      "a b"),
            "_a_b");
  EXPECT_EQ(normalize({{NormalizerKind::Prepend, "", "_"}}, ""), "");
  EXPECT_EQ(normalize({{NormalizerKind::ReplaceRegex, " {2,}", "$1"}}, "a   b"),
            "a$1b");
  EXPECT_EQ(normalize({{NormalizerKind::SpellBytes}}, " \xC3\xA9"),
            "\xC4\xA0\xC3\x83\xC2\xA9");
}

// A table in which the characters of ASCII have these entries.
struct SmallTable {
  std::vector<uint16_t> blocks =
      std::vector<uint16_t>(CharacterTable::NumBlocks, 1);
  std::vector<uint16_t> entries = std::vector<uint16_t>(512, 0);

  SmallTable(std::initializer_list<std::pair<char, uint16_t>> some) {
    blocks[0] = 0;
    for (auto [character, entry] : some)
      entries[static_cast<uint8_t>(character)] = entry;
  }
  CharacterTable view() const { return {blocks, entries}; }
};

TEST(Normalizer, MapsCharacters) {
  SmallTable table({{'A', 1}, {'x', 2}, {'&', 3}});
  NormalizerStep step{NormalizerKind::MapCharacters};
  step.characters = table.view();
  step.texts = {"a", "", " and "};
  EXPECT_EQ(normalize({step}, "xA&\xC3\x89xx."), "a and \xC3\x89.");
  EXPECT_EQ(normalize({step}, "xx"), "");
  step.texts.pop_back();
  EXPECT_FALSE(Normalizer::create({step}).isOk());
  table.blocks[7] = 2;
  EXPECT_FALSE(Normalizer::create({step}).isOk());
}

TEST(Normalizer, Strips) {
  NormalizerStep step{NormalizerKind::Strip};
  const std::string text = " \xC2\xA0\ta b\xE3\x80\x80\n";
  step.options = StripLeft;
  EXPECT_EQ(normalize({step}, text), "a b\xE3\x80\x80\n");
  step.options = StripRight;
  EXPECT_EQ(normalize({step}, text), " \xC2\xA0\ta b");
  step.options = StripLeft | StripRight;
  EXPECT_EQ(normalize({step}, text), "a b");
  EXPECT_EQ(normalize({step}, " \t"), "");
}

TEST(Normalizer, MarksSpaces) {
  NormalizerStep step{NormalizerKind::MarkSpaces};
  const std::string mark = "\xE2\x96\x81";
  EXPECT_EQ(normalize({step}, " a  b "), mark + "a" + mark + mark + "b" + mark);
  step.options = DummyPrefix;
  EXPECT_EQ(normalize({step}, "a"), mark + "a");
  step.options = DummyPrefix | RemoveExtraSpaces;
  EXPECT_EQ(normalize({step}, "  a  b  "), mark + "a" + mark + "b");
  EXPECT_EQ(normalize({step}, "   "), "");
  step.options |= PrefixAtEnd;
  EXPECT_EQ(normalize({step}, " a b "), "a" + mark + "b" + mark);
}

TEST(PreTokenizer, CutsByClass) {
  SmallTable table({{' ', 1}, {'.', 2}, {'1', 3}, {'~', 4}});
  PreTokenizerStep step{PreTokenizerKind::Classes};
  step.characters = table.view();
  step.classes = {ClassKind::Join, ClassKind::Drop, ClassKind::Single,
                  ClassKind::Join, ClassKind::Neutral};
  EXPECT_EQ(
      pieces({step}, "~ab~ ..c11~1~a\xC3\xA9"),
      (std::vector<std::string>{"ab~", ".", ".", "c", "11~1~", "a\xC3\xA9"}));
  step.classes.pop_back();
  EXPECT_FALSE(PreTokenizer::create({step}).isOk());
}

} // namespace
} // namespace ingot
