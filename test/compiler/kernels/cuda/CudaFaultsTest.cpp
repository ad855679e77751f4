// Faults planted into the kernels: a removed barrier, a wait for one group of copies
// too few, a wide access to shared memory that is off by one, a fragment with two
// registers swapped. A clean run names the places where each kind can be; every place
// is tried, under schedules drawn from a seed, and each must be caught: by the
// emulator, or because the result is not the twin's.
#include "test/compiler/kernels/cuda/AttentionCase.h"
#include "test/compiler/kernels/cuda/ExpertCase.h"
#include "test/compiler/kernels/cuda/LinearCase.h"

#include <functional>
#include <map>

namespace ingot::test {
namespace {

using simt::FaultKind;
using simt::Plant;

const char *nameOf(Plant kind) {
  switch (kind) {
  case Plant::SkipBarrier:
    return "skipped barrier";
  case Plant::WaitTooFew:
    return "wait too few";
  case Plant::ShiftShared:
    return "shifted access";
  case Plant::SwapFragment:
    return "swapped fragment";
  case Plant::None:
    break;
  }
  return "none";
}

using Run = std::function<std::vector<float>(const simt::LaunchOptions &,
                                             simt::LaunchReport *)>;

// Plants every fault that `run` has a place for; returns how many of each kind.
std::map<Plant, int> plantAll(const std::string &what, std::uint64_t seed,
                              const Run &run) {
  simt::LaunchReport clean;
  const std::vector<float> right = run({}, &clean);
  EXPECT_TRUE(clean.isClean()) << clean.text();
  Random random{unsigned(seed)};
  std::map<Plant, int> planted;
  for (const simt::PlantSite &site : clean.sites) {
    simt::LaunchOptions options =
        schedules(seed)[std::size_t(below(random, 4))];
    options.plant = site;
    simt::LaunchReport report;
    const std::vector<float> got = run(options, &report);
    EXPECT_TRUE(!report.isClean() || !sameBits(got, right))
        << what << ": a " << nameOf(site.kind) << " at "
        << simt::sourceLine(site.pc) << " is not noticed";
    // What is about order must be found as such, whatever came out.
    if (site.kind == Plant::SkipBarrier || site.kind == Plant::WaitTooFew)
      EXPECT_GT(report.count(FaultKind::Race) +
                    report.count(FaultKind::Uninitialised),
                0u)
          << what << ": a " << nameOf(site.kind) << " at "
          << simt::sourceLine(site.pc) << "\n"
          << report.text();
    ++planted[site.kind];
  }
  return planted;
}

TEST(CudaFaults, OfLinear) {
  Random random(61);
  // Long enough that the rings go around.
  for (const char *encoding : {"f16x2", "i8g32"})
    for (const char *tile : {"t8", "t32", "t64", "p64"}) {
      const LinearCase problem(random, encoding, {7, 1800, 20}, false);
      const auto planted =
          plantAll(tile, 71, [&](const auto &options, auto *report) {
            return problem.run(tile, 0, 7, options, report);
          });
      EXPECT_GE(planted.at(Plant::SkipBarrier), 1);
      EXPECT_EQ(planted.at(Plant::WaitTooFew), 1);
      EXPECT_GE(planted.at(Plant::ShiftShared), 3);
      EXPECT_GE(planted.at(Plant::SwapFragment), 1);
    }
}

TEST(CudaFaults, OfExperts) {
  Random random(64);
  for (auto [encoding, tile] :
       {std::pair{"i8g32", "t8"}, {"f16x2", "t32"}, {"i8g32", "p64"}}) {
    const ExpertCase problem(random, encoding, {3, 2, 4, 1800, 16});
    const auto planted = plantAll(std::string("experts ") + tile, 74,
                                  [&](const auto &options, auto *report) {
                                    return problem.run(tile, options, report);
                                  });
    EXPECT_GE(planted.at(Plant::SkipBarrier), 1);
    EXPECT_EQ(planted.at(Plant::WaitTooFew), 1);
    EXPECT_GE(planted.at(Plant::ShiftShared), 3);
    EXPECT_GE(planted.at(Plant::SwapFragment), 1);
  }
  // Counts that go from warp to warp, for several turns.
  const ExpertShape shape{4, 2, 400, 0, 0};
  const std::vector<float> routes = someRoutes(random, shape);
  const auto planted =
      plantAll("order_slots", 75, [&](const auto &options, auto *report) {
        DeviceArray<float> deviceRoutes(routes);
        DeviceArray<std::int32_t> order(
            std::size_t(2 * shape.slots() + shape.experts + 1));
        const abi::OrderSlotsParams params{deviceRoutes.data(), order.data(),
                                           shape.tokens,        shape.experts,
                                           shape.topK,          0};
        *report = launchKernel("order_slots", abi::orderGrid(shape.experts),
                               params, options);
        std::vector<float> numbers;
        for (std::int32_t number : order.copy())
          numbers.push_back(float(number));
        return numbers;
      });
  EXPECT_EQ(planted.at(Plant::SkipBarrier), 2);
}

TEST(CudaFaults, OfAttention) {
  Random random(62);
  // Elements of the last two become float16 where they were copied to.
  for (const char *kv : {"f16", "bf16", "i8"}) {
    const AttentionCase problem(random, {64, kv, 4, 2}, {{300, 2}, {90, 1}}, 0,
                                0);
    for (Cut cut : {Cut::Split, Cut::Wide}) {
      const auto planted = plantAll(
          std::string(cut == Cut::Split ? "attention_split_" : "attention_") +
              kv,
          72, [&](const auto &options, auto *report) {
            return problem.run(cut, 1000, options, report);
          });
      EXPECT_EQ(planted.at(Plant::SkipBarrier), cut == Cut::Split ? 3 : 1);
      EXPECT_EQ(planted.at(Plant::WaitTooFew), 1);
      EXPECT_GE(planted.at(Plant::ShiftShared), 4);
      EXPECT_GE(planted.at(Plant::SwapFragment), 4);
    }
  }
}

TEST(CudaFaults, OfRows) {
  Random random(63);
  constexpr int kWidth = 600;
  DeviceArray<float> input(uniforms(random, 2 * kWidth, -2, 2));
  DeviceArray<float> weight(uniforms(random, kWidth, 0.5f, 2));
  for (const char *name : {"rms_norm", "layer_norm"}) {
    const auto planted =
        plantAll(name, 73, [&](const auto &options, auto *report) {
          DeviceArray<float> output(2 * kWidth);
          HalfRows halves(2, kWidth);
          if (std::string(name) == "rms_norm") {
            const abi::RmsNormParams params{input.data(),
                                            weight.data(),
                                            output.data(),
                                            halves.rows(),
                                            2,
                                            kWidth,
                                            1e-5f,
                                            0};
            *report = launchKernel(name, abi::rowGrid(2), params, options);
          } else {
            const abi::LayerNormParams params{
                input.data(),  weight.data(), nullptr,
                output.data(), halves.rows(), 2,
                kWidth,        1e-5f,         0};
            *report = launchKernel(name, abi::rowGrid(2), params, options);
          }
          return output.copy();
        });
    EXPECT_EQ(planted.at(Plant::SkipBarrier),
              std::string(name) == "rms_norm" ? 2 : 3);
  }
}

} // namespace
} // namespace ingot::test
