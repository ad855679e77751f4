// Stop strings: nothing of one is ever emitted, everything else is, and how the
// text was cut into pieces makes no difference.
#include "runtime/text/StopMatcher.h"

#include <gtest/gtest.h>

#include <random>

namespace ingot {
namespace {

struct Emitted {
  std::string text;
  bool stopped = false;
};

Emitted feed(const std::vector<std::string> &stops,
             const std::vector<std::string> &pieces) {
  auto matcher = StopMatcher::create(stops);
  EXPECT_TRUE(matcher.isOk());
  Emitted out;
  for (const std::string &piece : pieces) {
    StopMatcher::Output step = matcher->push(piece);
    out.text += step.text;
    out.stopped |= step.stopped;
  }
  if (!out.stopped)
    out.text += matcher->flush();
  return out;
}

// The stop string spans tokens.
TEST(StopMatcher, SpansPieces) {
  Emitted out = feed({"DEFGHIJ"}, {"ABC", "DEF", "G", "HI", "J", "K"});
  EXPECT_EQ(out.text, "ABC");
  EXPECT_TRUE(out.stopped);
}

// Text before the stop string in the same token is emitted.
TEST(StopMatcher, TextBeforeInSamePiece) {
  Emitted out = feed({"own fox"}, {"The quick", " brown", " fox", " jumps"});
  EXPECT_EQ(out.text, "The quick br");
  EXPECT_TRUE(out.stopped);
}

// A prefix that never becomes the stop string is flushed at the end.
TEST(StopMatcher, FlushesPartialMatch) {
  Emitted out = feed({"ab"}, {"xya"});
  EXPECT_EQ(out.text, "xya");
  EXPECT_FALSE(out.stopped);
}

// Only a real prefix is held back, and no longer than it is one.
TEST(StopMatcher, HoldsBackOnlyAPrefix) {
  auto matcher = StopMatcher::create({"aab"});
  ASSERT_TRUE(matcher.isOk());
  EXPECT_EQ(matcher->push("caa").text, "c");
  EXPECT_EQ(matcher->push("a").text, "a");
  EXPECT_EQ(matcher->push("x").text, "aax");
  EXPECT_EQ(matcher->push("aab").text, "");
  EXPECT_TRUE(matcher->stopped());
  EXPECT_EQ(matcher->matched(), "aab");
  EXPECT_EQ(matcher->push("more").text, "");
}

// Of several, the one that is complete first; of two that end together, the
// longer.
TEST(StopMatcher, SeveralStops) {
  EXPECT_EQ(feed({"abcdef", "cd"}, {"xabcdef"}).text, "xab");
  EXPECT_EQ(feed({"cd", "abcd"}, {"xabcdef"}).text, "x");
}

TEST(StopMatcher, RefusesAnEmptyString) {
  auto matcher = StopMatcher::create({"a", ""});
  ASSERT_FALSE(matcher.isOk());
  EXPECT_NE(matcher.status().message().find("stop[1]"), std::string::npos);
}

TEST(StopMatcher, NoStops) { EXPECT_EQ(feed({}, {"a", "b"}).text, "ab"); }

// Any cut of the text gives what a plain search gives.
TEST(StopMatcher, IndependentOfCuts) {
  std::mt19937 random(5);
  auto word = [&](size_t most) {
    std::string text;
    for (size_t n = random() % most + 1; n > 0; --n)
      text.push_back("abc"[random() % 3]);
    return text;
  };
  size_t numStopped = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = random() % 3 + 1; n > 0; --n)
      stops.push_back(word(5));
    std::string text = word(24);
    // The oracle: the smallest end, then the smallest begin.
    size_t begin = text.size(), end = std::string::npos;
    for (const std::string &stop : stops)
      if (size_t at = text.find(stop); at != std::string::npos)
        if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
          begin = at;
          end = at + stop.size();
        }
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      size_t n = random() % 4 + 1;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    Emitted out = feed(stops, pieces);
    EXPECT_EQ(out.text, text.substr(0, begin)) << text;
    EXPECT_EQ(out.stopped, end != std::string::npos);
    numStopped += out.stopped;
  }
  EXPECT_GT(numStopped, 500u);
  EXPECT_LT(numStopped, 3000u);
}

} // namespace
} // namespace ingot
