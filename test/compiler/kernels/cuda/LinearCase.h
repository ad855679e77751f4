// A problem for `linear`, run by any tile and for any of its tokens, and its twin.
#pragma once

#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include <algorithm>
#include <cmath>

namespace ingot::test {

struct Shape {
  int tokens, k, n;
};

struct LinearCase {
  LinearCase(Random &random, const std::string &encoding, Shape shape,
             bool hasEpilogue)
      : encoding(encoding), shape(shape),
        parts(encoding.ends_with("x2") ? 2 : 1),
        weights(random,
                parts == 2 ? encoding.substr(0, encoding.size() - 2) : encoding,
                shape.n, shape.k),
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

  // y of tokens [first, first + count) by one tile. The launch must be clean, unless
  // its report is asked for.
  std::vector<float> run(const std::string &tile, int first, int count,
                         const simt::LaunchOptions &options,
                         simt::LaunchReport *kept = nullptr) const {
    const std::vector<float> part(input.begin() + first * shape.k,
                                  input.begin() + (first + count) * shape.k);
    const HalfRows rows = HalfRows::of(part, shape.k, parts);
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
    if (!kept)
      EXPECT_TRUE(report.isClean()) << name << "\n" << report.text();
    std::vector<float> y;
    for (int t = 0; t < count; ++t)
      for (int row = 0; row < shape.n; ++row)
        y.push_back(output[std::size_t(t * stride() + row)]);
    if (kept)
      *kept = std::move(report);
    return y;
  }

  // Against sums in float64. Of the activations as they are, float16 rounds each by
  // at most 2^-11 of itself, or half a step of the least of its row; of the half rows
  // that the kernel read, only the float32 sums may differ.
  void compare(const std::vector<float> &y) const {
    const HalfRows rows = HalfRows::of(input, shape.k, parts);
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
                    sums + (parts == 1 ? 0x1p-11 : 0x1p-22) * size +
                        largest * 0x1p-38 * weightSize)
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
  int parts; // of an activation
  TestWeights weights;
  std::vector<float> input, bias, residual;
};

// The tile that a step of so many tokens takes.
inline std::string tileFor(int tokens) {
  return std::string(codegen::spellLinearTile(abi::linearTileFor(tokens)));
}

} // namespace ingot::test
