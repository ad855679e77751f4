// How far to guess: further where guesses stand, not at all where they do not
// pay.
#include "runtime/speculate/DraftLength.h"

#include <gtest/gtest.h>

#include <vector>

using namespace ingot;

// Free guesses are taken as far as allowed, whatever came of them.
TEST(DraftLengthTest, freeGuessesGoAllTheWay) {
  DraftLength length;
  EXPECT_EQ(length.next(8, 0), 8);
  length.observe(8, 0);
  length.observe(8, 0);
  EXPECT_EQ(length.next(8, 0), 8);
  EXPECT_EQ(length.next(0, 0), 0);
}

// Guesses that stand make it longer, up to what is allowed.
TEST(DraftLengthTest, growsWithSuccess) {
  DraftLength length;
  std::int32_t first = length.next(16, 0.1);
  EXPECT_GE(first, 2);
  EXPECT_LT(first, 8);
  for (int i = 0; i < 6; ++i) {
    std::int32_t next = length.next(16, 0.1);
    length.observe(next, next);
  }
  EXPECT_GT(length.acceptance(), 0.95);
  EXPECT_EQ(length.next(16, 0.1), 16);
  EXPECT_EQ(length.next(5, 0.1), 5);
}

// Guesses that fall end it, but for a try now and then; a success there
// brings it back.
TEST(DraftLengthTest, stopsWhereItDoesNotPay) {
  DraftLength length;
  int steps = 0, drafted = 0;
  for (int i = 0; i < 200; ++i) {
    std::int32_t next = length.next(8, 0.3);
    drafted += next;
    ++steps;
    length.observe(next, 0);
  }
  EXPECT_LT(drafted, 50) << "over " << steps << " steps";
  EXPECT_GT(drafted, 10);
  int until = 0;
  for (; until < 30; ++until) {
    std::int32_t next = length.next(8, 0.3);
    length.observe(next, next);
    if (next > 3)
      break;
  }
  EXPECT_LT(until, 25);
}

// Nothing pays where a guess costs as much as a step.
TEST(DraftLengthTest, dearGuessesAreNotMade) {
  DraftLength length;
  EXPECT_EQ(length.next(8, 1.0), 0);
}

// The same outcomes give the same lengths.
TEST(DraftLengthTest, isAFunctionOfItsOutcomes) {
  auto run = [] {
    DraftLength length;
    std::vector<std::int32_t> lengths;
    for (int i = 0; i < 100; ++i) {
      lengths.push_back(length.next(8, 0.2));
      length.observe(lengths.back(), lengths.back() * (i % 3) / 2);
    }
    return lengths;
  };
  EXPECT_EQ(run(), run());
}
