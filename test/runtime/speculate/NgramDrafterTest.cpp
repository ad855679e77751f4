// What a text's own past says of its future.
#include "runtime/speculate/NgramDrafter.h"

#include <gtest/gtest.h>

#include <random>

using namespace ingot;

namespace {

Draft look(std::vector<std::int32_t> tokens, std::int32_t length,
           NgramOptions options = {}) {
  return NgramDrafter::lookUp(tokens, length, options);
}

} // namespace

// The ending 1 2 stood twice; the later place is followed by 9.
TEST(NgramDrafterTest, theLatestOfEqualMatches) {
  EXPECT_EQ(look({1, 2, 7, 1, 2, 9, 5, 1, 2}, 2), (Draft{9, 5}));
}

// A longer match wins over a later one.
TEST(NgramDrafterTest, theLongestMatch) {
  EXPECT_EQ(look({3, 1, 2, 7, 8, 1, 2, 9, 3, 1, 2}, 2), (Draft{7, 8}));
  // Beyond `most` tokens it is only older.
  EXPECT_EQ(look({3, 1, 2, 7, 8, 1, 2, 9, 3, 1, 2}, 2, {1, 2}), (Draft{9, 3}));
}

// Less than `least` tokens in common are no evidence.
TEST(NgramDrafterTest, shortMatchesAreNone) {
  EXPECT_EQ(look({4, 2, 7, 1, 2}, 3), Draft{});
  EXPECT_EQ(look({4, 2, 7, 1, 2}, 3, {1, 8}), (Draft{7, 1, 2}));
  EXPECT_EQ(look({}, 3), Draft{});
  EXPECT_EQ(look({5}, 3), Draft{});
  EXPECT_EQ(look({1, 2, 3, 4}, 3), Draft{});
}

// A copy that reaches the end goes on into itself.
TEST(NgramDrafterTest, periodsGoOn) {
  EXPECT_EQ(look({7, 7, 7}, 4), (Draft{7, 7, 7, 7}));
  EXPECT_EQ(look({1, 2, 3, 1, 2, 3, 1, 2}, 5), (Draft{3, 1, 2, 3, 1}));
}

// Against the definition, over random texts of few words.
TEST(NgramDrafterTest, followsTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int32_t> tokens(random() % 40);
    for (std::int32_t &token : tokens)
      token = std::int32_t(random() % 3);
    NgramOptions options{1 + std::int32_t(random() % 3), 4};
    auto size = std::int32_t(tokens.size());
    std::int32_t bestEnd = -1;
    for (std::int32_t n = 4; n >= options.least && bestEnd < 0; --n)
      for (std::int32_t end = size - 1; end >= n && bestEnd < 0; --end)
        if (std::equal(tokens.end() - n, tokens.end(),
                       tokens.begin() + end - n))
          bestEnd = end;
    Draft expected;
    auto known = tokens;
    for (int i = 0; i < 6 && bestEnd >= 0; ++i) {
      expected.push_back(known[std::size_t(bestEnd + i)]);
      known.push_back(expected.back());
    }
    EXPECT_EQ(look(tokens, 6, options), expected) << "round " << round;
  }
}
