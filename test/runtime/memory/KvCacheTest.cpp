// Accounting of blocks: what is taken comes back, whatever the order.
#include "runtime/memory/KvCache.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

using namespace ingot;
using ::testing::HasSubstr;

namespace {

GroupGeometry group(const char *name, std::int32_t window = 0) {
  GroupGeometry geometry;
  geometry.name = name;
  geometry.layers = 2;
  geometry.window = window;
  geometry.layerBytes = 256;
  geometry.valueOffset = 128;
  return geometry;
}

KvCache makeCache(std::vector<std::int32_t> blocks,
                  const KvCacheOptions &options = {},
                  std::int32_t window = 64) {
  std::vector<GroupGeometry> groups;
  for (std::size_t g = 0; g < blocks.size(); ++g)
    groups.push_back(group(g ? "windowed" : "full", g ? window : 0));
  auto cache = KvCache::create(std::move(groups), blocks, options);
  EXPECT_TRUE(cache.isOk()) << cache.status().message();
  return std::move(cache).value();
}

} // namespace

// Each block is handed out once, and again only after its last release.
TEST(BlockAllocatorTest, countsReferences) {
  BlockAllocator allocator(3);
  std::set<BlockId> seen;
  for (int i = 0; i < 3; ++i)
    seen.insert(*allocator.allocate());
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_FALSE(allocator.allocate());
  allocator.retain(1);
  EXPECT_FALSE(allocator.release(1));
  EXPECT_EQ(allocator.numFree(), 0);
  EXPECT_TRUE(allocator.release(1));
  EXPECT_EQ(*allocator.allocate(), 1);
}

// Reserve takes, rollback gives back, commit keeps.
TEST(KvCacheTest, reserveCommitRollback) {
  KvCache cache = makeCache({4});
  ASSERT_TRUE(cache.addSequence(1).isOk());
  ASSERT_TRUE(cache.reserve(1, 33).isOk());
  EXPECT_EQ(cache.blockTable(1, 0).size(), 2u);
  cache.rollback(1);
  EXPECT_EQ(cache.allocator(0).numFree(), 4);
  ASSERT_TRUE(cache.reserve(1, 40).isOk());
  cache.commit(1, 5);
  cache.rollback(1);
  EXPECT_EQ(cache.blockTable(1, 0).size(), 1u);
  EXPECT_EQ(cache.committedTokens(1), 5);
  cache.removeSequence(1);
  EXPECT_EQ(cache.allocator(0).numFree(), 4);
  EXPECT_TRUE(cache.checkInvariants().isOk());
}

// What does not fit changes nothing, in any group.
TEST(KvCacheTest, failedReserveTakesNothing) {
  KvCache cache = makeCache({4, 1});
  ASSERT_TRUE(cache.addSequence(1).isOk());
  Status status = cache.reserve(1, 64);
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_THAT(status.message(),
              HasSubstr("\"windowed\": 2 blocks needed, 1 of 1 free"));
  EXPECT_EQ(cache.allocator(0).numFree(), 4);
  EXPECT_EQ(cache.allocator(1).numFree(), 1);
}

// A fork takes no block; who first writes into the shared unfinished one gets a
// copy, the last holder writes in place.
TEST(KvCacheTest, forkCopiesOnWrite) {
  KvCacheOptions options;
  options.poisonFreeBlocks = true;
  KvCache cache = makeCache({5}, options);
  ASSERT_TRUE(cache.addSequence(1).isOk());
  ASSERT_TRUE(cache.reserve(1, 40).isOk());
  cache.commit(1, 40);
  BlockId last = cache.blockTable(1, 0)[1];
  auto bytes = [&](BlockId block) {
    return cache.base(0) + std::uint64_t(block) * 512;
  };
  std::memset(bytes(last), 0x5a, 512);
  ASSERT_TRUE(cache.forkSequence(1, 2).isOk());
  ASSERT_TRUE(cache.forkSequence(1, 3).isOk());
  EXPECT_EQ(cache.allocator(0).numFree(), 3);
  EXPECT_EQ(cache.blockTable(2, 0)[1], last);
  EXPECT_TRUE(cache.sharesLastBlock(1));
  EXPECT_EQ(cache.blocksHeldAlone(1, 0), 0);
  for (SequenceId id : {1, 2, 3})
    ASSERT_TRUE(cache.reserve(id, 1).isOk());
  EXPECT_EQ(cache.blockTable(1, 0)[0], cache.blockTable(3, 0)[0]);
  EXPECT_NE(cache.blockTable(1, 0)[1], last);
  EXPECT_NE(cache.blockTable(2, 0)[1], last);
  EXPECT_EQ(cache.blockTable(3, 0)[1], last);
  EXPECT_EQ(bytes(cache.blockTable(1, 0)[1])[511], 0x5a);
  EXPECT_EQ(bytes(cache.blockTable(2, 0)[1])[0], 0x5a);
  EXPECT_FALSE(cache.sharesLastBlock(1));
  EXPECT_EQ(cache.blocksHeldAlone(1, 0), 1);
  for (SequenceId id : {1, 2, 3})
    cache.rollback(id);
  EXPECT_TRUE(cache.checkInvariants().isOk());
  for (SequenceId id : {1, 2, 3})
    cache.removeSequence(id);
  EXPECT_EQ(cache.allocator(0).numFree(), 5);
}

// A windowed group keeps the window and no more; what it holds never passes
// the bound that admission counts with.
TEST(KvCacheTest, windowReleasesWhatIsBehind) {
  constexpr std::int32_t kWindow = 64;
  for (std::int32_t step : {1, 7, 32, 33, 100}) {
    KvCache cache = makeCache({64, 64}, {}, kWindow);
    ASSERT_TRUE(cache.addSequence(1).isOk());
    for (std::int32_t at = 0; at < 1000; at += step) {
      ASSERT_TRUE(cache.reserve(1, step).isOk());
      EXPECT_LE(64 - cache.allocator(1).numFree(),
                blocksForTokens(4096, 32, kWindow, step));
      cache.commit(1, step);
      // The next query sees positions from here on; their blocks are held.
      std::int32_t oldest = std::max(0, at + step - kWindow + 1);
      auto table = cache.blockTable(1, 1);
      for (std::int32_t p = oldest; p < at + step; ++p)
        ASSERT_GE(table[p / 32], 0) << p;
      if (oldest >= 32)
        EXPECT_EQ(table[oldest / 32 - 1], -1);
    }
    ASSERT_TRUE(cache.checkInvariants().isOk());
  }
}

// Free blocks are poisoned at the start and when they come back.
TEST(KvCacheTest, poison) {
  KvCacheOptions options;
  options.poisonFreeBlocks = true;
  KvCache cache = makeCache({2}, options);
  float value;
  std::memcpy(&value, cache.base(0) + 512, 4);
  EXPECT_TRUE(std::isnan(value));
  ASSERT_TRUE(cache.addSequence(1).isOk());
  ASSERT_TRUE(cache.reserve(1, 1).isOk());
  std::uint8_t *at =
      cache.base(0) + std::uint64_t(cache.blockTable(1, 0)[0]) * 512;
  std::memset(at, 0, 512);
  cache.removeSequence(1);
  std::memcpy(&value, at, 4);
  EXPECT_TRUE(std::isnan(value));
}

// Random life of many sequences: the counts always agree.
TEST(KvCacheTest, randomLives) {
  KvCacheOptions options;
  options.shuffleSeed = 5;
  KvCache cache = makeCache({40, 40}, options);
  std::mt19937 random(3);
  std::vector<SequenceId> alive;
  SequenceId next = 1;
  for (int round = 0; round < 2000; ++round) {
    switch (random() % 5) {
    case 0:
      ASSERT_TRUE(cache.addSequence(next).isOk());
      alive.push_back(next++);
      break;
    case 1:
      if (!alive.empty()) {
        std::size_t i = random() % alive.size();
        cache.removeSequence(alive[i]);
        alive.erase(alive.begin() + std::ptrdiff_t(i));
      }
      break;
    case 2:
      if (!alive.empty()) {
        if (cache.forkSequence(alive[random() % alive.size()], next).isOk())
          alive.push_back(next);
        ++next;
      }
      break;
    default:
      if (!alive.empty()) {
        SequenceId id = alive[random() % alive.size()];
        std::int32_t tokens = 1 + std::int32_t(random() % 70);
        if (cache.reserve(id, tokens).isOk()) {
          cache.commit(id, std::int32_t(random() % (tokens + 1)));
          cache.rollback(id);
        }
      }
    }
    ASSERT_TRUE(cache.checkInvariants().isOk());
  }
  for (SequenceId id : alive)
    cache.removeSequence(id);
  EXPECT_EQ(cache.allocator(0).numFree(), 40);
  EXPECT_EQ(cache.allocator(1).numFree(), 40);
}
