#include "runtime/execute/cuda/AttentionTiles.h"

#include <algorithm>

namespace ingot::cuda {

AttentionTiles cutAttention(const AttentionShape &shape,
                            std::span<const StepSequence> sequences,
                            std::span<const std::int32_t> blockTableOffset,
                            std::int32_t maxSlots,
                            std::span<abi::AttentionTile> splitTiles,
                            std::span<abi::AttentionTile> wideTiles,
                            std::span<abi::TokenSlots> tokenSlots) {
  AttentionTiles made;
  std::int32_t nextSlot = 0;
  const std::int32_t splitQueries =
      abi::splitQueries(shape.heads, shape.kvHeads);
  const std::int32_t wideQueries =
      abi::wideQueries(shape.heads, shape.kvHeads, shape.headDim);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const StepSequence &sequence = sequences[s];
    bool isSplit = sequence.numRows <= kMostSplitRows;
    for (std::int32_t row = 0; row < sequence.numRows;) {
      abi::AttentionTile tile{};
      tile.firstRow = sequence.firstRow + row;
      tile.firstPosition = sequence.firstPosition + row;
      tile.blockTableOffset = blockTableOffset[s];
      std::int32_t left = sequence.numRows - row;
      tile.numQueries = std::min(left, splitQueries);
      tile.firstSplit = abi::firstSplitOf(tile.firstPosition, shape.window);
      tile.numSplits =
          abi::numSplitsOf(tile.firstPosition, tile.numQueries, shape.window);
      std::int64_t slots = std::int64_t(tile.numQueries) * tile.numSplits;
      if (isSplit && nextSlot + slots <= maxSlots) {
        tile.firstSlot = nextSlot;
        nextSlot += std::int32_t(slots);
        made.maxSplits = std::max(made.maxSplits, tile.numSplits);
        for (std::int32_t q = 0; q < tile.numQueries; ++q)
          tokenSlots[std::size_t(tile.firstRow + q)] = {
              tile.firstSlot + q * tile.numSplits, tile.numSplits};
        splitTiles[std::size_t(made.numSplitTiles++)] = tile;
      } else {
        tile.numQueries = std::min(left, wideQueries);
        tile.firstSplit = tile.numSplits = 0;
        for (std::int32_t q = 0; q < tile.numQueries; ++q)
          tokenSlots[std::size_t(tile.firstRow + q)] = {0, 0};
        wideTiles[std::size_t(made.numWideTiles++)] = tile;
      }
      row += tile.numQueries;
    }
  }
  return made;
}

} // namespace ingot::cuda
