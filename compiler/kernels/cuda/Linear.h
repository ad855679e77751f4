// What the tiles of `linear` share. The law, whatever the tile:
//
//   unit g of K: max(64, group) elements
//     part = an mma for each 16 elements (of their halves, then of what these leave,
//            where activations have two parts), ascending, from 0
//     u    = part                               float encodings, a scale for a row
//          = part * scale                       groups of 64 and more
//          = fma(part, scale, u), from 0        each smaller group, ascending
//     u    = fma(sum of x over the group, min, u)   encodings with minima
//   total = total + u, ascending, from 0
//   y     = total (* the row's scale) * the token's scale, + bias, + residual
//
// Weights are the A operand (16 rows x 16 of K), tokens the columns of B, so that a
// token's sums never meet those of another.
#pragma once

#include "compiler/kernels/cuda/Weights.h"

namespace ingot::device {

constexpr abi::LinearTile kTile = abi::LinearTile::INGOT_TILE;
constexpr int32_t kParts = INGOT_PARTS; // of an activation
constexpr int32_t kStages =
    abi::linearStages(kCode, kGroup, kMinimum, kTile, kParts);
constexpr int32_t kTileTokens = abi::linearTokens(kTile);
constexpr int32_t kBlockTiles = abi::linearRows(kTile, kGroup) / abi::kMmaRows;
constexpr int32_t kUnitGroups = abi::linearUnitGroups(kGroup);
constexpr int32_t kStageUnits = abi::linearStageUnits(kTile, kParts);
// Units that make one group, where a group is more than one.
constexpr int32_t kGroupUnits =
    kGroup > abi::kCudaUnit ? kGroup / abi::kCudaUnit : 1;
// Elements of a scale inside a unit, and mma steps.
constexpr int32_t kGroupSteps =
    kGroup > 0 && kGroup < abi::kCudaUnit ? kGroup / 16 : kSteps;

// The stages of a block in shared memory.
struct Stages {
  uint8_t *codes;   // [stage][unit][tile][kUnitBytes]
  uint16_t *scales; // [stage][unit][tile][kUnitGroups][16]
  uint16_t *mins;
  uint16_t *rows; // [stage][unit][part][token][kStageRowHalves]

  INGOT_DEVICE_MEMBER uint8_t *codesOf(int32_t stage, int32_t unit,
                                       int32_t tile) const {
    return codes +
           ((stage * kStageUnits + unit) * kBlockTiles + tile) * kUnitBytes;
  }
  INGOT_DEVICE_MEMBER int32_t factorOffset(int32_t stage, int32_t unit,
                                           int32_t tile) const {
    return ((stage * kStageUnits + unit) * kBlockTiles + tile) * kUnitGroups *
           abi::kMmaRows;
  }
  INGOT_DEVICE_MEMBER uint16_t *rowOf(int32_t stage, int32_t unit,
                                      int32_t token, int32_t part = 0) const {
    return rows +
           (((stage * kStageUnits + unit) * kParts + part) * kTileTokens +
            token) *
               abi::kStageRowHalves;
  }
};
INGOT_DEVICE Stages takeStages(SharedMemory &memory) {
  constexpr int32_t units = kStages * kStageUnits;
  Stages stages;
  stages.codes = memory.take<uint8_t>(units * kBlockTiles * kUnitBytes);
  stages.scales = nullptr;
  stages.mins = nullptr;
  if constexpr (kUnitGroups > 0)
    stages.scales = memory.take<uint16_t>(units * kBlockTiles * kUnitGroups *
                                          abi::kMmaRows);
  if constexpr (kUnitGroups > 0 && kMinimum)
    stages.mins = memory.take<uint16_t>(units * kBlockTiles * kUnitGroups *
                                        abi::kMmaRows);
  stages.rows = memory.take<uint16_t>(units * kParts * kTileTokens *
                                      abi::kStageRowHalves);
  return stages;
}

// Where a block's part of the problem begins, and how it ends.
struct LinearBlock {
  int32_t firstTile, numTiles; // of rows; numTiles of the weights
  int32_t firstToken;
  int32_t units;
};
INGOT_DEVICE LinearBlock blockOfLinear(const abi::LinearParams &params) {
  return {(int32_t)blockIdx.x * kBlockTiles, divideUp(params.n, abi::kMmaRows),
          (int32_t)blockIdx.y * kTileTokens,
          (int32_t)(abi::cudaPaddedK(params.k) / abi::kCudaUnit)};
}

// Copies are in few registers where sums need them all.
constexpr int32_t kCopiesAtOnce = kTile == abi::LinearTile::P64 ? 1 : 8;

// Begins the copies of unit `unit` to place `slot` of a stage, by the `count`
// threads of which this is number `thread`. A unit, tile or token that does not exist
// becomes zeros.
INGOT_DEVICE void copyUnit(const abi::LinearParams &params,
                           const LinearBlock &block, const Stages &stages,
                           int32_t stage, int32_t slot, int32_t unit,
                           int32_t thread, int32_t count) {
  const bool exists = unit < block.units;
  INGOT_UNROLL_COPIES
  for (int32_t i = thread; i < kBlockTiles * kUnitBytes / 16; i += count) {
    const int32_t tile = i / (kUnitBytes / 16);
    const int32_t at = i % (kUnitBytes / 16) * 16;
    const bool isThere = exists && block.firstTile + tile < block.numTiles;
    const uint8_t *from =
        (const uint8_t *)params.weights.codes +
        (isThere ? ((int64_t)(block.firstTile + tile) * block.units + unit) *
                           kUnitBytes +
                       at
                 : 0);
    copyAsync16(stages.codesOf(stage, slot, tile) + at, from, isThere ? 16 : 0);
  }
  if constexpr (kUnitGroups > 0) {
    const int32_t groups = (int32_t)abi::cudaGroups(params.k, kGroup);
    const int32_t firstGroup = unit * abi::kCudaUnit / kGroup;
    for (int32_t i = thread; i < kBlockTiles * kUnitGroups * 2; i += count) {
      const int32_t tile = i / (kUnitGroups * 2);
      const int32_t group = firstGroup + i / 2 % kUnitGroups;
      // With the last unit of a group, though that may lie beyond K.
      const bool isThere =
          group < groups && block.firstTile + tile < block.numTiles &&
          (unit % kGroupUnits == kGroupUnits - 1 || unit == block.units - 1);
      const int64_t from =
          isThere ? ((int64_t)(block.firstTile + tile) * groups + group) * 16 +
                        i % 2 * 8
                  : 0;
      const int32_t to =
          stages.factorOffset(stage, slot, tile) + i % (kUnitGroups * 2) * 8;
      copyAsync16(stages.scales + to, params.weights.scales + from,
                  isThere ? 16 : 0);
      if constexpr (kMinimum)
        copyAsync16(stages.mins + to, params.weights.mins + from,
                    isThere ? 16 : 0);
    }
  }
  INGOT_UNROLL_COPIES
  for (int32_t i = thread; i < kParts * kTileTokens * 8; i += count) {
    // Of one part, plainly: what ptxas is given decides what it spills.
    const int32_t part = kParts == 1 ? 0 : i / (kTileTokens * 8);
    const int32_t inTile = kParts == 1 ? i / 8 : i / 8 % kTileTokens;
    const int32_t token = block.firstToken + inTile;
    const bool isThere = exists && token < params.numTokens;
    const uint8_t *from =
        params.quantized.data +
        (isThere ? token * params.quantized.rowBytes +
                       (part ? params.quantized.sumsOffset : 0) +
                       (unit * abi::kCudaUnit + i % 8 * 8) * 2
                 : 0);
    copyAsync16(stages.rowOf(stage, slot, inTile, part) + i % 8 * 8, from,
                isThere ? 16 : 0);
  }
}

// A unit of the weights of `tiles` tiles as a warp multiplies with it.
template <int32_t tiles> struct UnitWeights {
  uint32_t a[tiles][kSteps][4]; // A operands
  // Of the lane's two rows, for each group that the unit touches.
  float scale[tiles][kUnitGroups ? kUnitGroups : 1][2];
  float least[tiles][kUnitGroups ? kUnitGroups : 1][2];
};

template <int32_t tiles>
INGOT_DEVICE void loadUnit(UnitWeights<tiles> &unit, const Stages &stages,
                           int32_t stage, int32_t slot, int32_t firstTile) {
  INGOT_UNROLL
  for (int32_t r = 0; r < tiles; ++r) {
    const uint8_t *codes =
        stages.codesOf(stage, slot, firstTile + r) + laneOf() * 16;
    INGOT_UNROLL
    for (int32_t load = 0; load < kSteps / kStepsOfLoad; ++load) {
      const uint4 words = loadWords4(codes + load * 512);
      INGOT_UNROLL
      for (int32_t step = 0; step < kStepsOfLoad; ++step)
        weightFragment(unit.a[r][load * kStepsOfLoad + step], words, step);
    }
    if constexpr (kUnitGroups > 0) {
      const int32_t factor =
          stages.factorOffset(stage, slot, firstTile + r) + laneOf() / 4;
      INGOT_UNROLL
      for (int32_t i = 0; i < 2 * kUnitGroups; ++i) {
        const int32_t at = factor + i / 2 * abi::kMmaRows + i % 2 * 8;
        unit.scale[r][i / 2][i % 2] = fromHalf(stages.scales[at]);
        if constexpr (kMinimum)
          unit.least[r][i / 2][i % 2] = fromHalf(stages.mins[at]);
      }
    }
  }
}

// Sums of `tiles` blocks of 16 rows x 8 tokens, and of the tokens themselves: only
// encodings with minima have the last.
template <int32_t tiles> struct ColumnSums {
  float c[tiles][4];
  float tokens[4];
  INGOT_DEVICE_MEMBER void clear() {
    INGOT_UNROLL
    for (int32_t i = 0; i < 4 * tiles; ++i)
      c[i / 4][i % 4] = 0.0f;
    INGOT_UNROLL
    for (int32_t i = 0; i < 4; ++i)
      tokens[i] = 0.0f;
  }
};

// u = part * scale, or fma(part, scale, u); then the minima: for group `group` of the
// unit.
template <bool first, int32_t tiles>
INGOT_DEVICE void scalePart(float (&u)[tiles][4], const ColumnSums<tiles> &part,
                            const UnitWeights<tiles> &unit, int32_t group) {
  INGOT_UNROLL
  for (int32_t r = 0; r < tiles; ++r) {
    INGOT_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const float scale = unit.scale[r][group][i / 2];
      u[r][i] = first ? part.c[r][i] * scale
                      : __builtin_fmaf(part.c[r][i], scale, u[r][i]);
      if constexpr (kMinimum)
        u[r][i] = __builtin_fmaf(part.tokens[i % 2],
                                 unit.least[r][group][i / 2], u[r][i]);
    }
  }
}

// A unit of K times eight tokens, column `column` of the stage. Adds to `part` where a
// group is a unit or more (finishColumn ends it), else makes `u` of the unit's groups.
template <int32_t tiles>
INGOT_DEVICE void multiplyColumn(float (&u)[tiles][4], ColumnSums<tiles> &part,
                                 const UnitWeights<tiles> &unit,
                                 const Stages &stages, int32_t stage,
                                 int32_t slot, int32_t column) {
  constexpr bool isSmall = kGroup > 0 && kGroup < abi::kCudaUnit;
  const int32_t lane = laneOf();
  const uint16_t *rows =
      stages.rowOf(stage, slot, column * 8 + lane % 8) + lane / 8 * 8;
  uint32_t b[kParts][4];
  INGOT_UNROLL
  for (int32_t step = 0; step < kSteps; ++step) {
    if (step % 2 == 0) {
      INGOT_UNROLL
      for (int32_t i = 0; i < kParts; ++i)
        loadMatrices4(b[i], rows + step * 16 +
                                i * kTileTokens * abi::kStageRowHalves);
    }
    if (isSmall && step % kGroupSteps == 0) {
      // Keeps ptxas from beginning more groups than it has registers for.
      if constexpr (kMinimum)
        __syncwarp();
      part.clear();
    }
    INGOT_UNROLL
    for (int32_t i = 0; i < kParts; ++i) {
      const uint32_t b0 = b[i][step % 2 * 2];
      const uint32_t b1 = b[i][step % 2 * 2 + 1];
      INGOT_UNROLL
      for (int32_t r = 0; r < tiles; ++r)
        mmaF16(part.c[r], unit.a[r][step], b0, b1);
      if constexpr (kMinimum) {
        constexpr uint32_t ones = 0x3c003c00u;
        const uint32_t a[4] = {ones, ones, ones, ones};
        mmaF16(part.tokens, a, b0, b1);
      }
    }
    if (isSmall && step % kGroupSteps == kGroupSteps - 1) {
      if (step < kGroupSteps)
        scalePart<true>(u, part, unit, step / kGroupSteps);
      else
        scalePart<false>(u, part, unit, step / kGroupSteps);
    }
  }
}

// u of a group that is a unit or more, and `part` for the next one.
template <int32_t tiles>
INGOT_DEVICE void finishColumn(float (&u)[tiles][4], ColumnSums<tiles> &part,
                               const UnitWeights<tiles> &unit) {
  if constexpr (kGroup >= abi::kCudaUnit) {
    scalePart<true>(u, part, unit, 0);
    part.clear();
  } else if constexpr (kGroup == 0) {
    INGOT_UNROLL
    for (int32_t i = 0; i < 4 * tiles; ++i)
      u[i / 4][i % 4] = part.c[i / 4][i % 4];
    part.clear();
  }
}

// y of one sum of row `row` of the weights and token `token`.
INGOT_DEVICE void storeSum(const abi::LinearParams &params, int32_t row,
                           int32_t token, float total) {
  if (row >= params.n || token >= params.numTokens)
    return;
  if constexpr (kInteger && kGroup == 0)
    total = total * fromHalf(params.weights.scales[row]);
  const float scale = *(const float *)(params.quantized.data +
                                       token * params.quantized.rowBytes +
                                       params.quantized.scalesOffset);
  float y = total * scale;
  if (params.bias)
    y = y + params.bias[row];
  if (params.residual)
    y = y + params.residual[token * params.residualStride + row];
  params.output[token * params.outputStride + row] = y;
}

// The sums of one lane of a block of 16 rows x 8 tokens.
INGOT_DEVICE void storeBlock(const abi::LinearParams &params, int32_t tile,
                             int32_t token, int32_t lane, const float (&c)[4]) {
  INGOT_UNROLL
  for (int32_t i = 0; i < 4; ++i)
    storeSum(params, tile * abi::kMmaRows + lane / 4 + i / 2 * 8,
             token + lane % 4 * 2 + i % 2, c[i]);
}

} // namespace ingot::device

// The kernel around a tile, where the block is the grid's own (ExpertRows.h has
// another).
#define INGOT_LINEAR(MULTIPLY)                                                 \
  INGOT_KERNEL(INGOT_NAME, abi::LinearParams, kThreads) {                      \
    MULTIPLY(params, blockOfLinear(params));                                   \
  }
