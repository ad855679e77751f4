// The emulator itself: each kind of synchronisation does what CUDA says, each kind
// of fault is found at its line, and what is right is reported clean, under every
// schedule.
#include "test/simt/Simt.h"
#include "test/simt/Half.h"
#include "test/simt/Probes.h"
#include "test/simt/TensorCore.h"
#include "test/simt/ThreadContext.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace ingot::simt {
namespace {

constexpr Schedule kSchedules[] = {Schedule::RoundRobin, Schedule::Reverse,
                                   Schedule::Random, Schedule::WarpFirst};

// Runs the test under each schedule and several seeds.
void underSchedules(const std::function<void(const LaunchOptions &)> &test) {
  for (Schedule schedule : kSchedules)
    for (std::uint64_t seed : {1, 2, 3})
      for (unsigned odds : {0u, 7u}) {
        LaunchOptions options;
        options.schedule = schedule;
        options.seed = seed;
        options.switchOdds = odds;
        options.async = AsyncMode(seed % 3);
        SCOPED_TRACE(testing::Message()
                     << "schedule " << int(schedule) << " seed " << seed
                     << " odds " << odds);
        test(options);
      }
}

template <typename T> std::vector<T> ascending(std::size_t size) {
  std::vector<T> values(size);
  std::iota(values.begin(), values.end(), T(0));
  return values;
}

TEST(SimtTest, BarrierOrdersABlock) {
  underSchedules([](const LaunchOptions &options) {
    DeviceArray<float> values(ascending<float>(256), Access::ReadWrite);
    LaunchReport report = launch(
        {}, {256}, 1024, [&] { probes::reverse(values.data(), true); },
        options);
    EXPECT_TRUE(report.isClean()) << report.text();
    EXPECT_EQ(report.barriers, 1u);
    for (int i = 0; i < 256; ++i)
      EXPECT_EQ(values[i], float(255 - i));
  });
}

TEST(SimtTest, MissingBarrierIsARaceUnderEverySchedule) {
  underSchedules([](const LaunchOptions &options) {
    DeviceArray<float> values(ascending<float>(256), Access::ReadWrite);
    LaunchReport report = launch(
        {}, {256}, 1024, [&] { probes::reverse(values.data(), false); },
        options);
    EXPECT_GT(report.count(FaultKind::Race) +
                  report.count(FaultKind::Uninitialised),
              0u);
    EXPECT_NE(report.text().find("Probes.cpp:"), std::string::npos)
        << report.text();
  });
}

TEST(SimtTest, SyncWarpOrdersItsLanes) {
  underSchedules([](const LaunchOptions &options) {
    for (bool withSync : {true, false}) {
      DeviceArray<std::uint32_t> values(ascending<std::uint32_t>(32),
                                        Access::ReadWrite);
      LaunchReport report = launch(
          {}, {32}, 128, [&] { probes::warpExchange(values.data(), withSync); },
          options);
      EXPECT_EQ(report.isClean(), withSync) << report.text();
      if (withSync) {
        for (std::uint32_t i = 0; i < 32; ++i)
          EXPECT_EQ(values[i], i ^ 5);
      }
    }
  });
}

TEST(SimtTest, SharedRedZones) {
  DeviceArray<float> out(1);
  auto read = [&](int index, bool isWritten) {
    return launch({}, {64}, 256, [&] {
      probes::sharedRead(out.data(), 64, index, isWritten);
    });
  };
  EXPECT_TRUE(read(63, true).isClean());
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(read(64, true).count(FaultKind::OutOfBounds), 1u);
  EXPECT_EQ(read(-1, true).count(FaultKind::OutOfBounds), 1u);
  EXPECT_EQ(read(63, false).count(FaultKind::Uninitialised), 1u);
  EXPECT_EQ(launch({}, {32}, 256, [] { probes::sharedWrite(64, 64); })
                .count(FaultKind::OutOfBounds),
            1u);
  // More pieces than the launch asked for.
  EXPECT_EQ(launch({}, {32}, 128, [] { probes::sharedWrite(64, 3); })
                .count(FaultKind::Misuse),
            1u);
}

TEST(SimtTest, SharedMemoryIsForgottenBetweenBlocks) {
  DeviceArray<float> out(1);
  EXPECT_TRUE(launch({3}, {64}, 256, [&] {
                if (currentThread->block.x == 2)
                  return probes::sharedRead(out.data(), 64, 5, true);
                probes::sharedWrite(64, 5);
              }).isClean());
  EXPECT_EQ(launch({2}, {64}, 256,
                   [&] {
                     if (currentThread->block.x == 1)
                       return probes::sharedRead(out.data(), 64, 5, false);
                     probes::sharedWrite(64, 5);
                   })
                .count(FaultKind::Uninitialised),
            1u);
}

TEST(SimtTest, DeviceMemoryIsBoundedAndInitialised) {
  DeviceArray<float> values(ascending<float>(16), Access::ReadWrite);
  auto copy = [&](int index, int source) {
    return launch({}, {32}, 0,
                  [&] { probes::deviceCopy(values.data(), index, source); });
  };
  EXPECT_TRUE(copy(0, 15).isClean());
  EXPECT_EQ(values[0], 15.0f);
  EXPECT_EQ(copy(0, 16).count(FaultKind::OutOfBounds), 1u);
  EXPECT_EQ(copy(16, 0).count(FaultKind::OutOfBounds), 1u);
  EXPECT_EQ(copy(-1, 0).count(FaultKind::OutOfBounds), 1u);
  DeviceArray<float> fresh(4);
  LaunchReport report =
      launch({}, {32}, 0, [&] { probes::deviceCopy(fresh.data(), 0, 1); });
  EXPECT_EQ(report.count(FaultKind::Uninitialised), 1u);
  DeviceArray<float> constant(ascending<float>(4));
  EXPECT_EQ(
      launch({}, {32}, 0, [&] { probes::deviceConstantWrite(constant.data()); })
          .count(FaultKind::Misuse),
      1u);
}

TEST(SimtTest, AtomicsCountAndPlainUpdatesRace) {
  underSchedules([](const LaunchOptions &options) {
    for (bool isAtomic : {true, false}) {
      DeviceArray<std::uint32_t> counter(std::vector<std::uint32_t>{0},
                                         Access::ReadWrite);
      LaunchReport report = launch(
          {2}, {64}, 0, [&] { probes::count(counter.data(), isAtomic); },
          options);
      EXPECT_EQ(report.isClean(), isAtomic) << report.text();
      if (isAtomic) {
        EXPECT_EQ(counter[0], 128u);
      } else {
        EXPECT_GT(report.count(FaultKind::Race), 0u);
      }
    }
  });
}

TEST(SimtTest, BlocksOfALaunchAreNeverOrdered) {
  for (Schedule schedule : kSchedules)
    for (int reader : {0, 1}) {
      DeviceArray<float> values(std::vector<float>{1.0f}, Access::ReadWrite);
      DeviceArray<float> out(1);
      LaunchOptions options;
      options.schedule = schedule;
      LaunchReport report = launch(
          {2}, {32}, 0,
          [&] { probes::crossBlocks(values.data(), out.data(), reader); },
          options);
      EXPECT_EQ(report.count(FaultKind::Race), 1u) << report.text();
      // The next launch may read what this one wrote.
      EXPECT_TRUE(launch({}, {32}, 0, [&] {
                    probes::crossBlocks(values.data(), out.data(), 0);
                  }).isClean());
    }
}

TEST(SimtTest, Shuffles) {
  DeviceArray<int> in(ascending<int>(32));
  for (int width : {32, 16, 8})
    for (int operand : {0, 1, 3, 7, 15, 16, 31}) {
      if (operand >= width)
        continue;
      DeviceArray<int> out(128);
      LaunchReport report = launch({}, {32}, 0, [&] {
        probes::shuffles(in.data(), out.data(), operand, width);
      });
      EXPECT_TRUE(report.isClean()) << report.text();
      for (int lane = 0; lane < 32; ++lane) {
        const int base = lane / width * width;
        const int inGroup = lane - base;
        EXPECT_EQ(out[lane], base + operand);
        EXPECT_EQ(out[32 + lane], inGroup < operand ? lane : lane - operand);
        EXPECT_EQ(out[64 + lane],
                  inGroup + operand < width ? lane + operand : lane);
        EXPECT_EQ(out[96 + lane],
                  (lane ^ operand) < base + width ? lane ^ operand : lane);
      }
    }
}

TEST(SimtTest, VotesReductionsAndMasks) {
  std::mt19937 random(5);
  std::vector<int> values(32);
  for (int &value : values)
    value = int(random() % 2);
  DeviceArray<int> in(values);
  for (unsigned mask : {~0u, 0x0000ffffu, 0x80000001u, 0x13572468u}) {
    DeviceArray<unsigned> out(96);
    LaunchReport report = launch(
        {}, {32}, 0, [&] { probes::votes(in.data(), out.data(), mask); });
    EXPECT_TRUE(report.isClean()) << report.text();
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1 && values[lane])
        ballot |= 1u << lane;
    for (int lane = 0; lane < 32; ++lane) {
      if (!(mask >> lane & 1))
        continue;
      EXPECT_EQ(out[lane], ballot);
      EXPECT_EQ(out[32 + lane], unsigned(ballot != 0));
      EXPECT_EQ(out[64 + lane], unsigned(ballot == mask));
    }
  }
  for (int &value : values)
    value = int(random() % 2000) - 1000;
  DeviceArray<int> numbers(values);
  DeviceArray<int> out(128);
  underSchedules([&](const LaunchOptions &options) {
    LaunchReport report = launch(
        {}, {32}, 0, [&] { probes::reductions(numbers.data(), out.data()); },
        options);
    EXPECT_TRUE(report.isClean()) << report.text();
    int exclusive = 0;
    for (int value : values)
      exclusive ^= value;
    for (int lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(out[lane], std::accumulate(values.begin(), values.end(), 0));
      EXPECT_EQ(out[32 + lane],
                *std::min_element(values.begin(), values.end()));
      EXPECT_EQ(out[64 + lane],
                *std::max_element(values.begin(), values.end()));
      EXPECT_EQ(out[96 + lane], exclusive);
    }
    DeviceArray<int> halves(32);
    report = launch(
        {}, {32}, 0, [&] { probes::halfWarps(numbers.data(), halves.data()); },
        options);
    EXPECT_TRUE(report.isClean()) << report.text();
    for (int lane = 0; lane < 32; ++lane)
      EXPECT_EQ(halves[lane],
                std::accumulate(values.begin() + lane / 16 * 16,
                                values.begin() + lane / 16 * 16 + 16, 0));
  });
}

TEST(SimtTest, BlockVotes) {
  for (int kind : {0, 1, 2}) {
    std::vector<int> values(96);
    int number = 0;
    for (int i = 0; i < 96; ++i)
      number += values[i] = kind == 0 ? 0 : kind == 1 ? 1 : i % 3 == 0;
    DeviceArray<int> in(values);
    DeviceArray<int> out(96);
    LaunchReport report =
        launch({}, {96}, 0, [&] { probes::blockVotes(in.data(), out.data()); });
    EXPECT_TRUE(report.isClean()) << report.text();
    for (int i = 0; i < 96; ++i)
      EXPECT_EQ(out[i], (kind > 0) * 10000 + (kind == 1) * 1000 + number);
  }
}

TEST(SimtTest, BarriersThatNotAllMeet) {
  EXPECT_GT(launch({}, {64}, 0, [] { probes::skippedBarrier(40); })
                .count(FaultKind::Misuse),
            0u);
  EXPECT_TRUE(
      launch({}, {64}, 0, [] { probes::skippedBarrier(64); }).isClean());
  EXPECT_TRUE(launch({}, {64}, 0, [] { probes::skippedBarrier(0); }).isClean());
  EXPECT_GT(launch({}, {64}, 0, [] { probes::twoBarriers(40); })
                .count(FaultKind::Misuse),
            0u);
  LaunchReport stray = launch({}, {32}, 0, [] { probes::strayLane(); });
  EXPECT_EQ(stray.count(FaultKind::Deadlock), 1u) << stray.text();
  EXPECT_GT(launch({}, {32}, 0, [] { probes::collectiveMismatch(); })
                .count(FaultKind::Misuse),
            0u);
}

TEST(SimtTest, AsynchronousRing) {
  constexpr int kSteps = 9;
  constexpr int kThreads = 64;
  DeviceArray<float> in(ascending<float>(kSteps * kThreads * 4));
  for (int stages : {1, 2, 3, 4})
    underSchedules([&](const LaunchOptions &options) {
      auto run = [&](int pending, bool lastBarrier) {
        DeviceArray<float> out(kThreads);
        LaunchReport report = launch(
            {}, {kThreads}, std::size_t(stages) * kThreads * 16,
            [&] {
              probes::ring(in.data(), out.data(), kSteps, stages, pending,
                           lastBarrier);
            },
            options);
        if (report.isClean())
          for (int i = 0; i < kThreads; ++i) {
            float total = 0;
            for (int step = 0; step < kSteps; ++step)
              total += in[step * kThreads * 4 + kThreads * 4 - 1 - 4 * i];
            EXPECT_EQ(out[i], total);
          }
        return report;
      };
      LaunchReport right = run(stages - 1, true);
      EXPECT_TRUE(right.isClean()) << right.text();
      EXPECT_EQ(right.asyncCopies, unsigned(kSteps * kThreads));
      // One group too many may be under way; or the ring is refilled while others
      // still read.
      if (stages < 4)
        EXPECT_GT(run(stages, true).count(FaultKind::Race), 0u);
      EXPECT_GT(run(stages - 1, false).count(FaultKind::Race), 0u);
    });
}

TEST(SimtTest, AsynchronousCopyFillsWithZeros) {
  DeviceArray<float> in(std::vector<float>{1, 2, 3, 4});
  for (int valid : {0, 4, 8, 16}) {
    DeviceArray<float> out(128);
    LaunchReport report = launch(
        {}, {32}, 512, [&] { probes::zeroFill(in.data(), out.data(), valid); });
    EXPECT_TRUE(report.isClean()) << report.text();
    for (int i = 0; i < 128; ++i)
      EXPECT_EQ(out[i], i % 4 * 4 < valid ? float(i % 4 + 1) : 0.0f);
  }
}

TEST(SimtTest, LoadMatrix) {
  DeviceArray<std::uint16_t> in(ascending<std::uint16_t>(256));
  for (bool isTransposed : {false, true}) {
    DeviceArray<std::uint32_t> out(128);
    LaunchReport report = launch({}, {32}, 16 * 24 * 2, [&] {
      probes::matrices(in.data(), out.data(), 24, isTransposed);
    });
    EXPECT_TRUE(report.isClean()) << report.text();
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned m = 0; m < 4; ++m) {
        const unsigned top = m % 2 * 8;
        const unsigned left = m / 2 * 8;
        auto element = [&](unsigned row, unsigned column) {
          return (top + row) * 16 + left + column;
        };
        const unsigned g = lane / 4;
        const unsigned q = lane % 4;
        const unsigned low =
            isTransposed ? element(2 * q, g) : element(g, 2 * q);
        const unsigned high =
            isTransposed ? element(2 * q + 1, g) : element(g, 2 * q + 1);
        EXPECT_EQ(out[lane * 4 + m], low | high << 16);
      }
  }
  // A row of 20 elements is not aligned to 16 bytes.
  DeviceArray<std::uint32_t> out(128);
  EXPECT_GT(launch({}, {32}, 16 * 20 * 2,
                   [&] { probes::matrices(in.data(), out.data(), 20, false); })
                .count(FaultKind::Misuse),
            0u);
}

TEST(SimtTest, MatrixMultiplyAdd) {
  std::mt19937 random(11);
  std::vector<std::uint16_t> a(256), b(128);
  std::vector<float> c(128);
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (auto &x : a)
    x = floatToHalf(uniform(random));
  for (auto &x : b)
    x = floatToHalf(uniform(random));
  for (float &x : c)
    x = uniform(random);
  DeviceArray<std::uint16_t> da(a), db(b);
  DeviceArray<float> dc(c, Access::ReadWrite);
  LaunchReport report = launch(
      {}, {32}, 0, [&] { probes::multiply(da.data(), db.data(), dc.data()); });
  EXPECT_TRUE(report.isClean()) << report.text();
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      double sum = c[row * 8 + column];
      for (int k = 0; k < 16; ++k)
        sum += double(halfToFloat(a[row * 16 + k])) *
               halfToFloat(b[k * 8 + column]);
      EXPECT_NEAR(dc[row * 8 + column], sum, 1e-5);
    }
}

// The layouts once more, as the PTX specification writes them: by element ai, bi, ci
// of a thread, with groupID = laneid >> 2 and threadID_in_group = laneid % 4
// ("Matrix Fragments for mma.m16n8k16 with floating point type").
TEST(SimtTest, FragmentsFollowThePtxTables) {
  std::mt19937 random(12);
  std::uint16_t a[16][16], b[16][8];
  for (auto &row : a)
    for (auto &x : row)
      x = floatToHalf(float(int(random() % 17) - 8));
  for (auto &row : b)
    for (auto &x : row)
      x = floatToHalf(float(int(random() % 17) - 8));
  std::vector<std::uint32_t> registersA(128), registersB(64);
  auto put = [](std::uint32_t &reg, int i, std::uint16_t bits) {
    reg |= std::uint32_t(bits) << (i & 1) * 16;
  };
  for (int laneid = 0; laneid < 32; ++laneid) {
    const int groupID = laneid >> 2;
    const int threadInGroup = laneid % 4;
    for (int i = 0; i < 8; ++i) {
      const int row =
          (0 <= i && i < 2) || (4 <= i && i < 6) ? groupID : groupID + 8;
      const int col =
          i < 4 ? threadInGroup * 2 + (i & 1) : threadInGroup * 2 + (i & 1) + 8;
      put(registersA[laneid * 4 + i / 2], i, a[row][col]);
    }
    for (int i = 0; i < 4; ++i) {
      const int row =
          i < 2 ? threadInGroup * 2 + (i & 1) : threadInGroup * 2 + (i & 1) + 8;
      put(registersB[laneid * 2 + i / 2], i, b[row][groupID]);
    }
  }
  DeviceArray<std::uint32_t> deviceA(registersA), deviceB(registersB);
  DeviceArray<float> c(128);
  LaunchReport report = launch({}, {32}, 0, [&] {
    probes::multiplyRegisters(deviceA.data(), deviceB.data(), c.data());
  });
  EXPECT_TRUE(report.isClean()) << report.text();
  for (int laneid = 0; laneid < 32; ++laneid)
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? laneid >> 2 : (laneid >> 2) + 8;
      const int col = laneid % 4 * 2 + (i & 1);
      float sum = 0; // whole numbers: exact in any order
      for (int k = 0; k < 16; ++k)
        sum += halfToFloat(a[row][k]) * halfToFloat(b[k][col]);
      EXPECT_EQ(c[laneid * 4 + i], sum);
    }
}

// What MmaSums::CutOff says: terms lose what lies below the last bit of the largest,
// piece of 8 by piece, and sums go towards zero.
TEST(SimtTest, SumsMayBeCutOffAsTensorCoresDo) {
  // Row 0 of A is ones but for its first element, column 0 of B is 2^-13 but for its
  // first: 1 + 15 * 2^-13 * 2^-11 with the terms below 2^-23 of the largest.
  std::vector<std::uint32_t> registersA(128), registersB(64);
  const std::uint32_t small = floatToHalf(0x1p-11f);
  const std::uint32_t other = floatToHalf(0x1p-13f), one = floatToHalf(1);
  for (int q = 0; q < 4; ++q) {
    registersA[std::size_t(q * 4)] = registersA[std::size_t(q * 4 + 2)] =
        small | small << 16;
    registersB[std::size_t(q * 2)] = registersB[std::size_t(q * 2 + 1)] =
        other | other << 16;
  }
  registersA[0] = one | small << 16;
  registersB[0] = one | other << 16;
  DeviceArray<std::uint32_t> deviceA(registersA), deviceB(registersB);
  auto sumOf = [&](MmaSums sums, bool isNegative) {
    MmaSumsScope scope(sums);
    if (isNegative)
      for (int q = 0; q < 4; ++q)
        for (int i : {0, 2})
          deviceA[std::size_t(q * 4 + i)] =
              registersA[std::size_t(q * 4 + i)] ^ 0x80008000u;
    DeviceArray<float> c(128);
    LaunchReport report = launch({}, {32}, 0, [&] {
      probes::multiplyRegisters(deviceA.data(), deviceB.data(), c.data());
    });
    EXPECT_TRUE(report.isClean()) << report.text();
    return c[0];
  };
  EXPECT_EQ(sumOf(MmaSums::Rounded, false), 1 + 8 * 0x1p-23f);
  EXPECT_EQ(sumOf(MmaSums::CutOff, false), 1);
  EXPECT_EQ(sumOf(MmaSums::CutOff, true), -1);
  EXPECT_EQ(sumOf(MmaSums::Rounded, true), -(1 + 8 * 0x1p-23f));
}

TEST(SimtTest, HalfConversionIsNearestEven) {
  // Every float16 survives, and midpoints go to the even neighbour.
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const auto half = std::uint16_t(bits);
    EXPECT_EQ(floatToHalf(halfToFloat(half)), half);
    if (bits + 1 < 0x7c00) {
      const float middle =
          (halfToFloat(half) + halfToFloat(std::uint16_t(bits + 1))) / 2;
      EXPECT_EQ(floatToHalf(middle), bits % 2 ? bits + 1 : bits);
    }
  }
  EXPECT_EQ(floatToHalf(65519.99f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(-1e30f), 0xfc00);
}

TEST(SimtTest, TraceCountsSectorsAndConflicts) {
  DeviceArray<std::uint32_t> in(ascending<std::uint32_t>(32 * 32));
  struct Case {
    int sharedStride, deviceStride;
    double passes, sectors;
  };
  // 32 banks of 4 bytes; sectors of 8 words.
  for (const Case &test :
       {Case{1, 1, 1, 4}, Case{2, 2, 2, 8}, Case{32, 8, 32, 32},
        Case{33, 32, 1, 32}, Case{4, 4, 4, 16}}) {
    DeviceArray<std::uint32_t> out(32);
    LaunchOptions options;
    options.trace = true;
    LaunchReport report = launch(
        {}, {32}, std::size_t(32 * 4 * test.sharedStride),
        [&] {
          probes::strided(in.data(), out.data(), test.sharedStride,
                          test.deviceStride);
        },
        options);
    EXPECT_TRUE(report.isClean()) << report.text();
    int shared = 0;
    for (const SiteTrace &site : report.trace.sites)
      if (site.isShared) {
        ++shared;
        EXPECT_EQ(site.conflict(), test.passes) << report.trace.text();
      }
    EXPECT_EQ(shared, 2);
    EXPECT_EQ(double(report.trace.of(in.data()).sectorsRead), test.sectors);
    EXPECT_EQ(report.trace.of(out.data()).uniqueWritten, 4u);
    EXPECT_NE(report.trace.text().find("Probes.cpp:"), std::string::npos);
  }
}

TEST(SimtTest, GridsAndIndices) {
  DeviceArray<std::uint32_t> seen(std::vector<std::uint32_t>(2 * 3 * 2 * 5),
                                  Access::ReadWrite);
  LaunchReport report = launch({2, 3, 2}, {5}, 0, [&] {
    const ThreadContext &me = *currentThread;
    EXPECT_EQ(me.gridDim.y, 3u);
    EXPECT_EQ(me.blockDim.x, 5u);
    ++seen[((me.block.z * 3 + me.block.y) * 2 + me.block.x) * 5 + me.thread.x];
  });
  EXPECT_TRUE(report.isClean());
  for (std::uint32_t count : seen.copy())
    EXPECT_EQ(count, 1u);
  EXPECT_EQ(launch({}, {2048}, 0, [] {}).count(FaultKind::Misuse), 1u);
}

} // namespace
} // namespace ingot::simt
