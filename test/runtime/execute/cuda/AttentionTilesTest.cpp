// How a step's attention is cut: every row is in exactly one tile, parts cover what
// the row sees, slots do not overlap, and what has no slots goes another way.
#include "runtime/execute/cuda/AttentionTiles.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace ingot::cuda {
namespace {

struct Cut {
  AttentionTiles counts;
  std::vector<abi::AttentionTile> split, wide;
  std::vector<abi::TokenSlots> slots;
};

Cut cut(const AttentionShape &shape, const std::vector<StepSequence> &sequences,
        std::int32_t maxSlots) {
  std::int32_t rows = 0;
  std::vector<std::int32_t> offsets;
  for (const StepSequence &sequence : sequences) {
    offsets.push_back(100 * std::int32_t(offsets.size()));
    rows += sequence.numRows;
  }
  Cut made;
  made.split.resize(std::size_t(rows));
  made.wide.resize(std::size_t(rows));
  made.slots.assign(std::size_t(rows), {-7, -7});
  made.counts = cutAttention(shape, sequences, offsets, maxSlots, made.split,
                             made.wide, made.slots);
  made.split.resize(std::size_t(made.counts.numSplitTiles));
  made.wide.resize(std::size_t(made.counts.numWideTiles));
  return made;
}

void check(const AttentionShape &shape,
           const std::vector<StepSequence> &sequences, std::int32_t maxSlots) {
  Cut made = cut(shape, sequences, maxSlots);
  std::vector<int> covered(made.slots.size());
  std::set<std::int32_t> used;
  auto position = [&](std::int32_t row) {
    for (std::size_t s = 0; s < sequences.size(); ++s)
      if (row >= sequences[s].firstRow &&
          row < sequences[s].firstRow + sequences[s].numRows)
        return std::pair(sequences[s].firstPosition + row -
                             sequences[s].firstRow,
                         100 * std::int32_t(s));
    return std::pair(-1, -1);
  };
  for (bool isSplit : {true, false})
    for (const abi::AttentionTile &tile : isSplit ? made.split : made.wide) {
      ASSERT_GT(tile.numQueries, 0);
      ASSERT_LE(tile.numQueries,
                isSplit ? abi::splitQueries(shape.heads, shape.kvHeads)
                        : abi::wideQueries(shape.heads, shape.kvHeads,
                                           shape.headDim));
      for (std::int32_t q = 0; q < tile.numQueries; ++q) {
        std::int32_t row = tile.firstRow + q;
        ++covered[std::size_t(row)];
        auto [at, offset] = position(row);
        EXPECT_EQ(at, tile.firstPosition + q);
        EXPECT_EQ(offset, tile.blockTableOffset);
        abi::TokenSlots slots = made.slots[std::size_t(row)];
        if (!isSplit) {
          EXPECT_EQ(slots.numSplits, 0);
          continue;
        }
        EXPECT_EQ(slots.numSplits, tile.numSplits);
        EXPECT_EQ(slots.firstSlot, tile.firstSlot + q * tile.numSplits);
        // The parts reach from the first position that is seen to the last.
        std::int32_t first =
            shape.window > 0 ? std::max(0, at - shape.window + 1) : 0;
        EXPECT_LE(tile.firstSplit * abi::kSegmentTokens, first);
        EXPECT_GT((tile.firstSplit + tile.numSplits) * abi::kSegmentTokens, at);
        for (std::int32_t i = 0; i < slots.numSplits; ++i) {
          EXPECT_TRUE(used.insert(slots.firstSlot + i).second);
          EXPECT_LT(slots.firstSlot + i, maxSlots);
        }
        EXPECT_LE(tile.numSplits, made.counts.maxSplits);
      }
    }
  for (int times : covered)
    EXPECT_EQ(times, 1);
}

TEST(AttentionTilesTest, aDecodingStepIsSplit) {
  Cut made = cut({0, 8, 2, 64, 0}, {{1, 0, 1, 255}, {2, 1, 1, 256}}, 8);
  EXPECT_EQ(made.counts.numSplitTiles, 2);
  EXPECT_EQ(made.counts.numWideTiles, 0);
  EXPECT_EQ(made.counts.maxSplits, 2);
  EXPECT_EQ(made.slots[0].numSplits, 1);
  EXPECT_EQ(made.slots[1].firstSlot, 1);
  EXPECT_EQ(made.slots[1].numSplits, 2);
}

TEST(AttentionTilesTest, aPromptIsWide) {
  Cut made = cut({0, 8, 2, 64, 0}, {{1, 0, 40, 0}}, 8);
  EXPECT_EQ(made.counts.numSplitTiles, 0);
  // 16 queries of 4 heads are the 64 rows of a tile.
  EXPECT_EQ(made.counts.numWideTiles, 3);
}

TEST(AttentionTilesTest, withoutSlotsATileIsWide) {
  Cut made = cut({0, 8, 2, 64, 0}, {{1, 0, 1, 300}, {2, 1, 1, 300}}, 3);
  EXPECT_EQ(made.counts.numSplitTiles, 1);
  EXPECT_EQ(made.counts.numWideTiles, 1);
  EXPECT_EQ(made.slots[1].numSplits, 0);
}

TEST(AttentionTilesTest, anyStep) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    AttentionShape shape;
    shape.kvHeads = 1 + int(random() % 4);
    shape.heads = shape.kvHeads * (1 + int(random() % 20));
    shape.headDim = 8 * (1 + int(random() % 32));
    shape.window = random() % 2 ? 0 : 1 + int(random() % 600);
    std::vector<StepSequence> sequences;
    std::int32_t row = 0;
    for (unsigned s = 0; s < 1 + random() % 5; ++s) {
      std::int32_t rows = 1 + int(random() % (random() % 2 ? 4 : 100));
      sequences.push_back({s, row, rows, std::int32_t(random() % 1000), 0});
      row += rows;
    }
    SCOPED_TRACE(round);
    check(shape, sequences, std::int32_t(random() % 40));
  }
}

} // namespace
} // namespace ingot::cuda
