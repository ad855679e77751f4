// What the tiles of `linear` share. The law, whatever the tile:
//
//   unit g of K: max(64, group) elements
//     part = an mma for each 16 elements, ascending, from 0
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
constexpr int32_t kStages = abi::linearStages(kCode, kGroup, kMinimum, kTile);
constexpr int32_t kTileTokens = abi::linearTokens(kTile);
constexpr int32_t kBlockTiles = abi::linearRows(kTile) / abi::kMmaRows;
constexpr int32_t kUnitGroups = abi::linearUnitGroups(kGroup);
constexpr int32_t kStageUnits = abi::linearStageUnits(kTile);
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
  uint16_t *rows; // [stage][unit][token][kStageRowHalves]

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
                                      int32_t token) const {
    return rows + ((stage * kStageUnits + unit) * kTileTokens + token) *
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
  stages.rows =
      memory.take<uint16_t>(units * kTileTokens * abi::kStageRowHalves);
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

// Begins the copies of unit `unit` to place `slot` of a stage, by the `count`
// threads of which this is number `thread`. A unit, tile or token that does not exist
// becomes zeros.
INGOT_DEVICE void copyUnit(const abi::LinearParams &params,
                           const LinearBlock &block, const Stages &stages,
                           int32_t stage, int32_t slot, int32_t unit,
                           int32_t thread, int32_t count) {
  const bool exists = unit < block.units;
  INGOT_UNROLL
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
      // A group's last units may lie beyond K; its factors do not.
      const bool isThere =
          group < groups && block.firstTile + tile < block.numTiles;
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
  INGOT_UNROLL
  for (int32_t i = thread; i < kTileTokens * 8; i += count) {
    const int32_t token = block.firstToken + i / 8;
    const bool isThere = exists && token < params.numTokens;
    const uint8_t *from = params.quantized.data +
                          (isThere ? token * params.quantized.rowBytes +
                                         (unit * abi::kCudaUnit + i % 8 * 8) * 2
                                   : 0);
    copyAsync16(stages.rowOf(stage, slot, i / 8) + i % 8 * 8, from,
                isThere ? 16 : 0);
  }
}

// Sums of `tiles` x `columns` blocks of 16 rows x 8 tokens.
template <int32_t tiles, int32_t columns> struct Sums {
  float c[tiles][columns][4];
  INGOT_DEVICE_MEMBER void clear() {
    INGOT_UNROLL
    for (int32_t r = 0; r < tiles; ++r)
      INGOT_UNROLL
    for (int32_t n = 0; n < columns; ++n)
      INGOT_UNROLL
    for (int32_t i = 0; i < 4; ++i)
      c[r][n][i] = 0.0f;
  }
};

// u = part * scale, or fma(part, scale, u), and the minima: for one group whose
// factors begin at `factor` (of the first of the tiles).
template <bool first, int32_t tiles, int32_t columns>
INGOT_DEVICE void scaleParts(Sums<tiles, columns> &u,
                             const Sums<tiles, columns> &part,
                             const float (&rowSums)[columns][4],
                             const Stages &stages, int32_t factor) {
  INGOT_UNROLL
  for (int32_t r = 0; r < tiles; ++r) {
    const int32_t at = factor + r * kUnitGroups * abi::kMmaRows + laneOf() / 4;
    const float scale[2] = {fromHalf(stages.scales[at]),
                            fromHalf(stages.scales[at + 8])};
    float least[2] = {0.0f, 0.0f};
    if constexpr (kMinimum) {
      least[0] = fromHalf(stages.mins[at]);
      least[1] = fromHalf(stages.mins[at + 8]);
    }
    INGOT_UNROLL
    for (int32_t n = 0; n < columns; ++n)
      INGOT_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      float &to = u.c[r][n][i];
      to = first ? part.c[r][n][i] * scale[i / 2]
                 : __builtin_fmaf(part.c[r][n][i], scale[i / 2], to);
      if constexpr (kMinimum)
        to = __builtin_fmaf(rowSums[n][i % 2], least[i / 2], to);
    }
  }
}

// One unit of K: adds to `part` where a group is a unit or more, else makes `u` of
// the groups of the unit. Tiles [firstTile, +tiles) and tokens
// [8 * firstColumn, +8 * columns) of the stage.
template <int32_t tiles, int32_t columns>
INGOT_DEVICE void
multiplyUnit(Sums<tiles, columns> &u, Sums<tiles, columns> &part,
             float (&rowSums)[columns][4], const Stages &stages, int32_t stage,
             int32_t slot, int32_t firstTile, int32_t firstColumn) {
  constexpr bool isSmall = kGroup > 0 && kGroup < abi::kCudaUnit;
  const int32_t lane = laneOf();
  uint4 words[tiles];
  uint32_t b[columns][4];
  INGOT_UNROLL
  for (int32_t step = 0; step < kSteps; ++step) {
    if (step % kStepsOfLoad == 0)
      INGOT_UNROLL
    for (int32_t r = 0; r < tiles; ++r)
      words[r] = loadWords4(stages.codesOf(stage, slot, firstTile + r) +
                            (step / kStepsOfLoad * 32 + lane) * 16);
    if (step % 2 == 0)
      INGOT_UNROLL
    for (int32_t n = 0; n < columns; ++n)
      loadMatrices4(
          b[n], stages.rowOf(stage, slot, (firstColumn + n) * 8 + lane % 8) +
                    step * 16 + lane / 8 * 8);
    if (isSmall && step % kGroupSteps == 0) {
      part.clear();
      if constexpr (kMinimum)
        INGOT_UNROLL
      for (int32_t n = 0; n < columns; ++n)
        INGOT_UNROLL
      for (int32_t i = 0; i < 4; ++i)
        rowSums[n][i] = 0.0f;
    }
    INGOT_UNROLL
    for (int32_t r = 0; r < tiles; ++r) {
      uint32_t a[4];
      weightFragment(a, words[r], step % kStepsOfLoad);
      INGOT_UNROLL
      for (int32_t n = 0; n < columns; ++n)
        mmaF16(part.c[r][n], a, b[n][step % 2 * 2], b[n][step % 2 * 2 + 1]);
    }
    if constexpr (kMinimum) {
      constexpr uint32_t ones = 0x3c003c00u;
      const uint32_t a[4] = {ones, ones, ones, ones};
      INGOT_UNROLL
      for (int32_t n = 0; n < columns; ++n)
        mmaF16(rowSums[n], a, b[n][step % 2 * 2], b[n][step % 2 * 2 + 1]);
    }
    if constexpr (isSmall)
      if (step % kGroupSteps == kGroupSteps - 1) {
        const int32_t factor = stages.factorOffset(stage, slot, firstTile) +
                               step / kGroupSteps * abi::kMmaRows;
        if (step < kGroupSteps)
          scaleParts<true>(u, part, rowSums, stages, factor);
        else
          scaleParts<false>(u, part, rowSums, stages, factor);
      }
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
