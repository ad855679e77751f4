// linear on the emulator: every tile of every encoding equals its float twin within
// its bound, under every schedule, and all tiles give the same bits for a row.
#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include <cmath>

namespace ingot::test {
namespace {

struct Shape {
  int tokens, k, n;
};

// A problem, run by any tile and for any of its tokens.
struct LinearCase {
  LinearCase(Random &random, const std::string &encoding, Shape shape,
             bool hasEpilogue)
      : encoding(encoding), shape(shape),
        weights(random, encoding, shape.n, shape.k),
        input(uniforms(random, std::size_t(shape.tokens * shape.k), -3, 3)) {
    for (float &x : input)
      if (below(random, 20) == 0)
        x = below(random, 2) ? 0.0f : x * 1000.0f;
    if (hasEpilogue) {
      bias = uniforms(random, std::size_t(shape.n), -1, 1);
      residual = uniforms(random, std::size_t(shape.tokens * stride()), -5, 5);
    }
  }

  int stride() const { return shape.n + 3; }

  // y of tokens [first, first + count) by one tile.
  std::vector<float> run(const std::string &tile, int first, int count,
                         const simt::LaunchOptions &options) const {
    const std::vector<float> part(input.begin() + first * shape.k,
                                  input.begin() + (first + count) * shape.k);
    const HalfRows rows = HalfRows::of(part, shape.k);
    DeviceArray<float> output(std::size_t(count * stride()));
    DeviceArray<float> deviceBias(bias);
    if (!residual.empty()) {
      // The output is the residual, as in a plan.
      std::copy(residual.begin() + first * stride(),
                residual.begin() + (first + count) * stride(), output.data());
      simt::markInitialised(output.data(), output.size() * 4);
    }
    abi::LinearParams params = {};
    params.quantized = rows.rows();
    params.weights = weights.mma16();
    params.bias = bias.empty() ? nullptr : deviceBias.data();
    params.residual = residual.empty() ? nullptr : output.data();
    params.output = output.data();
    params.outputStride = params.residualStride = stride();
    params.numTokens = count;
    params.k = shape.k;
    params.n = shape.n;
    const std::string name = "linear_" + encoding + "_" + tile;
    const abi::KernelGeometry geometry = codegen::cudaKernel(name)->geometry;
    simt::LaunchReport report = launchKernel(
        name, abi::linearGrid(geometry, shape.n, count), params, options);
    EXPECT_TRUE(report.isClean()) << name << "\n" << report.text();
    std::vector<float> y;
    for (int t = 0; t < count; ++t)
      for (int row = 0; row < shape.n; ++row)
        y.push_back(output[std::size_t(t * stride() + row)]);
    return y;
  }

  // Against sums in float64. Of the activations as they are, float16 rounds each by
  // at most 2^-11 of itself, or half a step of the least of its row; of the half rows
  // that the kernel read, only the float32 sums may differ.
  void compare(const std::vector<float> &y) const {
    const HalfRows rows = HalfRows::of(input, shape.k);
    for (int t = 0; t < shape.tokens; ++t) {
      double largest = 0;
      for (int k = 0; k < shape.k; ++k)
        largest = std::max(
            largest, std::fabs(double(input[std::size_t(t * shape.k + k)])));
      for (int row = 0; row < shape.n; ++row) {
        double twin = 0, ofHalves = 0, size = 0, weightSize = 0, codeSize = 0;
        for (int k = 0; k < shape.k; ++k) {
          const double w = weights.at(row, k);
          const double x = input[std::size_t(t * shape.k + k)];
          twin += w * x;
          ofHalves += w * rows.valueAt(t, k);
          size += std::fabs(w * x);
          weightSize += std::fabs(w);
          codeSize += std::fabs(x) * codeBound(row, k);
        }
        const double added =
            (bias.empty() ? 0 : bias[std::size_t(row)]) +
            (residual.empty() ? 0 : residual[std::size_t(t * stride() + row)]);
        const double got = y[std::size_t(t * shape.n + row)];
        const double sums = 0x1p-24 * (shape.k / 16 + 12) * (size + codeSize) +
                            0x1p-22 * (std::fabs(added) + std::fabs(twin));
        EXPECT_NEAR(got, ofHalves + added, sums)
            << encoding << " token " << t << " row " << row;
        EXPECT_NEAR(got, twin + added,
                    sums + 0x1p-11 * size + largest * 0x1p-38 * weightSize)
            << encoding << " token " << t << " row " << row;
      }
    }
  }

  // With minima a sum of codes and one of activations meet, each larger than what
  // they make together.
  double codeBound(int row, int k) const {
    if (!weights.encoding().minimum)
      return 0;
    return std::fabs(double(weights.at(row, k))) + 0.6;
  }

  std::string encoding;
  Shape shape;
  TestWeights weights;
  std::vector<float> input, bias, residual;
};

// The tile that a step of so many tokens takes.
std::string tileFor(int tokens) {
  return std::string(codegen::spellLinearTile(abi::linearTileFor(tokens)));
}

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

INSTANTIATE_TEST_SUITE_P(Encodings, CudaLinear, testing::Values("f16", "i8g32"),
                         [](const auto &of) { return of.param; });

} // namespace
} // namespace ingot::test
