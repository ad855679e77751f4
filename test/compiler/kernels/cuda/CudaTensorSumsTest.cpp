// The cases of linear and attention once more, on tensor cores that cut sums off as the
// real ones are measured to do (test/simt/TensorCore.h) in place of rounding them: the
// tolerances hold there, and so do all equalities of bits. tools/gpu-check compares
// with the same tolerances on a device.
#include "test/compiler/kernels/cuda/AttentionCase.h"
#include "test/compiler/kernels/cuda/LinearCase.h"
#include "test/simt/TensorCore.h"

namespace ingot::test {
namespace {

class CudaTensorSums : public testing::Test {
protected:
  simt::MmaSumsScope scope_{simt::MmaSums::CutOff};
};

TEST_F(CudaTensorSums, LinearsStayWithinTheirTolerance) {
  for (const char *encoding : {"f16", "bf16", "i8g32", "i8g128", "i8c", "i4g32",
                               "i4g32m", "i4g128", "f16x2", "bf16x2"}) {
    Random random(7);
    for (Shape shape :
         {Shape{1, 40, 5}, {8, 200, 33}, {11, 1100, 16}, {66, 190, 40}}) {
      const LinearCase problem(random, encoding, shape, false);
      problem.compare(problem.run(tileFor(shape.tokens), 0, shape.tokens, {}));
    }
  }
}

TEST_F(CudaTensorSums, TilesStillGiveTheSameBits) {
  for (const char *encoding : {"f16x2", "i8g32", "i4g32m", "i4g128"}) {
    Random random(9);
    const Shape shape{40, 330, 18};
    const LinearCase problem(random, encoding, shape, true);
    const std::vector<float> all = problem.run("p64", 0, shape.tokens, {});
    for (auto [first, count] : {std::pair{0, 1}, {30, 9}, {1, 17}, {5, 33}})
      EXPECT_TRUE(sameBits(problem.run(tileFor(count), first, count, {}),
                           {all.begin() + first * shape.n,
                            all.begin() + (first + count) * shape.n}))
          << encoding << " " << tileFor(count);
  }
}

TEST_F(CudaTensorSums, AttentionStaysWithinItsTolerance) {
  for (const Geometry &geometry :
       {Geometry{16, "f16", 4, 2}, Geometry{64, "i8", 4, 1},
        Geometry{128, "f16", 2, 1}, Geometry{256, "f16", 1, 1}}) {
    Random random(24);
    for (float factor : {1.0f, 200.0f, 0.001f}) {
      AttentionCase problem(random, geometry, {{290, 2}, {90, 1}, {0, 5}}, 0,
                            0);
      problem.makeExact(factor);
      const std::vector<float> split = problem.run(Cut::Split, 1000, {});
      problem.compare(split);
      EXPECT_TRUE(sameBits(problem.run(Cut::Wide, 1000, {}), split));
    }
  }
}

} // namespace
} // namespace ingot::test
