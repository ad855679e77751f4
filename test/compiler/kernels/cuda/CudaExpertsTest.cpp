// Mixtures of experts on the emulator: the choice, the order of the slots, the copy of
// rows and their sum bit for bit as the CPU's twins; the products of experts against
// sums in float64, with the same bits in every tile and every company.
#include "test/compiler/kernels/cuda/ExpertCase.h"

#include <cstring>
#include <limits>

namespace ingot::test {
namespace {

using abi::Slice;

Slice whole(int items) { return {0, items, 0, 0, nullptr}; }

constexpr const char *kTiles[] = {"t8", "t16", "t32", "t64", "p64"};

// `tokenSequence` of rows that are all real.
std::vector<std::int32_t> realRows(int tokens) {
  return std::vector<std::int32_t>(std::size_t(tokens), 0);
}

std::vector<float> routed(const std::vector<float> &logits,
                          const std::vector<std::int32_t> &sequences,
                          int experts, int topK, bool normalized,
                          const simt::LaunchOptions &options = {}) {
  const int tokens = int(sequences.size());
  DeviceArray<float> deviceLogits(logits);
  DeviceArray<std::int32_t> deviceSequences(sequences);
  DeviceArray<float> routes(std::size_t(tokens * 2 * topK));
  const abi::CudaRouteParams params{deviceLogits.data(),
                                    routes.data(),
                                    deviceSequences.data(),
                                    tokens,
                                    experts,
                                    topK,
                                    normalized};
  const simt::LaunchReport report =
      launchKernel("route", abi::rowGrid(tokens), params, options);
  EXPECT_TRUE(report.isClean()) << report.text();
  return routes.copy();
}

std::vector<float> twinRoutes(std::vector<float> logits, int experts, int topK,
                              bool normalized) {
  const int tokens = int(logits.size()) / experts;
  std::vector<float> routes(std::size_t(tokens * 2 * topK));
  reference::route(
      {logits.data(), routes.data(), tokens, experts, topK, normalized},
      whole(tokens));
  return routes;
}

std::vector<std::int32_t> ordered(const std::vector<float> &routes, int tokens,
                                  int experts, int topK,
                                  const simt::LaunchOptions &options = {}) {
  DeviceArray<float> deviceRoutes(routes);
  DeviceArray<std::int32_t> order(std::size_t(2 * tokens * topK + experts + 1));
  const abi::OrderSlotsParams params{
      deviceRoutes.data(), order.data(), tokens, experts, topK, 0};
  const simt::LaunchReport report =
      launchKernel("order_slots", abi::orderGrid(experts), params, options);
  EXPECT_TRUE(report.isClean()) << report.text();
  return order.copy();
}

TEST(CudaExperts, TheChoiceAndItsOrderAreTheTwins) {
  Random random(1);
  const std::vector<simt::LaunchOptions> options = schedules(3);
  std::size_t turn = 0;
  for (const int experts : {1, 3, 8, 33, 128})
    for (const int topK : {1, 2, 8})
      for (const int tokens : {1, 7, 45}) {
        if (topK > experts)
          continue;
        const bool normalized = below(random, 2) == 0;
        std::vector<float> logits;
        for (int i = 0; i < tokens * experts; ++i)
          logits.push_back(i % 2 ? float(below(random, 9)) - 4 // many are equal
                                 : uniform(random, -4, 4));
        const std::vector<float> want =
            twinRoutes(logits, experts, topK, normalized);
        EXPECT_TRUE(
            sameBits(routed(logits, realRows(tokens), experts, topK, normalized,
                            options[turn++ % options.size()]),
                     want))
            << experts << " experts";
        EXPECT_EQ(ordered(want, tokens, experts, topK,
                          options[turn % options.size()]),
                  orderOf(want, {experts, topK, tokens, 0, 0}))
            << experts << " experts";
      }
}

TEST(CudaExperts, EveryScheduleGivesTheSameOrder) {
  Random random(2);
  // More slots than a block has threads, so that counts go from turn to turn.
  const ExpertShape shape{5, 2, 300, 0, 0};
  const std::vector<float> routes = someRoutes(random, shape);
  for (const simt::LaunchOptions &options : schedules(7))
    EXPECT_EQ(ordered(routes, shape.tokens, shape.experts, shape.topK, options),
              orderOf(routes, shape));
}

// Experts that exist, a full order, and probabilities that show it.
TEST(CudaExperts, LogitsThatAreNoNumbers) {
  Random random(3);
  constexpr int kExperts = 20, kTopK = 3, kTokens = 6;
  const float nan = std::nanf(""), infinity = INFINITY;
  std::vector<float> logits = uniforms(random, kTokens * kExperts, -2, 2);
  std::fill_n(logits.begin() + kExperts, kExperts, nan);
  logits[2 * kExperts + 19] = nan;
  logits[3 * kExperts + 4] = infinity;
  std::fill_n(logits.begin() + 4 * kExperts, kExperts, -infinity);
  const std::vector<float> got =
      routed(logits, realRows(kTokens), kExperts, kTopK, true);
  EXPECT_TRUE(sameBits(got, twinRoutes(logits, kExperts, kTopK, true)));
  EXPECT_TRUE(std::isnan(got[2 * kTopK + kTopK]));
  // Even numbers of experts that no route gives.
  std::vector<float> routes = got;
  for (float number : {nan, -1.0f, 1e30f, float(kExperts)}) {
    routes[4] = number;
    std::vector<std::int32_t> order = ordered(routes, kTokens, kExperts, kTopK);
    std::vector<std::int32_t> slots(order.begin(),
                                    order.begin() + kTokens * kTopK);
    std::sort(slots.begin(), slots.end());
    for (int s = 0; s < kTokens * kTopK; ++s)
      EXPECT_EQ(slots[std::size_t(s)], s);
  }
}

// Rows that nobody asked for take the experts of row 0.
TEST(CudaExperts, PaddingRowsAskForNoExpertsOfTheirOwn) {
  Random random(4);
  constexpr int kExperts = 40, kTopK = 3;
  const std::vector<float> logits = uniforms(random, 4 * kExperts, -2, 2);
  const std::vector<float> got =
      routed(logits, {0, 1, -1, -1}, kExperts, kTopK, true);
  const std::vector<float> want = twinRoutes(logits, kExperts, kTopK, true);
  constexpr std::size_t kRow = 2 * kTopK;
  for (std::size_t row = 0; row < 4; ++row)
    EXPECT_EQ(std::memcmp(&got[row * kRow], &want[row < 2 ? row * kRow : 0],
                          kRow * 4),
              0)
        << "row " << row;
}

TEST(CudaExperts, DispatchCopiesRowsOfEachKind) {
  Random random(5);
  const std::vector<simt::LaunchOptions> options = schedules(4);
  std::size_t turn = 0;
  for (int width : {1, 40, 64, 300}) {
    const ExpertShape shape{6, 2, 9, 0, 0};
    const std::vector<std::int32_t> order =
        orderOf(someRoutes(random, shape), shape);
    const std::vector<float> values =
        uniforms(random, std::size_t(shape.tokens * width), -2, 2);
    std::vector<float> want(std::size_t(shape.slots() * width));
    reference::dispatch({values.data(), order.data(), want.data(),
                         shape.slots(), width, shape.topK, 0},
                        whole(shape.slots()));
    DeviceArray<float> input(values);
    DeviceArray<std::int32_t> deviceOrder(order);
    // Parts of what is read, and of what is written; none: float32 rows.
    for (auto [from, to] : {std::pair{0, 0}, {1, 1}, {2, 2}, {2, 1}}) {
      const HalfRows read = HalfRows::of(values, width, std::max(from, 1));
      HalfRows written(shape.slots(), width, std::max(to, 1));
      DeviceArray<float> output(want.size());
      abi::CudaDispatchParams params = {};
      params.order = deviceOrder.data();
      if (to == 0) {
        params.input = input.data();
        params.output = output.data();
      } else {
        params.from = read.rows();
        params.to = written.rows();
      }
      params.numSlots = shape.slots();
      params.width = width;
      params.topK = shape.topK;
      const simt::LaunchReport report =
          launchKernel("dispatch", abi::rowGrid(shape.slots()), params,
                       options[turn++ % options.size()]);
      EXPECT_TRUE(report.isClean()) << report.text();
      if (to == 0) {
        EXPECT_TRUE(sameBits(output.copy(), want));
        continue;
      }
      // Quantised before or behind the copy: the same.
      const HalfRows expected = HalfRows::of(want, width, to);
      for (int row = 0; row < shape.slots(); ++row)
        EXPECT_EQ(written.row(row), expected.row(row)) << "row " << row;
    }
  }
}

TEST(CudaExperts, CombineEqualsItsTwin) {
  Random random(6);
  for (const simt::LaunchOptions &options : schedules(6)) {
    const ExpertShape shape{1 + below(random, 8) + 3, 1 + below(random, 3),
                            1 + below(random, 20), 0, 0};
    const int width = 1 + below(random, 300);
    std::vector<float> routes = someRoutes(random, shape);
    for (float &x : routes)
      x = x == 0.5f ? uniform(random, 0, 1) : x;
    const std::vector<std::int32_t> order = orderOf(routes, shape);
    std::vector<float> values =
        uniforms(random, std::size_t(shape.slots() * width), -2, 2);
    std::vector<float> want(std::size_t(shape.tokens * width));
    reference::combine({values.data(), order.data(), routes.data(), want.data(),
                        shape.tokens, width, shape.topK, 0},
                       whole(shape.tokens));
    DeviceArray<float> input(values), deviceRoutes(routes);
    DeviceArray<std::int32_t> deviceOrder(order);
    DeviceArray<float> output(want.size());
    const abi::CombineParams params{input.data(),        deviceOrder.data(),
                                    deviceRoutes.data(), output.data(),
                                    shape.tokens,        width,
                                    shape.topK,          0};
    const simt::LaunchReport report =
        launchKernel("combine", abi::rowGrid(shape.tokens), params, options);
    EXPECT_TRUE(report.isClean()) << report.text();
    EXPECT_TRUE(sameBits(output.copy(), want));
  }
}

// Every step has room for the tiles of any choice, and not for one more than the
// worst: all but one token on experts of their own.
TEST(CudaExperts, GridsHoldEveryChoice) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const int experts = 1 + below(random, 40), slots = 1 + below(random, 200);
    const int tile = 8 << below(random, 4);
    std::vector<int> counts(std::size_t(experts), 0);
    for (int s = 0; s < slots; ++s)
      ++counts[std::size_t(below(random, 1 + below(random, experts)))];
    int tiles = 0;
    for (int count : counts)
      tiles += (count + tile - 1) / tile;
    EXPECT_LE(tiles, abi::expertTokenTiles(slots, experts, tile));
    // One row each, the rest on one expert.
    const int used = std::min(slots, experts);
    const int rest = slots - used + 1;
    EXPECT_EQ(used - 1 + (rest + tile - 1) / tile,
              abi::expertTokenTiles(slots, experts, tile))
        << slots << " slots of " << experts << " experts";
  }
}

class CudaExpertLinear : public testing::TestWithParam<std::string> {};

TEST_P(CudaExpertLinear, EqualsItsTwinOnRaggedShapes) {
  Random random(8);
  const std::vector<simt::LaunchOptions> options = schedules();
  std::size_t turn = 0;
  for (ExpertShape shape : {ExpertShape{4, 2, 1, 40, 16},
                            {3, 3, 5, 200, 48},
                            {40, 2, 11, 72, 16},
                            {5, 1, 30, 130, 32},
                            {4, 2, 50, 64, 80}}) {
    const ExpertCase problem(random, GetParam(), shape);
    problem.compare(
        problem.run(kTiles[turn % 5], options[turn % options.size()]));
    ++turn;
  }
}

TEST_P(CudaExpertLinear, EveryScheduleAndTileGivesTheSameBits) {
  Random random(9);
  const ExpertCase problem(random, GetParam(), {6, 2, 12, 328, 32});
  const std::vector<float> first = problem.run("p64", {});
  const std::vector<simt::LaunchOptions> options = schedules(5);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_TRUE(
        sameBits(problem.run(kTiles[i], options[i % options.size()]), first))
        << kTiles[i];
  for (const simt::LaunchOptions &schedule : options)
    EXPECT_TRUE(sameBits(problem.run("t8", schedule), first));
}

// An expert's rows have the bits that `linear` gives them with the expert's weights:
// the same law, whatever else the step chose.
TEST_P(CudaExpertLinear, RowsAreThoseOfLinear) {
  Random random(10);
  const ExpertCase problem(random, GetParam(), {7, 2, 9, 136, 32});
  const ExpertShape &shape = problem.shape;
  const std::vector<float> all = problem.run("t8", {});
  const std::string name = "linear_" + GetParam() + "_t16";
  const abi::KernelGeometry geometry = codegen::cudaKernel(name)->geometry;
  const HalfRows rows = HalfRows::of(problem.input, shape.k, problem.parts);
  // `linear` with all experts' weights gives each slot all experts' products.
  DeviceArray<float> output(
      std::size_t(shape.slots() * shape.experts * shape.n));
  abi::LinearParams params = {};
  params.quantized = rows.rows();
  params.weights = problem.weights.mma16();
  params.output = output.data();
  params.outputStride = shape.experts * shape.n;
  params.numTokens = shape.slots();
  params.k = shape.k;
  params.n = shape.experts * shape.n;
  EXPECT_TRUE(launchKernel(name,
                           abi::linearGrid(geometry, params.n, shape.slots()),
                           params)
                  .isClean());
  for (int e = 0; e < shape.experts; ++e)
    for (int r = problem.beginOf(e); r < problem.beginOf(e + 1); ++r)
      EXPECT_EQ(std::memcmp(&all[std::size_t(r * shape.n)],
                            output.data() + (r * shape.experts + e) * shape.n,
                            std::size_t(shape.n) * 4),
                0)
          << "expert " << e << " slot " << r;
}

INSTANTIATE_TEST_SUITE_P(Encodings, CudaExpertLinear,
                         testing::Values("f16x2", "bf16x2", "i8g32", "i8g128",
                                         "i8c", "i4g32", "i4g32m"),
                         [](const auto &of) { return of.param; });

// Even an order that nobody has written stays within the rows.
TEST(CudaExperts, AnOrderWithoutSenseStaysInside) {
  Random random(11);
  ExpertCase problem(random, "i8g32", {4, 2, 6, 64, 16});
  for (std::int32_t &x : problem.order)
    x = int(random());
  simt::LaunchReport report;
  problem.run("t8", {}, &report);
  EXPECT_TRUE(report.isClean()) << report.text();
}

} // namespace
} // namespace ingot::test
