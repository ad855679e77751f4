// How a step's attention is cut into blocks (CudaAbi.h): tiles of queries of one
// sequence, the slots of their partial results, and where each token's merge finds
// them. Which kind a tile is never changes a bit of the result.
#pragma once

#include "runtime/plan/CudaAbi.h"
#include "runtime/schedule/StepPlan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot::cuda {

// What of an attention launch decides its tiles: launches that agree share them.
struct AttentionShape {
  std::int32_t group = 0; // of the cache, whose block tables are read
  std::int32_t heads = 0;
  std::int32_t kvHeads = 0;
  std::int32_t headDim = 0;
  std::int32_t window = 0;
  bool operator==(const AttentionShape &) const = default;
};

struct AttentionTiles {
  std::int32_t numSplitTiles = 0;
  std::int32_t numWideTiles = 0;
  std::int32_t maxSplits = 0; // of one split tile
};

// Sequences of at most this many rows are split where slots are left.
inline constexpr std::int32_t kMostSplitRows = 16;

// Fills, for the sequences of a step, `splitTiles` and `wideTiles` (as many as the
// step has rows are enough), and `tokenSlots` of each row. `blockTableOffset` has an
// entry for each sequence. Partial results take at most `maxSlots` slots.
AttentionTiles cutAttention(const AttentionShape &shape,
                            std::span<const StepSequence> sequences,
                            std::span<const std::int32_t> blockTableOffset,
                            std::int32_t maxSlots,
                            std::span<abi::AttentionTile> splitTiles,
                            std::span<abi::AttentionTile> wideTiles,
                            std::span<abi::TokenSlots> tokenSlots);

} // namespace ingot::cuda
