// linear for more tokens: a block multiplies 32 or 128 rows with 64 tokens, a unit of
// K at a time from a ring of stages that all warps share; each warp goes over all of
// K for its own rows and tokens.
#include "compiler/kernels/cuda/Linear.h"

using namespace ingot;
using namespace ingot::device;

constexpr int32_t kThreads = abi::kLinearWarps * 32;
constexpr bool kIsPrompt = kTile == abi::LinearTile::P64;
constexpr int32_t kWarpColumns = kIsPrompt ? 1 : 2; // warps beside one another
constexpr int32_t kTiles =
    kBlockTiles / (abi::kLinearWarps / kWarpColumns); // of a warp
constexpr int32_t kColumns = kTileTokens / 8 / kWarpColumns;

INGOT_DEVICE void multiplyWide(const abi::LinearParams &params,
                               const LinearBlock &block) {
  SharedMemory memory;
  const Stages stages = takeStages(memory);
  const int32_t firstTile = warpOf() / kWarpColumns * kTiles;
  const int32_t firstColumn = warpOf() % kWarpColumns * kColumns;

  auto issue = [&](int32_t unit) {
    if (unit < block.units)
      copyUnit(params, block, stages, unit % kStages, 0, unit,
               (int32_t)threadIdx.x, kThreads);
    commitCopies();
  };
  for (int32_t unit = 0; unit < kStages - 1; ++unit)
    issue(unit);

  float total[kColumns][kTiles][4] = {};
  ColumnSums<kTiles> part[kColumns];
  INGOT_UNROLL
  for (int32_t n = 0; n < kColumns; ++n)
    part[n].clear();
  INGOT_NO_UNROLL
  for (int32_t unit = 0; unit < block.units; ++unit) {
    waitCopies<kStages - 2>();
    __syncthreads(); // the copies of all; and all have left the stage before
    issue(unit + kStages - 1);
    UnitWeights<kTiles> weights;
    loadUnit(weights, stages, unit % kStages, 0, firstTile);
    const bool isLast =
        unit % kGroupUnits == kGroupUnits - 1 || unit == block.units - 1;
    INGOT_UNROLL
    for (int32_t n = 0; n < kColumns; ++n) {
      float u[kTiles][4];
      multiplyColumn(u, part[n], weights, stages, unit % kStages, 0,
                     firstColumn + n);
      if (!isLast)
        continue;
      finishColumn(u, part[n], weights);
      INGOT_UNROLL
      for (int32_t i = 0; i < 4 * kTiles; ++i)
        total[n][i / 4][i % 4] = total[n][i / 4][i % 4] + u[i / 4][i % 4];
    }
  }
  INGOT_UNROLL
  for (int32_t r = 0; r < kTiles; ++r) {
    INGOT_UNROLL
    for (int32_t n = 0; n < kColumns; ++n)
      storeBlock(params, block.firstTile + firstTile + r,
                 block.firstToken + (firstColumn + n) * 8, laneOf(),
                 total[n][r]);
  }
}

INGOT_LINEAR(multiplyWide)
