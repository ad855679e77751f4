// linear on the emulator: every tile of every encoding equals its float twin within
// its bound, under every schedule, and all tiles give the same bits for a row.
#include "test/compiler/kernels/cuda/LinearCase.h"

#include <cmath>

namespace ingot::test {
namespace {

class CudaLinear : public testing::TestWithParam<std::string> {};

TEST_P(CudaLinear, EqualsItsTwinOnRaggedShapes) {
  Random random(7);
  std::vector<simt::LaunchOptions> options = schedules();
  std::size_t turn = 0;
  for (Shape shape : {Shape{1, 40, 5},
                      {8, 200, 33},
                      {11, 64, 16},
                      {20, 72, 50},
                      {37, 130, 20},
                      {66, 190, 130}}) {
    const LinearCase problem(random, GetParam(), shape, turn % 2 == 1);
    problem.compare(problem.run(tileFor(shape.tokens), 0, shape.tokens,
                                options[turn++ % options.size()]));
  }
}

TEST_P(CudaLinear, EveryScheduleGivesTheSameBits) {
  Random random(8);
  for (Shape shape : {Shape{3, 328, 20}, {35, 136, 20}}) {
    const LinearCase problem(random, GetParam(), shape, true);
    std::vector<float> first;
    for (const simt::LaunchOptions &options : schedules(5)) {
      const std::vector<float> y =
          problem.run(tileFor(shape.tokens), 0, shape.tokens, options);
      if (first.empty())
        first = y;
      EXPECT_TRUE(sameBits(y, first));
    }
  }
}

// A token alone, in its step and in every larger one has the same bits, whichever
// tile serves it.
TEST_P(CudaLinear, RowsDoNotDependOnTheirCompany) {
  Random random(9);
  const Shape shape{70, 330, 18};
  const LinearCase problem(random, GetParam(), shape, true);
  const std::vector<float> all = problem.run("p64", 0, shape.tokens, {});
  auto rows = [&](int first, int count) {
    return std::vector<float>(all.begin() + first * shape.n,
                              all.begin() + (first + count) * shape.n);
  };
  for (auto [first, count] :
       {std::pair{0, 1}, {69, 1}, {2, 8}, {30, 9}, {1, 17}, {5, 33}})
    EXPECT_TRUE(sameBits(problem.run(tileFor(count), first, count, {}),
                         rows(first, count)))
        << tileFor(count);
}

TEST_P(CudaLinear, NonFiniteActivationsShow) {
  Random random(10);
  LinearCase problem(random, GetParam(), {3, 100, 17}, false);
  problem.input[130] = INFINITY;
  const std::vector<float> y = problem.run("t8", 0, 3, {});
  for (int row = 0; row < 17; ++row) {
    EXPECT_TRUE(std::isfinite(y[std::size_t(row)]));
    EXPECT_TRUE(std::isnan(y[std::size_t(17 + row)]));
    EXPECT_TRUE(std::isfinite(y[std::size_t(34 + row)]));
  }
}

INSTANTIATE_TEST_SUITE_P(Encodings, CudaLinear,
                         testing::Values("f16", "bf16", "i8g32", "i8g128",
                                         "i8c", "i4g32", "i4g32m", "i4g128",
                                         "f16x2", "bf16x2"),
                         [](const auto &of) { return of.param; });

} // namespace
} // namespace ingot::test
