// Every item of every launch runs exactly once, whatever the workers do. Made
// for the thread sanitizer as well: results are plain memory.
#include "runtime/execute/cpu/WorkerPool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace ingot;

namespace {

struct CountParams {
  std::int32_t *counts;
  std::int32_t add;
  std::int32_t numWorkers;
};

void count(const void *raw, const ingot::abi::Slice *slice) {
  const auto &params = *static_cast<const CountParams *>(raw);
  ASSERT_GE(slice->worker, 0);
  ASSERT_LT(slice->worker, params.numWorkers);
  // The scratch of a worker is its own: a race here is a fault of the pool.
  auto *scratch = static_cast<std::int32_t *>(slice->scratch);
  *scratch = slice->begin;
  for (std::int32_t i = slice->begin; i < slice->end; ++i)
    params.counts[i] += params.add;
  ASSERT_EQ(*scratch, slice->begin);
}

std::unique_ptr<WorkerPool> makePool(int workers) {
  auto pool = WorkerPool::create({workers, 64, {}});
  EXPECT_TRUE(pool.isOk()) << pool.status().message();
  return std::move(pool).value();
}

} // namespace

TEST(WorkerPoolTest, everyItemOnce) {
  std::mt19937 random(1);
  for (int workers : {1, 2, 3, 8}) {
    auto pool = makePool(workers);
    EXPECT_EQ(pool->numWorkers(), workers);
    for (int round = 0; round < 3000; ++round) {
      auto items = std::int32_t(random() % 300);
      auto grain = std::int32_t(random() % 40);
      std::vector<std::int32_t> counts(std::size_t(items), 0);
      CountParams params{counts.data(), round + 1, workers};
      pool->launch(count, &params, items, grain);
      for (std::int32_t value : counts)
        ASSERT_EQ(value, round + 1);
    }
  }
}

// Launches after a pause find the workers asleep and wake them.
TEST(WorkerPoolTest, wakesSleepers) {
  auto pool = makePool(4);
  std::vector<std::int32_t> counts(64, 0);
  CountParams params{counts.data(), 1, 4};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pool->launch(count, &params, 64, 1);
  }
  for (std::int32_t value : counts)
    EXPECT_EQ(value, 20);
}

// Pools that never launch, or only small ones, end as well.
TEST(WorkerPoolTest, startsAndEnds) {
  for (int round = 0; round < 50; ++round) {
    auto pool = makePool(1 + round % 5);
    std::int32_t one = 0;
    CountParams params{&one, 1, 8};
    if (round % 2)
      pool->launch(count, &params, 1, 100);
    pool->launch(count, &params, 0, 1);
    EXPECT_EQ(one, round % 2);
  }
  EXPECT_FALSE(WorkerPool::create({0, 0, {}}).isOk());
  EXPECT_FALSE(WorkerPool::create({5000, 0, {}}).isOk());
}

#if defined(__x86_64__)
// Workers keep denormals and round to nearest, whatever the caller's mode.
TEST(WorkerPoolTest, workersHaveTheFloatModeOfTheLaw) {
  unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040 | 0x6000); // flush, denormals are zero, truncate
  auto pool = makePool(3);
  std::vector<unsigned> modes(300, 0);
  struct Params {
    unsigned *modes;
  } params{modes.data()};
  auto record = [](const void *raw, const ingot::abi::Slice *slice) {
    for (std::int32_t i = slice->begin; i < slice->end; ++i)
      static_cast<const Params *>(raw)->modes[i] =
          slice->worker == 0 ? 0x1f80 : (_mm_getcsr() & ~0x3fu);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  };
  pool->launch(record, &params, 300, 1);
  _mm_setcsr(saved);
  for (unsigned mode : modes)
    EXPECT_EQ(mode, 0x1f80u);
}
#endif
