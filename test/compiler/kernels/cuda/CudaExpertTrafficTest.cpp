// The closed forms of runtime/execute/cuda/cost for mixtures of experts against what the
// emulator traces, for choices at random.
#include "runtime/execute/cuda/cost/ExpertTraffic.h"
#include "test/compiler/kernels/cuda/ExpertCase.h"
#include "test/compiler/kernels/cuda/TrafficChecks.h"

namespace ingot::test {
namespace {

using namespace cuda;

ExpertChoice choiceOfRoutes(const std::vector<float> &routes,
                            const ExpertShape &shape) {
  ExpertChoice choice{shape.experts, shape.topK, {}};
  for (int t = 0; t < shape.tokens; ++t)
    for (int j = 0; j < shape.topK; ++j)
      choice.chosen.push_back(
          std::int32_t(routes[std::size_t(t * 2 * shape.topK + j)]));
  return choice;
}

TEST(CudaExpertTraffic, ChoicesAreAsTraced) {
  Random random(71);
  for (ExpertShape shape : {ExpertShape{8, 2, 1, 0, 0},
                            {33, 4, 9, 0, 0},
                            {128, 8, 40, 0, 0},
                            {6, 3, 300, 0, 0}})
    for (bool normalized : {false, true}) {
      const std::string what = std::to_string(shape.experts) + " experts";
      DeviceArray<float> logits(
          uniforms(random, std::size_t(shape.tokens * shape.experts), -3, 3));
      DeviceArray<std::int32_t> sequences(
          std::vector<std::int32_t>(std::size_t(shape.tokens), 0));
      DeviceArray<float> routes(std::size_t(2 * shape.slots()));
      const abi::CudaRouteParams route{
          logits.data(), routes.data(), sequences.data(), shape.tokens,
          shape.experts, shape.topK,    normalized};
      const simt::LaunchReport routed =
          launchKernel("route", abi::rowGrid(shape.tokens), route, traced());
      const ExpertChoice choice = choiceOfRoutes(routes.copy(), shape);
      expectTraced(routeTraffic(choice, normalized), routed.trace,
                   "route, " + what);
      if (normalized)
        continue;
      DeviceArray<std::int32_t> order(
          std::size_t(2 * shape.slots() + shape.experts + 1));
      const abi::OrderSlotsParams params{routes.data(), order.data(),
                                         shape.tokens,  shape.experts,
                                         shape.topK,    0};
      const simt::LaunchReport ordered = launchKernel(
          "order_slots", abi::orderGrid(shape.experts), params, traced());
      expectTraced(orderTraffic(choice), ordered.trace, "order, " + what);
    }
}

TEST(CudaExpertTraffic, RowsOfSlotsAreAsTraced) {
  Random random(72);
  const ExpertShape shape{6, 2, 9, 0, 0};
  const std::vector<float> routes = someRoutes(random, shape);
  const ExpertChoice choice = choiceOfRoutes(routes, shape);
  DeviceArray<std::int32_t> order(orderOf(routes, shape));
  DeviceArray<float> deviceRoutes(routes);
  for (int width : {64, 200, 520}) {
    const std::vector<float> values =
        uniforms(random, std::size_t(shape.tokens * width), -2, 2);
    DeviceArray<float> input(values);
    DeviceArray<float> slots(
        uniforms(random, std::size_t(shape.slots() * width), -2, 2));
    DeviceArray<float> output(std::size_t(shape.slots() * width));
    for (auto [from, to] : {std::pair{0, 0}, {1, 1}, {2, 2}, {2, 1}}) {
      const HalfRows read = HalfRows::of(values, width, std::max(from, 1));
      HalfRows written(shape.slots(), width, std::max(to, 1));
      abi::CudaDispatchParams params = {};
      params.order = order.data();
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
      expectTraced(dispatchTraffic(choice, {width, from, to}),
                   launchKernel("dispatch", abi::rowGrid(shape.slots()), params,
                                traced())
                       .trace,
                   "dispatch of " + std::to_string(to) + " parts");
    }
    const abi::CombineParams params{
        slots.data(), order.data(), deviceRoutes.data(), output.data(),
        shape.tokens, width,        shape.topK,          0};
    expectTraced(
        combineTraffic(choice, width),
        launchKernel("combine", abi::rowGrid(shape.tokens), params, traced())
            .trace,
        "combine");
  }
}

TEST(CudaExpertTraffic, ProductsAreAsTraced) {
  Random random(73);
  struct Kind {
    const char *encoding, *tile;
    ExpertShape shape;
  };
  for (const Kind &kind : {Kind{"f16x2", "t8", {8, 2, 1, 512, 96}},
                           {"bf16x2", "t8", {40, 4, 8, 128, 64}},
                           {"i8g32", "t16", {5, 2, 20, 320, 48}},
                           {"i4g32m", "t32", {4, 2, 30, 256, 64}},
                           {"i8c", "t64", {3, 1, 70, 200, 80}},
                           {"i8g128", "p64", {4, 2, 90, 256, 144}}}) {
    const ExpertCase problem(random, kind.encoding, kind.shape);
    simt::LaunchReport report;
    (void)problem.run(kind.tile, traced(), &report);
    ExpertChoice choice{kind.shape.experts, kind.shape.topK, {}};
    for (int s = 0; s < kind.shape.slots(); ++s) {
      const int row = problem.order[std::size_t(kind.shape.slots() + s)];
      int expert = 0;
      while (problem.beginOf(expert + 1) <= row)
        ++expert;
      choice.chosen.push_back(expert);
    }
    std::string encoding = kind.encoding;
    if (problem.parts == 2)
      encoding.resize(encoding.size() - 2);
    const codegen::CudaEncoding of = *codegen::cudaEncoding(encoding);
    LinearWork work;
    work.code = of.code;
    work.group = of.group;
    work.minimum = of.minimum;
    work.parts = problem.parts;
    work.geometry =
        codegen::cudaKernel("expert_linear_" + std::string(kind.encoding) +
                            "_" + kind.tile)
            ->geometry;
    work.n = work.outputStride = kind.shape.n;
    work.k = kind.shape.k;
    const LaunchTraffic made = expertTraffic(choice, work);
    expectTraced(made, report.trace,
                 std::string(kind.encoding) + " " + kind.tile);
  }
}

// What the model asks of a choice that it knows nothing of.
TEST(CudaExpertTraffic, ChoicesWithoutRoutes) {
  // One token: its own experts. Many: all of them.
  EXPECT_EQ(expertsOfEvenChoice(128, 8, 1), 8);
  EXPECT_EQ(expertsOfEvenChoice(128, 8, 1000), 128);
  EXPECT_EQ(expertsOfEvenChoice(8, 2, 2), 4); // 8 (1 - 0.75^2) = 3.5
  const ExpertChoice choice = choiceOf(8, 2, 3, 4, 2);
  EXPECT_EQ(choice.chosen, (std::vector<std::int32_t>{0, 1, 2, 0, 0, 1, 0, 1}));
  EXPECT_EQ(choice.rowsOfExperts(),
            (std::vector<std::int32_t>{4, 3, 1, 0, 0, 0, 0, 0}));
  LinearWork work;
  work.geometry =
      abi::linearGeometry(abi::CudaCode::F16, 0, false, abi::LinearTile::T8);
  work.n = work.outputStride = 64;
  work.k = 128;
  const double weights = 64 * 128 * 2;
  EXPECT_EQ(expertTraffic(choice, work).weights.bytesRead, 3 * weights);
  EXPECT_EQ(expertTraffic(choiceOf(8, 2, 8, 16, 0), work).weights.bytesRead,
            8 * weights);
}

} // namespace
} // namespace ingot::test
