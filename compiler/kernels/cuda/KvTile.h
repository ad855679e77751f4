// Keys and values of the paged cache in shared memory, as float16: what the two
// attention kernels share. A variant is INGOT_HEAD_DIM and INGOT_KV (F16, BF16 or I8).
#pragma once

#include "compiler/kernels/cuda/MergeSegment.h"
#include "runtime/plan/CudaAbi.h"

namespace ingot::device {

enum class KvElement { F16, BF16, I8 };
constexpr KvElement kKv = KvElement::INGOT_KV;
constexpr int32_t kHeadDim = INGOT_HEAD_DIM;
constexpr int32_t kPaddedDim = abi::attentionPaddedDim(kHeadDim);
constexpr int32_t kDimSteps = kPaddedDim / 16;
constexpr int32_t kStride = kPaddedDim + 8; // halves of a token or query
constexpr int32_t kStep = abi::attentionStep(kHeadDim);
constexpr int32_t kStages = abi::attentionStages(kHeadDim);
constexpr int32_t kThreads = abi::kAttentionThreads;
constexpr int64_t kHeadBytes =
    abi::kvHeadBytes(kHeadDim, kKv == KvElement::I8 ? 1 : 2);

// What a block works on.
struct AttentionBlock {
  abi::AttentionTile tile;
  int32_t headsPerRow; // heads of the group that the block takes
  int32_t firstHead;   // of them
  int32_t numHeads;    // that exist
  int32_t kvHead;
  int32_t firstVisible; // positions that any query of the tile sees:
  int32_t lastVisible;  //   [firstVisible, lastVisible]
};
INGOT_DEVICE AttentionBlock
blockOfAttention(const abi::CudaAttentionParams &params) {
  AttentionBlock block;
  block.tile = params.tiles[blockIdx.x];
  const int32_t parts = abi::attentionParts(params.heads, params.kvHeads);
  const int32_t group = params.heads / params.kvHeads;
  const int32_t part = (int32_t)blockIdx.z % parts;
  block.kvHead = (int32_t)blockIdx.z / parts;
  block.headsPerRow = abi::attentionHeads(params.heads, params.kvHeads);
  block.firstHead = block.kvHead * group + part * block.headsPerRow;
  block.numHeads = least(block.headsPerRow, group - part * block.headsPerRow);
  block.firstVisible =
      params.window > 0 ? most(block.tile.firstPosition - params.window + 1, 0)
                        : 0;
  block.lastVisible = block.tile.firstPosition + block.tile.numQueries - 1;
  return block;
}

// One row of a tile: a query and a head.
struct AttentionRow {
  bool exists;
  int32_t query, head;
  int32_t first, last; // positions that it sees
};
INGOT_DEVICE AttentionRow rowOf(const AttentionBlock &block, int32_t row,
                                int32_t window) {
  AttentionRow result;
  result.query = row / block.headsPerRow;
  const int32_t head = row % block.headsPerRow;
  result.head = block.firstHead + head;
  result.exists = result.query < block.tile.numQueries && head < block.numHeads;
  result.last = block.tile.firstPosition + result.query;
  result.first = window > 0 ? most(result.last - window + 1, 0) : 0;
  return result;
}

// To float16; what is larger than its largest becomes that, a NaN stays.
INGOT_DEVICE uint16_t toHalfSaturated(float value) {
  return toHalf(value > 65504.0f    ? 65504.0f
                : value < -65504.0f ? -65504.0f
                                    : value);
}

// Queries to shared memory, `rows` of kStride halves; rows that do not exist are zero.
INGOT_DEVICE void loadQueries(const abi::CudaAttentionParams &params,
                              const AttentionBlock &block, uint16_t *queries,
                              int32_t rows) {
  for (int32_t i = (int32_t)threadIdx.x; i < rows * kPaddedDim; i += kThreads) {
    const int32_t d = i % kPaddedDim;
    const AttentionRow row = rowOf(block, i / kPaddedDim, params.window);
    float value = 0.0f;
    if (row.exists && d < kHeadDim)
      value = params.query[((int64_t)(block.tile.firstRow + row.query) *
                                params.heads +
                            row.head) *
                               kHeadDim +
                           d];
    queries[i / kPaddedDim * kStride + d] = toHalfSaturated(value);
  }
}

// ---- elements of the cache to float16 ----
// They are copied as the cache holds them to the place where their float16 will be,
// cell by cell, and become that in place (convertKeyValues):
//   F16   8 elements    nothing is to be done
//   BF16  8 elements    as many bytes
//   I8    16 elements   the codes, then the scales of four tokens, theirs among them;
//                       heads that are no multiples of 16 are read without a copy
constexpr bool kHasCodes = kKv == KvElement::I8 && kHeadDim % 16 == 0;
constexpr int32_t kCellElements = kHasCodes ? 16 : 8;

INGOT_DEVICE uint4 halvesOfBrain(const uint4 &words) {
  const uint32_t own[4] = {words.x, words.y, words.z, words.w};
  uint32_t to[4];
  INGOT_UNROLL
  for (int32_t i = 0; i < 4; ++i)
    to[i] = (uint32_t)toHalfSaturated(floatOf(own[i] << 16)) |
            (uint32_t)toHalfSaturated(floatOf(own[i] & 0xffff0000u)) << 16;
  return {to[0], to[1], to[2], to[3]};
}
// Of eight codes in two words.
INGOT_DEVICE uint4 halvesOfCodes(uint32_t low, uint32_t high, float scale) {
  const uint32_t own[2] = {low, high};
  uint16_t to[8];
  INGOT_UNROLL
  for (int32_t i = 0; i < 8; ++i)
    to[i] = toHalfSaturated((float)(int8_t)(own[i / 4] >> i % 4 * 8 & 255) *
                            scale);
  return {(uint32_t)to[0] | (uint32_t)to[1] << 16,
          (uint32_t)to[2] | (uint32_t)to[3] << 16,
          (uint32_t)to[4] | (uint32_t)to[5] << 16,
          (uint32_t)to[6] | (uint32_t)to[7] << 16};
}

// Begins the copy of a cell of `head`, elements [d, d + kCellElements) of a token; zeros
// unless it is there.
INGOT_DEVICE void copyCell(uint16_t *cell, const uint8_t *head, int32_t token,
                           int32_t d, bool isThere) {
  if constexpr (kHasCodes) {
    // Of the four scales those up to the token's: later ones may not be written.
    const int32_t scales = abi::kBlockTokens * kHeadDim + token / 4 * 16;
    copyAsync16(cell, head + (isThere ? token * kHeadDim + d : 0),
                isThere ? 16 : 0);
    copyAsync16(cell + 8, head + (isThere ? scales : 0),
                isThere ? token % 4 * 4 + 4 : 0);
  } else if constexpr (kKv == KvElement::I8) {
    uint4 halves = {0, 0, 0, 0};
    if (isThere) {
      const uint2 codes = loadWords2(head + token * kHeadDim + d);
      halves = halvesOfCodes(
          codes.x, codes.y,
          ((const float *)(head + abi::kBlockTokens * kHeadDim))[token]);
    }
    storeWords4(cell, halves);
  } else {
    copyAsync16(cell, head + (isThere ? (token * kHeadDim + d) * 2 : 0),
                isThere ? 16 : 0);
  }
}
INGOT_DEVICE void convertCell(uint16_t *cell, int32_t token) {
  if constexpr (kHasCodes) {
    const uint4 codes = loadWords4(cell);
    const uint4 scales = loadWords4(cell + 8);
    const float scale = floatOf(token % 4 == 0   ? scales.x
                                : token % 4 == 1 ? scales.y
                                : token % 4 == 2 ? scales.z
                                                 : scales.w);
    storeWords4(cell, halvesOfCodes(codes.x, codes.y, scale));
    storeWords4(cell + 8, halvesOfCodes(codes.z, codes.w, scale));
  } else if constexpr (kKv == KvElement::BF16) {
    storeWords4(cell, halvesOfBrain(loadWords4(cell)));
  }
}

// Begins the copy of positions [first, first + kStep) to `keys` and `values`, kStep
// rows of kStride halves. What no query of the tile sees becomes zero, so that
// nothing that the cache holds there is used.
INGOT_DEVICE void loadKeyValues(const abi::CudaAttentionParams &params,
                                const AttentionBlock &block, int32_t first,
                                uint16_t *keys, uint16_t *values) {
  constexpr int32_t cells = kPaddedDim / kCellElements;
  INGOT_UNROLL_TWO
  for (int32_t i = (int32_t)threadIdx.x; i < kStep * cells; i += kThreads) {
    const int32_t position = first + i / cells;
    const int32_t d = i % cells * kCellElements;
    const bool isThere = position >= block.firstVisible &&
                         position <= block.lastVisible && d < kHeadDim;
    const uint8_t *key = params.cache.base;
    if (isThere)
      key += params.blockTable[block.tile.blockTableOffset +
                               position / abi::kBlockTokens] *
                 params.cache.blockBytes +
             block.kvHead * kHeadBytes;
    const uint8_t *value = isThere ? key + params.cache.valueOffsetBytes : key;
    const int32_t token = position % abi::kBlockTokens;
    const int32_t to = i / cells * kStride + d;
    copyCell(keys + to, key, token, d, isThere);
    copyCell(values + to, value, token, d, isThere);
  }
}
// What this thread has copied there, and has waited for, to float16; others may read
// it after a barrier.
INGOT_DEVICE void convertKeyValues(uint16_t *keys, uint16_t *values) {
  if constexpr (kHasCodes || kKv == KvElement::BF16) {
    constexpr int32_t cells = kPaddedDim / kCellElements;
    INGOT_UNROLL_TWO
    for (int32_t i = (int32_t)threadIdx.x; i < kStep * cells; i += kThreads) {
      const int32_t to = i / cells * kStride + i % cells * kCellElements;
      convertCell(keys + to, i / cells);
      convertCell(values + to, i / cells);
    }
  }
}

// The A operand: rows [row, row + 16) and elements [column, column + 16) of halves
// with `stride` of them in a row.
INGOT_DEVICE void loadOperandA(uint32_t (&a)[4], const uint16_t *halves,
                               int32_t stride, int32_t row, int32_t column) {
  const int32_t lane = laneOf();
  loadMatrices4(a,
                halves + (row + lane % 16) * stride + column + lane / 16 * 8);
}
// B operands of 16 keys: {b0, b1} of the first eight, then of the others.
INGOT_DEVICE void loadKeyOperands(uint32_t (&b)[4], const uint16_t *keys,
                                  int32_t token, int32_t d) {
  const int32_t lane = laneOf();
  loadMatrices4(b, keys + (token + lane / 16 * 8 + lane % 8) * kStride + d +
                       lane / 8 % 2 * 8);
}
// B operands of 16 tokens and 16 elements of the values: {b0, b1} of the first eight
// elements, then of the others.
INGOT_DEVICE void loadValueOperands(uint32_t (&b)[4], const uint16_t *values,
                                    int32_t token, int32_t d) {
  const int32_t lane = laneOf();
  loadMatrices4Transposed(b, values + (token + lane % 16) * kStride + d +
                                 lane / 16 * 8);
}

// A score from its sum of products; invisible ones are minus infinity.
INGOT_DEVICE float scoreOf(const abi::CudaAttentionParams &params, float sum,
                           int32_t position, const AttentionRow &row) {
  float score = sum * params.scale;
  if (params.softCap != 0.0f)
    score = kernels::softCapLaw(score, params.softCap);
  return position >= row.first && position <= row.last ? score : -infinity();
}

// e^(value - of), of the largest value; 0 where nothing is visible yet.
INGOT_DEVICE float expUnder(float value, float of) {
  return kernels::expOfNegative(value - (of == -infinity() ? 0.0f : of));
}

} // namespace ingot::device
