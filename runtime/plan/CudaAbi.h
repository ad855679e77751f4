// The contract between CUDA kernels (compiler/kernels/cuda) and whatever launches
// them: what KernelAbi.h is for CPU kernels. Included by the text that NVRTC
// compiles, by the emulator's builds of the same text and by the executor; it needs
// no header of CUDA.
//
// A kernel is `extern "C" __global__ void NAME(const __grid_constant__ Params)`: one
// plain struct by value. Structs of KernelAbi.h are used where their meaning fits;
// this page says where it differs. All pointers are device pointers. Blocks are one
// dimension of `KernelGeometry::blockThreads`, dynamic shared memory is `sharedBytes`.
//
// A row of a step that nobody asked for (a bucket of a CUDA graph is larger than the
// step) is a *padding row*: tokenSequence -1, tokenSlots.numSplits -1, token id 0,
// position 0. Kernels write nothing to the cache for it, attention gives zeros, and
// whatever else it computes is read by nobody.
#pragma once

#include "runtime/plan/KernelAbi.h"

namespace ingot::abi {

inline constexpr uint32_t kCudaAbiVersion = 1;

// ---- activations ----
// Rows of float16 with one scale, in the fields of QuantizedRows: element k of row t
// stands for halves[k] * scale, scale a power of two, so that the largest of a row
// lies in [2^14, 2^15).
//   [0, 2 * paddedK)      float16, zero from K on; paddedK = K rounded up to 64
//   [scalesOffset, +4)    float32 scale; 1 for a row of zeros, NaN where an element
//                         is not finite (the halves are 0 then)
// rowBytes is a multiple of 64. With two parts, which rows have whose sumsOffset is not
// 0, an element is (halves[k] + rests[k]) * scale:
//   [0, 2 * paddedK)                     halves
//   [sumsOffset, + 2 * paddedK)          float16, what the halves leave of it
//   [scalesOffset, +4)                   scale
inline constexpr int32_t kCudaUnit =
    64; // of K: what weights and rows are padded to
inline constexpr int64_t cudaPaddedK(int64_t k) {
  return (k + kCudaUnit - 1) / kCudaUnit * kCudaUnit;
}
inline constexpr int64_t halfRowRestOffset(int64_t k, int32_t parts = 1) {
  return parts == 1 ? 0 : 2 * cudaPaddedK(k); // of sumsOffset
}
inline constexpr int64_t halfRowScaleOffset(int64_t k, int32_t parts = 1) {
  return 2 * parts * cudaPaddedK(k);
}
inline constexpr int64_t halfRowBytes(int64_t k, int32_t parts = 1) {
  return (halfRowScaleOffset(k, parts) + 4 + 63) / 64 * 64;
}

// ---- weights: the layout "mma16" ----
// Tiles of 16 output rows; K padded to 64. In a tile units of 64 elements of K follow
// one another; a unit holds, for each of the 32 lanes of a warp, the lane's registers
// a0..a3 of the A operand of mma.m16n8k16 for the four steps of 16 elements. With
// g = lane / 4, q = lane % 4, and k counted from the beginning of step s:
//   element j of a lane  0: (g, 2q)     1: (g, 2q+1)    2: (g+8, 2q)    3: (g+8, 2q+1)
//   (row, k)             4: (g, 2q+8)   5: (g, 2q+9)    6: (g+8, 2q+8)  7: (g+8, 2q+9)
//   f16, bf16  2048 bytes  [step 4][lane 32][j 8]
//   i8         1024 bytes  [step / 2][lane 32][step % 2][j 8], code as stored (128 + c)
//   i4          512 bytes  [lane 32][step 4] words of 32 bits: element 2r in bits
//                          [4r, 4r + 4), element 2r + 1 in bits [16 + 4r, 20 + 4r)
// Rows from n on and K from k on hold 0 (floats), 128 (i8), 8 (i4) or, with minima, 0.
//   scales, mins           float16 [rowTiles, groups, 16], as in "r16";
//                          groups = ceil(K / group), 1 where group is 0 (a row)
inline constexpr int32_t kMmaRows = 16;
enum class CudaCode : int32_t { F16 = 0, BF16 = 1, I8 = 2, I4 = 3 };
inline constexpr int64_t cudaUnitBytes(CudaCode code) {
  return code == CudaCode::I4 ? 512 : code == CudaCode::I8 ? 1024 : 2048;
}
inline constexpr int64_t cudaTileBytes(CudaCode code, int64_t k) {
  return cudaPaddedK(k) / kCudaUnit * cudaUnitBytes(code);
}
inline constexpr int64_t cudaGroups(int64_t k, int64_t group) {
  return group == 0 ? 1 : (k + group - 1) / group;
}

// ---- geometry ----
// Of one kernel, for the plan. A block computes `rows` x `tokens` outputs where the
// operation is tiled, else one row of the step.
struct KernelGeometry {
  int32_t blockThreads;
  int32_t sharedBytes;
  int32_t rows;
  int32_t tokens;
};
static_assert(sizeof(KernelGeometry) == 16);
struct KernelGrid {
  uint32_t x, y, z;
};

// Kernels with one block for each row of the step (or of logits):
// embed, rope_table, rms_norm, layer_norm, quantize, gated, activate, add, cap,
// gather_rows, rope_cache_write, attention_merge.
inline constexpr int32_t kRowThreads = 256;
inline constexpr int32_t kRowReductions = 3; // at most, of one kernel
inline constexpr int32_t kRowSharedBytes =
    kRowReductions * (kRowThreads / 32) * 4;
inline constexpr KernelGeometry rowGeometry() {
  return {kRowThreads, kRowSharedBytes, 1, 1};
}
// rope_cache_write: beside them one head for each warp.
inline constexpr KernelGeometry ropeWriteGeometry(int32_t headDim) {
  return {kRowThreads, kRowSharedBytes + kRowThreads / 32 * headDim * 4, 1, 1};
}
inline constexpr KernelGrid rowGrid(int32_t numRows) {
  return {static_cast<uint32_t>(numRows), 1, 1};
}
// attention_merge: beside them a number for each head.
inline constexpr KernelGeometry mergeGeometry(int32_t heads) {
  return {kRowThreads, kRowSharedBytes + heads * 4, 1, 1};
}

// linear. Tiles of rows x tokens, all with the same bits, each with four warps:
//   T8, T16, T32  32 rows; the warps take pieces of K in turn. For 1 to 32 tokens
//   T64           32 rows x 64 tokens, each warp 16 x 32 over all of K
//   P64           128 rows x 64 tokens, each warp 32 x 64 over all of K: for prompts;
//                 64 rows with groups below 64, whose sums take more registers
enum class LinearTile : int32_t { T8 = 0, T16 = 1, T32 = 2, T64 = 3, P64 = 4 };
inline constexpr int32_t kLinearWarps = 4;
// Activations of two parts leave no room for the pieces of 32 tokens: there T32 is 32
// rows x 32 tokens, each warp 16 x 16 over all of K.
inline constexpr bool isSplitTile(LinearTile tile, int32_t parts) {
  return tile < (parts == 1 ? LinearTile::T64 : LinearTile::T32);
}
inline constexpr int32_t linearTokens(LinearTile tile) {
  return tile == LinearTile::T8    ? 8
         : tile == LinearTile::T16 ? 16
         : tile == LinearTile::T32 ? 32
                                   : 64;
}
inline constexpr int32_t linearRows(LinearTile tile, int32_t group) {
  return tile != LinearTile::P64          ? 32
         : group > 0 && group < kCudaUnit ? 64
                                          : 128;
}
// The tile that serves a step of so many tokens.
inline constexpr LinearTile linearTileFor(int32_t numTokens) {
  return numTokens <= 8    ? LinearTile::T8
         : numTokens <= 16 ? LinearTile::T16
         : numTokens <= 32 ? LinearTile::T32
         : numTokens <= 64 ? LinearTile::T64
                           : LinearTile::P64;
}
// A stage of the pipeline holds a unit of K for each warp of a split tile, one unit
// for all warps of the others.
inline constexpr int32_t linearStageUnits(LinearTile tile, int32_t parts) {
  return isSplitTile(tile, parts) ? kLinearWarps : 1;
}
// Scales, and minima, that belong to a unit: 16 of each tile of rows and group.
inline constexpr int32_t linearUnitGroups(int32_t group) {
  return group == 0 ? 0 : group < kCudaUnit ? kCudaUnit / group : 1;
}
inline constexpr int32_t kStageRowHalves = kCudaUnit + 8; // of one token
inline constexpr int32_t linearStageBytes(CudaCode code, int32_t group,
                                          bool minimum, LinearTile tile,
                                          int32_t parts) {
  const int32_t tiles = linearRows(tile, group) / kMmaRows;
  return linearStageUnits(tile, parts) *
         (tiles * (static_cast<int32_t>(cudaUnitBytes(code)) +
                   linearUnitGroups(group) * 32 * (minimum ? 2 : 1)) +
          parts * linearTokens(tile) * kStageRowHalves * 2);
}
inline constexpr int32_t linearExchangeBytes(LinearTile tile, int32_t parts) {
  return isSplitTile(tile, parts) ? kLinearWarps * 32 * linearTokens(tile) * 4
                                  : 0;
}
inline constexpr int32_t linearStages(CudaCode code, int32_t group,
                                      bool minimum, LinearTile tile,
                                      int32_t parts) {
  const int32_t fit = (80 * 1024 - linearExchangeBytes(tile, parts)) /
                      linearStageBytes(code, group, minimum, tile, parts);
  return fit < 2 ? 2 : fit > 6 ? 6 : fit;
}
inline constexpr KernelGeometry linearGeometry(CudaCode code, int32_t group,
                                               bool minimum, LinearTile tile,
                                               int32_t parts = 1) {
  return {kLinearWarps * 32,
          linearStages(code, group, minimum, tile, parts) *
                  linearStageBytes(code, group, minimum, tile, parts) +
              linearExchangeBytes(tile, parts),
          linearRows(tile, group), linearTokens(tile)};
}
inline constexpr KernelGrid linearGrid(const KernelGeometry &geometry,
                                       int32_t n, int32_t numTokens) {
  return {static_cast<uint32_t>((n + geometry.rows - 1) / geometry.rows),
          static_cast<uint32_t>((numTokens + geometry.tokens - 1) /
                                geometry.tokens),
          1};
}

// ---- the cache ----
// As KvLayer, but both with the elements of a token side by side:
//   K [kvHeads, kBlockTokens, headDim]
//   V [kvHeads, kBlockTokens, headDim]   at valueOffsetBytes
// In int8 each head of K, and of V, is followed by the float32 scales of its tokens
// (kvHeadBytes). Sizes are those of the CPU's cache.

// ---- attention ----
// Positions are cut into segments of 256 from position 0. A segment of a query gives a
// partial result: the maximum of its scores, and the sum and values under it;
// segments merge in ascending order.
inline constexpr int32_t kSegmentTokens = 256;

// Queries of one sequence, one after another, that read the keys together.
//   attention_split  one block for each segment; a tile has at most 16 rows, a row
//                    being a query and one of the heads of its group
//   attention        one block for all segments; at most attentionRows(headDim) rows
struct AttentionTile {
  int32_t firstRow;      // of the step: row of the first query
  int32_t numQueries;    // 0: nothing to do (padding of a graph)
  int32_t firstPosition; // of the first query in its sequence
  int32_t blockTableOffset;
  int32_t
      firstSlot; // attention_split: segment s of query i of the tile goes to
  int32_t firstSplit; //   slot firstSlot + i * numSplits + (s - firstSplit);
  int32_t numSplits;  //   s in [firstSplit, firstSplit + numSplits)
  int32_t reserved;
};
static_assert(sizeof(AttentionTile) == 32);

// Heads of one group that a block takes (a group of more is cut), and into how many
// parts a group is cut.
inline constexpr int32_t attentionHeads(int32_t heads, int32_t kvHeads) {
  return heads / kvHeads < 16 ? heads / kvHeads : 16;
}
inline constexpr int32_t attentionParts(int32_t heads, int32_t kvHeads) {
  return (heads / kvHeads + 15) / 16;
}
// Queries of a tile.
inline constexpr int32_t splitQueries(int32_t heads, int32_t kvHeads) {
  return 16 / attentionHeads(heads, kvHeads);
}
inline constexpr int32_t attentionRows(int32_t headDim) {
  return headDim <= 128 ? 64 : 32;
}
inline constexpr int32_t wideQueries(int32_t heads, int32_t kvHeads,
                                     int32_t headDim) {
  return attentionRows(headDim) / attentionHeads(heads, kvHeads);
}
// Segments that a tile of queries [firstPosition, firstPosition + numQueries) sees.
inline constexpr int32_t firstSplitOf(int32_t firstPosition, int32_t window) {
  return window > 0 && firstPosition - window + 1 > 0
             ? (firstPosition - window + 1) / kSegmentTokens
             : 0;
}
inline constexpr int32_t numSplitsOf(int32_t firstPosition, int32_t numQueries,
                                     int32_t window) {
  return (firstPosition + numQueries - 1) / kSegmentTokens -
         firstSplitOf(firstPosition, window) + 1;
}

// Where the merge finds a token's attention.
struct TokenSlots {
  int32_t firstSlot;
  int32_t numSplits; // 0: `output` holds it already; -1: padding row
};
static_assert(sizeof(TokenSlots) == 8);

// attention_split and attention. A launch has only tiles of its own kind.
struct CudaAttentionParams {
  const float *query; // [numTokens, heads * headDim]
  KvLayer cache;
  float *output; // [numTokens, heads * headDim]: attention writes it
  // attention_split writes, for each slot and head:
  float *partialValues; // [slots, heads, headDim]
  float
      *partialStats; // [slots, heads, 2]: maximum (minus infinity where nothing
                     // is visible), sum
  const AttentionTile *tiles; // [numTiles]
  const int32_t *blockTable;
  int32_t numTiles;
  int32_t heads;
  int32_t kvHeads;
  int32_t window; // 0: unlimited
  float scale;
  float softCap; // 0: none
};
static_assert(sizeof(CudaAttentionParams) == 96);
inline constexpr int64_t partialValuesBytes(int64_t slots, int64_t heads,
                                            int64_t headDim) {
  return slots * heads * headDim * 4;
}
inline constexpr int64_t partialStatsBytes(int64_t slots, int64_t heads) {
  return slots * heads * 8;
}

// attention_merge: merges the segments of split tokens into `output`, then gives the
// half rows of all tokens (not where quantized.data is null). It overwrites
// partialStats.
struct CudaAttentionMergeParams {
  float *output; // [numTokens, heads * headDim]
  QuantizedRows quantized;
  const float *partialValues;
  float *partialStats;
  const TokenSlots *tokenSlots; // [numTokens]
  int32_t numTokens;
  int32_t heads;
  int32_t headDim;
  int32_t reserved;
};
static_assert(sizeof(CudaAttentionMergeParams) == 72);

inline constexpr int32_t kAttentionThreads = 128;
// Head sizes are multiples of 8; in shared memory of 16.
inline constexpr int32_t attentionPaddedDim(int32_t headDim) {
  return (headDim + 15) / 16 * 16;
}
// Tokens of a step of the softmax, a part of the law.
inline constexpr int32_t attentionStep(int32_t headDim) {
  return headDim <= 128 ? 64 : 32;
}
inline constexpr int32_t attentionStages(int32_t headDim) {
  return headDim <= 128 ? 2 : 1;
}
inline constexpr KernelGeometry attentionGeometry(int32_t headDim, bool split) {
  const int32_t stride = (attentionPaddedDim(headDim) + 8) * 2;
  const int32_t step = attentionStep(headDim);
  const int32_t tiles = 2 * attentionStages(headDim) * step * stride;
  // split: one tile of queries, probabilities, and statistics of the four warps
  return {kAttentionThreads,
          split ? tiles + 16 * stride + 16 * (step + 8) * 2 + 4 * 16 * 4
                : tiles + attentionRows(headDim) * stride,
          split ? 16 : attentionRows(headDim), 1};
}
inline constexpr KernelGrid splitGrid(int32_t numTiles, int32_t maxSplits,
                                      int32_t heads, int32_t kvHeads) {
  return {static_cast<uint32_t>(numTiles), static_cast<uint32_t>(maxSplits),
          static_cast<uint32_t>(kvHeads * attentionParts(heads, kvHeads))};
}
inline constexpr KernelGrid attentionGrid(int32_t numTiles, int32_t heads,
                                          int32_t kvHeads) {
  return {static_cast<uint32_t>(numTiles), 1,
          static_cast<uint32_t>(kvHeads * attentionParts(heads, kvHeads))};
}

// ---- sampling ----
// sample: the token of each row of logits: the largest logit (of equal ones the first)
// where inverseTemperature is 0 or the largest is infinite; else the largest of
// logit * inverseTemperature + Gumbel noise of (seed, position, token), as
// runtime/sample makes it. -1 where a logit is NaN or all are minus infinity. Grid: rowGrid(rows of logits).
struct SampleRow {
  uint64_t seed;
  int64_t position;          // of the token to choose
  double inverseTemperature; // 0: greedy
};
static_assert(sizeof(SampleRow) == 24);
struct CudaSampleParams {
  const float *logits; // [numRows, vocab]
  const SampleRow *rows;
  int32_t *tokens; // [numRows]
  int32_t numRows;
  int32_t vocab;
};
static_assert(sizeof(CudaSampleParams) == 32);
inline constexpr KernelGeometry sampleGeometry() {
  return {kRowThreads, kRowThreads / 32 * 16, 1, 1};
}

} // namespace ingot::abi
