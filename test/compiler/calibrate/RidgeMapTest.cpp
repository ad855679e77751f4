// A map is found where there is one, and the sums say how much it leaves.
#include "compiler/calibrate/RidgeMap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace ingot;

namespace {

struct Rows {
  std::vector<float> inputs, targets;
};

// target = M x + b + noise, with M and b drawn from `seed`.
Rows plantedRows(std::int64_t width, std::int64_t count, double noise,
                 unsigned seed, AffineMap &map) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  map.width = width;
  for (std::int64_t i = 0; i < width * width; ++i)
    map.matrix.push_back(draw(random));
  for (std::int64_t i = 0; i < width; ++i)
    map.bias.push_back(draw(random));
  Rows rows;
  for (std::int64_t r = 0; r < count; ++r) {
    std::vector<float> x;
    for (std::int64_t i = 0; i < width; ++i)
      x.push_back(draw(random) + float(i));
    for (std::int64_t o = 0; o < width; ++o) {
      double sum = map.bias[std::size_t(o)] + noise * draw(random);
      for (std::int64_t i = 0; i < width; ++i)
        sum +=
            double(map.matrix[std::size_t(o * width + i)]) * x[std::size_t(i)];
      rows.targets.push_back(float(sum));
    }
    rows.inputs.insert(rows.inputs.end(), x.begin(), x.end());
  }
  return rows;
}

} // namespace

// Added in pieces of any size, the planted map comes back.
TEST(RidgeMapTest, findsThePlantedMap) {
  for (std::int64_t width : {1, 3, 17}) {
    AffineMap planted;
    Rows rows = plantedRows(width, 400, 0, unsigned(width), planted);
    RidgeSums sums(width);
    auto half = std::size_t(150 * width);
    std::span inputs(rows.inputs), targets(rows.targets);
    sums.add(inputs.first(half), targets.first(half));
    sums.add(inputs.subspan(half), targets.subspan(half));
    EXPECT_EQ(sums.numRows(), 400);
    auto map = sums.solve(1e-12);
    ASSERT_TRUE(map.isOk()) << map.status().message();
    for (std::size_t i = 0; i < planted.matrix.size(); ++i)
      EXPECT_NEAR(map->matrix[i], planted.matrix[i], 1e-3);
    EXPECT_LT(sums.unexplained(*map), 1e-8);
  }
}

// With noise the fit leaves the noise; a larger penalty leaves more and makes the
// map smaller.
TEST(RidgeMapTest, penalty) {
  AffineMap planted;
  Rows rows = plantedRows(8, 600, 2.0, 5, planted);
  RidgeSums sums(8);
  sums.add(rows.inputs, rows.targets);
  double before = 0, sizeBefore = INFINITY;
  for (double strength : {1e-9, 1e-3, 1e-1, 10.0}) {
    auto map = sums.solve(strength);
    ASSERT_TRUE(map.isOk());
    double left = sums.unexplained(*map), size = 0;
    for (float entry : map->matrix)
      size += double(entry) * entry;
    EXPECT_GE(left, before);
    EXPECT_LT(size, sizeBefore);
    before = left;
    sizeBefore = size;
  }
}

// unexplained() is the sum over the rows themselves.
TEST(RidgeMapTest, unexplainedIsTheError) {
  AffineMap planted, other;
  Rows rows = plantedRows(5, 50, 1.0, 9, planted);
  plantedRows(5, 1, 0, 11, other);
  RidgeSums sums(5);
  sums.add(rows.inputs, rows.targets);
  double error = 0, squares = 0;
  for (std::size_t r = 0; r < 50; ++r)
    for (std::size_t o = 0; o < 5; ++o) {
      double value = other.bias[o];
      for (std::size_t i = 0; i < 5; ++i)
        value += double(other.matrix[o * 5 + i]) * rows.inputs[r * 5 + i];
      double target = rows.targets[r * 5 + o];
      error += (target - value) * (target - value);
      squares += target * target;
    }
  EXPECT_NEAR(sums.unexplained(other), error / squares, 1e-6);
}

TEST(RidgeMapTest, refusals) {
  EXPECT_FALSE(RidgeSums(4).solve(0.1).isOk());
  RidgeSums few(4);
  std::vector<float> row(4, 1.0f), broken(4, NAN);
  few.add(row, row);
  EXPECT_FALSE(few.solve(0).isOk());
  EXPECT_TRUE(few.solve(0.1).isOk());
  few.add(broken, row);
  EXPECT_FALSE(few.solve(0.1).isOk());
}
