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
// Groups below a unit need sums of their own: there a tile of rows goes alone.
constexpr int32_t kTogether =
    kGroup > 0 && kGroup < abi::kCudaUnit ? 1 : kTiles;

INGOT_KERNEL(INGOT_NAME, abi::LinearParams, kThreads) {
  SharedMemory memory;
  const Stages stages = takeStages(memory);
  const LinearBlock block = blockOfLinear(params);
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

  Sums<kTiles, kColumns> total;
  Sums<kTogether, kColumns> part, u;
  float rowSums[kColumns][4] = {};
  total.clear();
  part.clear();
  for (int32_t unit = 0; unit < block.units; ++unit) {
    waitCopies<kStages - 2>();
    __syncthreads(); // the copies of all; and all have left the stage before
    issue(unit + kStages - 1);
    const int32_t stage = unit % kStages;
    INGOT_UNROLL
    for (int32_t r = 0; r < kTiles; r += kTogether) {
      multiplyUnit(u, part, rowSums, stages, stage, 0, firstTile + r,
                   firstColumn);
      if (unit % kGroupUnits != kGroupUnits - 1 && unit != block.units - 1)
        continue;
      if constexpr (kGroup >= abi::kCudaUnit)
        scaleParts<true>(u, part, rowSums, stages,
                         stages.factorOffset(stage, 0, firstTile + r));
      else if constexpr (kGroup == 0)
        u = part;
      INGOT_UNROLL
      for (int32_t t = 0; t < kTogether; ++t)
        INGOT_UNROLL
      for (int32_t n = 0; n < kColumns; ++n)
        INGOT_UNROLL
      for (int32_t i = 0; i < 4; ++i)
        total.c[r + t][n][i] = total.c[r + t][n][i] + u.c[t][n][i];
      part.clear();
      INGOT_UNROLL
      for (int32_t n = 0; n < kColumns; ++n)
        INGOT_UNROLL
      for (int32_t i = 0; i < 4; ++i)
        rowSums[n][i] = 0.0f;
    }
  }
  waitCopies<0>();
  INGOT_UNROLL
  for (int32_t r = 0; r < kTiles; ++r)
    INGOT_UNROLL
  for (int32_t n = 0; n < kColumns; ++n)
    storeBlock(params, block.firstTile + firstTile + r,
               block.firstToken + (firstColumn + n) * 8, laneOf(),
               total.c[r][n]);
}
