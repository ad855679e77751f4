// What the kernels of decoding move, by the traces of the emulator: weights and the
// cache once, within 3 % and 5 % of their bytes, and no access to shared memory in
// more than two passes.
#include "test/compiler/kernels/cuda/AttentionCase.h"
#include "test/compiler/kernels/cuda/ExpertCase.h"
#include "test/compiler/kernels/cuda/LinearCase.h"

namespace ingot::test {
namespace {

constexpr std::uint64_t kSector = 32;

simt::LaunchOptions traced() {
  simt::LaunchOptions options;
  options.trace = true;
  options.check = false;
  return options;
}

void expectFewConflicts(const simt::Trace &trace, const std::string &what) {
  for (const simt::SiteTrace &site : trace.sites)
    if (site.isShared)
      EXPECT_LE(site.conflict(), 2.0)
          << what << "\n"
          << simt::sourceLine(site.pc) << ": " << site.conflict();
}

TEST(CudaTrace, DecodingMovesEachWeightOnce) {
  Random random(81);
  for (const char *encoding :
       {"f16", "f16x2", "bf16x2", "i8g32", "i8g128", "i4g32m", "i4g128"})
    for (int tokens : {1, 8, 16, 32, 64}) {
      const LinearCase problem(random, encoding, {tokens, 1024, 96}, false);
      simt::LaunchReport report;
      (void)problem.run(tileFor(tokens), 0, tokens, traced(), &report);
      const simt::Trace &trace = report.trace;
      std::uint64_t asked = 0, different = 0;
      for (const void *plane :
           {problem.weights.deviceCodes(), problem.weights.deviceScales(),
            problem.weights.deviceMins()}) {
        asked += trace.of(plane).sectorsRead * kSector;
        different += trace.of(plane).uniqueRead * kSector;
      }
      const double bytes = double(problem.weights.deviceBytes());
      const std::string what =
          std::string(encoding) + " " + std::to_string(tokens) + " tokens";
      EXPECT_NEAR(double(asked), bytes, 0.03 * bytes) << what;
      EXPECT_NEAR(double(different), bytes, 0.03 * bytes) << what;
      expectFewConflicts(trace, what);
      // Loads of weights are whole lines: as many sectors as the bytes need.
      for (const simt::SiteTrace &site : trace.sites)
        if (!site.isShared && !site.isWrite &&
            site.bytes > std::uint64_t(bytes / 2))
          EXPECT_EQ(site.sectors, site.idealSectors) << what;
    }
}

// Of the experts that a step chose, and of no others.
TEST(CudaTrace, DecodingMovesTheWeightsOfTheChosenExpertsOnce) {
  Random random(84);
  for (const char *encoding : {"f16x2", "i8g32", "i4g32m"})
    for (int tokens : {1, 5, 8}) {
      const ExpertCase problem(random, encoding, {12, 2, tokens, 512, 96});
      simt::LaunchReport report;
      (void)problem.run("t8", traced(), &report);
      const simt::Trace &trace = report.trace;
      std::uint64_t asked = 0, different = 0;
      for (const void *plane :
           {problem.weights.deviceCodes(), problem.weights.deviceScales(),
            problem.weights.deviceMins()}) {
        asked += trace.of(plane).sectorsRead * kSector;
        different += trace.of(plane).uniqueRead * kSector;
      }
      const int used = problem.usedExperts();
      const double bytes = double(problem.weights.deviceBytes()) * used / 12;
      const std::string what = std::string(encoding) + " " +
                               std::to_string(tokens) + " tokens on " +
                               std::to_string(used) + " experts";
      EXPECT_LT(used, 12);
      EXPECT_NEAR(double(asked), bytes, 0.03 * bytes) << what;
      EXPECT_NEAR(double(different), bytes, 0.03 * bytes) << what;
      expectFewConflicts(trace, what);
    }
}

TEST(CudaTrace, DecodingMovesEachKeyAndValueOnce) {
  Random random(82);
  for (const Geometry &geometry :
       {Geometry{64, "f16", 6, 2}, Geometry{16, "f16", 2, 2},
        Geometry{64, "i8", 2, 2}, Geometry{128, "i8", 2, 1},
        Geometry{64, "bf16", 2, 1}, Geometry{128, "f16", 4, 1}}) {
    const AttentionCase problem(random, geometry, {{639, 1}, {511, 1}}, 0, 0);
    simt::LaunchReport report;
    (void)problem.run(Cut::Split, 1, traced(), &report);
    const double bytes = double(problem.cache.size());
    const simt::AllocationTrace &cache = report.trace.of(problem.cache.data());
    EXPECT_NEAR(double(cache.sectorsRead * kSector), bytes, 0.05 * bytes)
        << geometry.name("attention_split");
    EXPECT_NEAR(double(cache.uniqueRead * kSector), bytes, 0.05 * bytes)
        << geometry.name("attention_split");
    expectFewConflicts(report.trace, geometry.name("attention_split"));
  }
}

TEST(CudaTrace, PromptsHaveFewConflicts) {
  Random random(83);
  const LinearCase linear(random, "f16", {70, 256, 130}, false);
  simt::LaunchReport report;
  (void)linear.run("p64", 0, 70, traced(), &report);
  expectFewConflicts(report.trace, "linear_f16_p64");
  const LinearCase both(random, "f16x2", {70, 256, 130}, false);
  (void)both.run("p64", 0, 70, traced(), &report);
  expectFewConflicts(report.trace, "linear_f16x2_p64");
  const AttentionCase attention(random, {64, "f16", 4, 2}, {{100, 40}}, 0, 0);
  (void)attention.run(Cut::Wide, 1000, traced(), &report);
  expectFewConflicts(report.trace, "attention_h64_f16");
}

} // namespace
} // namespace ingot::test
