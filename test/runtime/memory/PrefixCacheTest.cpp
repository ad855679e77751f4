// Prefixes across sequences: found by tokens, never by hash alone; blocks that
// nobody holds serve until their room is needed, the oldest first.
#include "runtime/memory/KvCache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace ingot;

namespace {

using Tokens = std::vector<std::int32_t>;

// Each block of a group is one layer of 4 floats.
constexpr std::uint64_t kBlockBytes = 16;

GroupGeometry group(const char *name, std::int32_t window) {
  GroupGeometry geometry;
  geometry.name = name;
  geometry.layers = 1;
  geometry.window = window;
  geometry.layerBytes = kBlockBytes;
  geometry.blockTokens = 4;
  return geometry;
}

KvCache makeCache(std::int32_t full, std::int32_t windowed = 0,
                  std::int32_t window = 6, std::uint64_t mask = ~0ull) {
  KvCacheOptions options;
  options.poisonFreeBlocks = true;
  options.shuffleSeed = 3;
  options.prefixHashMask = mask;
  std::vector<GroupGeometry> groups = {group("full", 0)};
  std::vector<std::int32_t> blocks = {full};
  if (windowed > 0) {
    groups.push_back(group("windowed", window));
    blocks.push_back(windowed);
  }
  auto cache = KvCache::create(std::move(groups), blocks, options);
  EXPECT_TRUE(cache.isOk()) << cache.status().message();
  return std::move(cache).value();
}

Tokens count(std::int32_t from, std::int32_t length) {
  Tokens tokens;
  for (std::int32_t i = 0; i < length; ++i)
    tokens.push_back(from + i);
  return tokens;
}

// A whole life up to its last token: what was found at the start.
std::int32_t compute(KvCache &cache, SequenceId id, const Tokens &tokens,
                     const PrefixScope &scope = {}, std::int32_t step = 3) {
  PrefixMatch match = cache.matchPrefix(scope, tokens);
  auto cached = cache.addSequence(id, scope, tokens);
  EXPECT_TRUE(cached.isOk()) << cached.status().message();
  EXPECT_EQ(*cached, match.tokens);
  while (cache.committedTokens(id) < std::int32_t(tokens.size())) {
    std::int32_t rows =
        std::min(step, std::int32_t(tokens.size()) - cache.committedTokens(id));
    EXPECT_TRUE(cache.reserve(id, rows).isOk());
    cache.commit(id, rows, tokens);
    Status status = cache.checkInvariants();
    EXPECT_TRUE(status.isOk()) << status.message();
  }
  return *cached;
}

} // namespace

// Whole blocks of an equal beginning serve, held or not, and always leave the
// last token to be computed.
TEST(PrefixCacheTest, sharesWholeBlocks) {
  KvCache cache = makeCache(16);
  EXPECT_EQ(compute(cache, 1, count(0, 10)), 0);
  EXPECT_EQ(compute(cache, 2, count(0, 10)), 8); // while 1 is there
  EXPECT_EQ(cache.blockTable(1, 0)[1], cache.blockTable(2, 0)[1]);
  cache.removeSequence(1);
  cache.removeSequence(2);
  EXPECT_EQ(cache.allocator(0).numHeld(), 0);
  EXPECT_EQ(cache.allocator(0).numReusable(), 2);
  EXPECT_EQ(compute(cache, 3, count(0, 8)), 4); // 8 tokens: the last must run
  EXPECT_EQ(compute(cache, 4, count(0, 9)), 8);
  Tokens other = count(0, 9);
  other[5] = 99;
  EXPECT_EQ(compute(cache, 5, other), 4);
  other[0] = 98;
  EXPECT_EQ(compute(cache, 6, other), 0);
}

// Equal tokens in another place are another prefix.
TEST(PrefixCacheTest, theWholeBeginningCounts) {
  KvCache cache = makeCache(16);
  Tokens a = count(0, 4), b = count(100, 4), tail = count(50, 5);
  a.insert(a.end(), tail.begin(), tail.end());
  b.insert(b.end(), tail.begin(), tail.end());
  EXPECT_EQ(compute(cache, 1, a), 0);
  EXPECT_EQ(compute(cache, 2, b), 0);
  EXPECT_EQ(compute(cache, 3, tail), 0);
  EXPECT_EQ(compute(cache, 4, b), 8);
}

// Nothing crosses from one salt or variant to another, nor to and from a
// sequence without a scope.
TEST(PrefixCacheTest, scopes) {
  KvCache cache = makeCache(64);
  Tokens tokens = count(0, 9);
  EXPECT_EQ(compute(cache, 1, tokens, {"a", ""}), 0);
  EXPECT_EQ(compute(cache, 2, tokens, {"b", ""}), 0);
  EXPECT_EQ(compute(cache, 3, tokens, {"", "a"}), 0);
  EXPECT_EQ(compute(cache, 4, tokens, {"a", "x"}), 0);
  EXPECT_EQ(compute(cache, 5, tokens), 0);
  ASSERT_TRUE(cache.addSequence(6).isOk());
  EXPECT_EQ(cache.committedTokens(6), 0);
  ASSERT_TRUE(cache.reserve(6, 9).isOk());
  cache.commit(6, 9, count(200, 9));
  EXPECT_EQ(compute(cache, 7, count(200, 9)), 0);
  EXPECT_EQ(compute(cache, 8, tokens, {"a", "x"}), 8);
  EXPECT_EQ(compute(cache, 9, tokens, {"a", ""}), 8);
}

// With a hash that gives every prefix the same value, what is shared is the
// same as with a good one.
TEST(PrefixCacheTest, collisionsShareNothing) {
  for (std::uint64_t mask :
       {std::uint64_t(0), std::uint64_t(3), ~std::uint64_t(0)}) {
    KvCache cache = makeCache(400, 0, 0, mask);
    std::mt19937 random(7);
    std::map<std::pair<std::string, Tokens>, int> seen; // prefixes of blocks
    for (SequenceId id = 1; id < 120; ++id) {
      Tokens tokens;
      for (int i = 0; i < 13; ++i)
        tokens.push_back(std::int32_t(random() % 2));
      PrefixScope scope{random() % 2 ? "a" : "b", ""};
      std::int32_t expected = 0;
      for (std::int32_t length = 4; length < 13; length += 4)
        if (seen.count({scope.salt, {tokens.begin(), tokens.begin() + length}}))
          expected = length;
      EXPECT_EQ(compute(cache, id, tokens, scope), expected);
      for (std::int32_t length = 4; length <= 13; length += 4)
        ++seen[{scope.salt, {tokens.begin(), tokens.begin() + length}}];
      cache.removeSequence(id);
    }
  }
}

// What is not committed is not published.
TEST(PrefixCacheTest, onlyFinalBlocksServe) {
  KvCache cache = makeCache(8);
  Tokens tokens = count(0, 9);
  ASSERT_TRUE(cache.addSequence(1, {}, tokens).isOk());
  ASSERT_TRUE(cache.reserve(1, 9).isOk());
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 0);
  cache.commit(1, 3, tokens);
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 0);
  cache.commit(1, 1, tokens);
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 4);
  cache.rollback(1);
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 4);
}

// The oldest unused blocks go first, the end of a prefix before its beginning;
// reclaimed blocks are poisoned before they are given out.
TEST(PrefixCacheTest, leastRecentlyUsedIsReclaimed) {
  KvCache cache = makeCache(6);
  Tokens a = count(0, 9), b = count(100, 9);
  compute(cache, 1, a);
  cache.removeSequence(1);
  compute(cache, 2, b);
  cache.removeSequence(2);
  compute(cache, 3, a); // used again: younger than b
  cache.removeSequence(3);
  EXPECT_EQ(cache.allocator(0).numFree(), 2);
  compute(cache, 4, count(200, 11)); // takes three: the end of b goes
  EXPECT_EQ(cache.matchPrefix({}, b).tokens, 4);
  EXPECT_EQ(cache.matchPrefix({}, a).tokens, 8);
  ASSERT_TRUE(cache.reserve(4, 5).isOk()); // one more: b is gone
  float value;
  BlockId fresh = cache.blockTable(4, 0)[3];
  std::memcpy(&value, cache.base(0) + std::uint64_t(fresh) * kBlockBytes, 4);
  EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(cache.matchPrefix({}, b).tokens, 0);
  EXPECT_EQ(cache.matchPrefix({}, a).tokens, 8);
}

// A match tells how many of its blocks nobody holds.
TEST(PrefixCacheTest, matchCountsReusableBlocks) {
  KvCache cache = makeCache(8);
  Tokens tokens = count(0, 9);
  compute(cache, 1, tokens);
  EXPECT_EQ(cache.matchPrefix({}, tokens).reusable[0], 0);
  cache.removeSequence(1);
  EXPECT_EQ(cache.matchPrefix({}, tokens).reusable[0], 2);
}

// A windowed group needs the blocks that the next row sees and no others; one
// that slid out and was reclaimed shortens or ends the match.
TEST(PrefixCacheTest, windows) {
  // Window 6, blocks of 4: a row at 16 sees positions 11 to 15, two blocks.
  KvCache cache = makeCache(32, 5);
  Tokens tokens = count(0, 17);
  compute(cache, 1, tokens);
  EXPECT_EQ(cache.blockTable(1, 1)[1], -1);
  // The blocks that slid out are still there.
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 16);
  EXPECT_EQ(cache.matchPrefix({}, count(0, 9)).tokens, 8);
  cache.removeSequence(1);
  ASSERT_EQ(cache.addSequence(2, {}, tokens).value(), 16);
  EXPECT_EQ(cache.blockTable(2, 1)[0], -1);
  EXPECT_EQ(cache.blockTable(2, 1)[1], -1);
  EXPECT_GE(cache.blockTable(2, 1)[2], 0);
  EXPECT_EQ(cache.blockTable(2, 0).size(), 4u);
  EXPECT_GE(cache.blockTable(2, 0)[0], 0);
  // Another sequence needs the two windowed blocks that slid out.
  compute(cache, 3, count(500, 8), {}, 2);
  EXPECT_EQ(cache.allocator(1).numFree(), 0);
  EXPECT_EQ(cache.matchPrefix({}, count(0, 9)).tokens, 0);
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 16);
}

// All groups windowed, all early blocks reclaimed: the late ones are found
// through nodes without blocks, and when they go the nodes go too.
TEST(PrefixCacheTest, nodesLiveAsLongAsTheirBlocks) {
  std::vector<GroupGeometry> groups = {group("windowed", 6)};
  std::vector<std::int32_t> blocks = {4};
  KvCache cache = std::move(KvCache::create(groups, blocks, {}).value());
  Tokens tokens = count(0, 41);
  compute(cache, 1, tokens, {}, 1);
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 40);
  EXPECT_EQ(cache.matchPrefix({}, count(0, 9)).tokens, 0);
  EXPECT_EQ(cache.numPrefixNodes(), 11u);
  cache.removeSequence(1);
  compute(cache, 2, count(900, 30), {}, 1);
  EXPECT_EQ(cache.matchPrefix({}, tokens).tokens, 0);
  EXPECT_LE(cache.numPrefixNodes(), 9u);
}

// Random lives over a small alphabet and two groups: every block of a table
// holds the tokens of its place, whoever wrote it.
TEST(PrefixCacheTest, everyBlockHoldsItsTokens) {
  for (std::uint64_t mask : {std::uint64_t(1), ~std::uint64_t(0)})
    for (std::int32_t window : {5, 8, 100}) {
      KvCache cache = makeCache(24, 20, window, mask);
      std::mt19937 random{unsigned(window)};
      struct Life {
        Tokens tokens;
        std::string salt;
      };
      std::map<SequenceId, Life> alive;
      SequenceId next = 1;
      // A block's bytes name its scope, place and tokens.
      auto stamp = [&](const Life &life, std::size_t block) {
        std::string text = life.salt;
        for (std::size_t i = 0; i < (block + 1) * 4; ++i)
          text += char('0' + life.tokens[i]);
        return std::hash<std::string>()(text);
      };
      for (int round = 0; round < 4000; ++round) {
        if (random() % 3 == 0 && alive.size() < 10) {
          Life life;
          life.salt = random() % 3 ? "a" : "b";
          for (unsigned i = 0; i < 1 + random() % 30; ++i)
            life.tokens.push_back(std::int32_t(random() % 8 == 0));
          ASSERT_TRUE(
              cache.addSequence(next, {life.salt, ""}, life.tokens).isOk());
          alive[next++] = std::move(life);
        } else if (!alive.empty()) {
          auto at =
              std::next(alive.begin(), std::ptrdiff_t(random() % alive.size()));
          auto &[id, life] = *at;
          std::int32_t committed = cache.committedTokens(id);
          std::int32_t left = std::int32_t(life.tokens.size()) - committed;
          unsigned what = random() % 8;
          if (left == 0 || what == 0) {
            cache.removeSequence(id);
            alive.erase(at);
          } else if (what == 1) {
            if (alive.size() < 10 && cache.forkSequence(id, next).isOk()) {
              Life copy = life;
              copy.tokens.resize(std::size_t(committed));
              for (int i = 0; i < 6; ++i)
                copy.tokens.push_back(std::int32_t(random() % 2));
              alive[next++] = std::move(copy);
            }
          } else {
            std::int32_t rows = 1 + std::int32_t(random() % unsigned(left));
            if (cache.reserve(id, rows).isOk()) {
              // Only some of what was reserved stays.
              std::int32_t kept = std::int32_t(random() % unsigned(rows + 1));
              for (std::size_t g = 0; g < 2; ++g)
                for (std::int32_t b = committed / 4;
                     b < std::int32_t(cache.blockTable(id, g).size()); ++b) {
                  std::uint8_t *bytes =
                      cache.base(g) +
                      std::uint64_t(cache.blockTable(id, g)[b]) * kBlockBytes;
                  std::size_t value = 0;
                  if ((b + 1) * 4 <= committed + kept)
                    value = stamp(life, std::size_t(b));
                  std::memcpy(bytes, &value, sizeof value);
                }
              cache.commit(id, kept, life.tokens);
              cache.rollback(id);
            }
          }
        }
        Status status = cache.checkInvariants();
        ASSERT_TRUE(status.isOk()) << status.message();
        for (auto &[id, life] : alive)
          for (std::size_t g = 0; g < 2; ++g) {
            auto table = cache.blockTable(id, g);
            for (std::int32_t b = 0; b < cache.committedTokens(id) / 4; ++b) {
              if (table[b] < 0)
                continue;
              std::size_t value;
              std::memcpy(&value,
                          cache.base(g) + std::uint64_t(table[b]) * kBlockBytes,
                          sizeof value);
              ASSERT_EQ(value, stamp(life, std::size_t(b)))
                  << "sequence " << id << " block " << b;
            }
          }
      }
      for (auto &[id, life] : alive)
        cache.removeSequence(id);
      EXPECT_EQ(cache.allocator(0).numHeld(), 0);
      EXPECT_EQ(cache.allocator(1).numHeld(), 0);
    }
}

// Groups of different block lengths have no common place to share at.
TEST(PrefixCacheTest, oneBlockLength) {
  std::vector<GroupGeometry> groups = {group("a", 0), group("b", 0)};
  groups[1].blockTokens = 8;
  std::vector<std::int32_t> blocks = {1, 1};
  EXPECT_EQ(KvCache::create(groups, blocks).status().code(),
            StatusCode::Unsupported);
}
