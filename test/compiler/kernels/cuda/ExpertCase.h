// A problem for `expert_linear`, run by any tile: rows of slots, some experts with many
// of them and some with none, and its twin.
#pragma once

#include "runtime/plan/CudaExpertsAbi.h"
#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include <algorithm>
#include <cmath>

namespace ingot::test {

struct ExpertShape {
  int experts, topK, tokens, k, n;
  int slots() const { return tokens * topK; }
};

// Each token's choice, none twice; the first experts more often than the last. As
// `route` gives it, with probabilities that nobody needs here.
inline std::vector<float> someRoutes(Random &random, const ExpertShape &shape) {
  std::vector<float> routes;
  for (int t = 0; t < shape.tokens; ++t) {
    std::vector<float> own;
    while (int(own.size()) < shape.topK) {
      const int bound = 1 + below(random, shape.experts);
      const float expert = float(below(random, bound));
      if (std::find(own.begin(), own.end(), expert) == own.end())
        own.push_back(expert);
    }
    routes.insert(routes.end(), own.begin(), own.end());
    routes.insert(routes.end(), std::size_t(shape.topK), 0.5f);
  }
  return routes;
}

inline std::vector<std::int32_t> orderOf(const std::vector<float> &routes,
                                         const ExpertShape &shape) {
  std::vector<std::int32_t> order(
      std::size_t(2 * shape.slots() + shape.experts + 1));
  reference::orderSlots(
      {routes.data(), order.data(), shape.tokens, shape.experts, shape.topK, 0},
      {0, 1, 0, 0, nullptr});
  return order;
}

struct ExpertCase {
  ExpertCase(Random &random, const std::string &encoding, ExpertShape shape)
      : encoding(encoding), shape(shape),
        parts(encoding.ends_with("x2") ? 2 : 1),
        weights(random,
                parts == 2 ? encoding.substr(0, encoding.size() - 2) : encoding,
                shape.experts * shape.n, shape.k),
        order(orderOf(someRoutes(random, shape), shape)),
        input(uniforms(random, std::size_t(shape.slots() * shape.k), -3, 3)) {
    for (float &x : input)
      if (below(random, 20) == 0)
        x = below(random, 2) ? 0.0f : x * 1000.0f;
  }

  int beginOf(int expert) const {
    return order[std::size_t(2 * shape.slots() + expert)];
  }
  int usedExperts() const {
    int used = 0;
    for (int e = 0; e < shape.experts; ++e)
      used += beginOf(e + 1) > beginOf(e);
    return used;
  }

  // y of all slots, in their order, by one tile. The launch must be clean, unless its
  // report is asked for.
  std::vector<float> run(const std::string &tile,
                         const simt::LaunchOptions &options,
                         simt::LaunchReport *kept = nullptr) const {
    const HalfRows rows = HalfRows::of(input, shape.k, parts);
    DeviceArray<std::int32_t> deviceOrder(order);
    DeviceArray<float> output(std::size_t(shape.slots() * shape.n));
    abi::ExpertLinearParams params = {};
    params.linear.quantized = rows.rows();
    params.linear.weights = weights.mma16();
    params.linear.output = output.data();
    params.linear.outputStride = shape.n;
    params.linear.numTokens = shape.slots();
    params.linear.k = shape.k;
    params.linear.n = shape.n;
    params.order = deviceOrder.data();
    params.experts = shape.experts;
    const std::string name = "expert_linear_" + encoding + "_" + tile;
    const abi::KernelGeometry geometry = codegen::cudaKernel(name)->geometry;
    simt::LaunchReport report = launchKernel(
        name, abi::expertGrid(geometry, shape.n, shape.slots(), shape.experts),
        params, options);
    if (!kept)
      EXPECT_TRUE(report.isClean()) << name << "\n" << report.text();
    if (kept)
      *kept = std::move(report);
    return output.copy();
  }

  // Against sums in float64 of the half rows that the kernel read: only the float32
  // sums may differ.
  void compare(const std::vector<float> &y) const {
    const HalfRows rows = HalfRows::of(input, shape.k, parts);
    for (int e = 0; e < shape.experts; ++e)
      for (int r = beginOf(e); r < beginOf(e + 1); ++r)
        for (int row = 0; row < shape.n; ++row) {
          double twin = 0, size = 0;
          for (int k = 0; k < shape.k; ++k) {
            const double w = weights.at(e * shape.n + row, k);
            const double x = rows.valueAt(r, k);
            twin += w * x;
            size += std::fabs(w * x);
            // With minima a sum of codes and one of activations meet.
            if (weights.encoding().minimum)
              size += std::fabs(x) * (std::fabs(w) + 0.6);
          }
          EXPECT_NEAR(y[std::size_t(r * shape.n + row)], twin,
                      0x1p-24 * (shape.k / 16 + 12) * size +
                          0x1p-22 * std::fabs(twin))
              << encoding << " expert " << e << " slot " << r << " row " << row;
        }
  }

  std::string encoding;
  ExpertShape shape;
  int parts; // of an activation
  TestWeights weights;
  std::vector<std::int32_t> order;
  std::vector<float> input;
};

} // namespace ingot::test
