// The contract between compiled kernels and whatever launches them. Included by
// kernel sources (freestanding, compiled to bitcode by the compiler) and by the
// executors of the runtime. Changing a struct here changes kKernelAbiVersion,
// the kernels in compiler/kernels and the binding in runtime/execute.
//
// A kernel is `void kernel(const void *params, const Slice *slice)`: one plain
// params struct an operation. The work of a launch is a row of `numItems` equal
// items; the executor calls the kernel with any split of [0, numItems) into
// slices, on any workers, in any order, and the bits of the result do not
// depend on it. Layouts are written at the pointer; sizes are in elements
// unless a name says bytes.
#pragma once

#include <stdint.h>

namespace ingot::abi {

inline constexpr uint32_t kKernelAbiMagic = 0x424b4749; // "IGKB"
inline constexpr uint32_t kKernelAbiVersion = 4;

// Output rows that share one packed tile of weights (docs/numerics.md).
inline constexpr int32_t kTileRows = 16;
// Tokens in a block of the paged cache, and in a block of the attention law.
inline constexpr int32_t kBlockTokens = 32;
// Elements of K that a float encoding sums before it adds to the total.
inline constexpr int32_t kFloatGroup = 32;

struct Slice {
  int32_t begin; // items [begin, end) of the launch
  int32_t end;
  int32_t worker; // 0 .. workers-1, names the scratch of this call
  int32_t reserved;
  void *
      scratch; // private to the worker, 64-byte aligned, as long as the plan says
};
static_assert(sizeof(Slice) == 24);

using KernelFn = void (*)(const void *params, const Slice *slice);

// One sequence's part of the step: token rows [firstRow, firstRow + numRows),
// which are positions [firstPosition, firstPosition + numRows) of the sequence.
struct SequenceSpan {
  int32_t firstRow;
  int32_t numRows;
  int32_t firstPosition;
  int32_t blockTableOffset; // into the step's block table
};
static_assert(sizeof(SequenceSpan) == 16);

// Activations quantised for integer dot products, one row a token:
//   [0, paddedK * bits / 8)      codes, zero from K on (paddedK = K rounded up to 32)
//   [scalesOffset, +4*groups)    float32 scale of each K-group
//   [sumsOffset, +4*groups)      int32 sum of the codes of each K-group
// groups = ceil(K / group); rowBytes is a multiple of 64. The weights that read
// the rows decide the bits of a code (docs/numerics.md):
//   8   int8, in the order of K
//   16  int16; elements 1 and 2 of every four trade places, so that a pair of
//       codes meets the pair of weight bytes that widening leaves in 32 bits
struct QuantizedRows {
  uint8_t *data; // [tokens, rowBytes]
  int64_t rowBytes;
  int32_t scalesOffset;
  int32_t sumsOffset;
};
static_assert(sizeof(QuantizedRows) == 24);

// Weights of a linear operator, packed "r16" (docs/numerics.md). Planes start
// 64-byte aligned.
struct PackedWeights {
  const void *codes; // [rowTiles, K ...] by encoding
  const uint16_t
      *scales; // [rowTiles, groups, 16] float16; null for float encodings
  const uint16_t *mins; // [rowTiles, groups, 16] float16; null where symmetric
};
static_assert(sizeof(PackedWeights) == 24);

// embed: output[t, :] = table[tokens[t], :] * scale (+ bias). Items: tokens. A
// table of learned positions is given the positions as tokens.
struct EmbedParams {
  const int32_t *tokens; // [numTokens]
  PackedWeights table;   // [vocab, hidden] packed r16
  float *output;         // [numTokens, hidden]
  int32_t numTokens;
  int32_t hidden;
  int32_t vocab;
  float scale;
  const float *bias; // [hidden] or null
};

// rope_table: output[t, i] = cos, output[t, rotaryDim/2 + i] = sin of the
// float32 product positions[t] * invFreq[i], each times attentionFactor.
// Items: tokens. `scaling` says which frequencies (docs/numerics.md, "Rotary"):
// one of a sequence's two lists, or those of a base that grows with its length.
enum class RopeScaling : int32_t { Fixed = 0, Dynamic = 1, Listed = 2 };
struct RopeTableParams {
  const int32_t *positions;     // [numTokens]
  const int32_t *rotaryLengths; // [numTokens]: of the token's sequence
  const float *invFreq;         // [rotaryDim/2], [2, rotaryDim/2] where Listed
  float *output;                // [numTokens, rotaryDim]
  double theta;                 // Dynamic
  double factor;                // Dynamic
  int32_t numTokens;
  int32_t rotaryDim;
  float attentionFactor;
  int32_t original; // length up to which invFreq (or its first list) holds
  RopeScaling scaling;
  int32_t reserved;
};

// rms_norm: y = x / sqrt(mean(x^2) + eps) * weight, to float32, to quantised
// rows, or to both (a null pointer is not written). Items: tokens.
struct RmsNormParams {
  const float *input;  // [numTokens, width]
  const float *weight; // [width]
  float *output;       // [numTokens, width] or null
  QuantizedRows quantized;
  int32_t numTokens;
  int32_t width;
  float eps;
  float weightOffset; // added to each weight (0; 1 for the Gemma convention)
};

// layer_norm: y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * weight (+ bias),
// with outputs as in rms_norm. Items: tokens.
struct LayerNormParams {
  const float *input;  // [numTokens, width]
  const float *weight; // [width]
  const float *bias;   // [width] or null
  float *output;       // [numTokens, width] or null
  QuantizedRows quantized;
  int32_t numTokens;
  int32_t width;
  float eps;
  int32_t reserved;
};

// quantize: float32 rows to quantised rows. Items: tokens.
struct QuantizeParams {
  const float *input; // [numTokens, width]
  QuantizedRows quantized;
  int32_t numTokens;
  int32_t width;
};

// linear: output[t, n] = sum_k weight[n, k] * input[t, k] (+ bias[n])
// (+ residual[t, n]). Items: row tiles (ceil(n / 16)).
struct LinearParams {
  const float *input;      // [numTokens, k] for float encodings, else null
  QuantizedRows quantized; // for integer encodings
  PackedWeights weights;   // [n, k] packed r16
  const float *bias;       // [n] or null
  const float
      *residual; // [numTokens, residualStride] or null; may equal output
  float *output; // [numTokens, outputStride]
  int64_t outputStride;
  int64_t residualStride;
  int32_t numTokens;
  int32_t k;
  int32_t n;
  int32_t reserved;
};

// gated: output[t, f] = act(gateUp[t, f]) * gateUp[t, width + f], to float32 or
// to quantised rows, as in rms_norm. Items: tokens.
struct GatedParams {
  const float *gateUp; // [numTokens, 2 * width]
  float *output;       // [numTokens, width] or null
  QuantizedRows quantized;
  int32_t numTokens;
  int32_t width;
};

// activate: output[t, f] = act(input[t, f]), with outputs as in rms_norm; the
// output may be the input. Items: tokens.
struct ActivateParams {
  const float *input; // [numTokens, width]
  float *output;      // [numTokens, width] or null
  QuantizedRows quantized;
  int32_t numTokens;
  int32_t width;
};

// add: output[t, i] = residual[t, i] + update[t, i] * scale; the output may be
// the residual. Items: tokens.
struct AddParams {
  const float *residual; // [numTokens, width]
  const float *update;   // [numTokens, width]
  float *output;         // [numTokens, width]
  int32_t numTokens;
  int32_t width;
  float scale; // 1: no product
  int32_t reserved;
};

// cap: y = input * scale (no product where 1); output = y, or
// softCap * tanh(y / softCap) where softCap is not 0. The output may be the
// input. Items: rows.
struct CapParams {
  const float *input; // [numRows, width]
  float *output;      // [numRows, width]
  int32_t numRows;
  int32_t width;
  float scale;
  float softCap;
};

// One layer of a paged state group. Block b of the layer starts at
// base + b * blockBytes and holds, in the element type of the kernel,
//   K [kvHeads, headDim, kBlockTokens]   (tokens are the lanes of the scores)
//   V [kvHeads, kBlockTokens, headDim]   at valueOffsetBytes
// In int8 each head of K, and of V, is followed by the float32 scales of its
// kBlockTokens tokens; an element stands for code * scale (docs/numerics.md).
inline constexpr int64_t kvHeadBytes(int64_t headDim, int64_t elementBytes) {
  return kBlockTokens * (headDim * elementBytes + (elementBytes == 1 ? 4 : 0));
}
struct KvLayer {
  uint8_t *base;
  int64_t blockBytes;
  int64_t valueOffsetBytes;
};
static_assert(sizeof(KvLayer) == 24);

// rope_cache_write: splits the merged projection of each token into q, k, v;
// normalises each head of q and k where weights are given, or with normRows all
// heads of q, and of k, as one row; rotates q and k (not where rotaryDim is 0);
// stores q, and writes k and v at the token's position. Items: tokens.
enum class HeadNorm : int32_t { Rms = 0, Layer = 1 };
struct RopeCacheWriteParams {
  const float *qkv;   // [numTokens, (heads + 2 * kvHeads) * headDim]: q, k, v
  const float *table; // rope_table's output [numTokens, rotaryDim], or null
  const float *qNorm; // [headDim], [heads, headDim] with a stride, or null
  const float *kNorm; // [headDim], [kvHeads, headDim] with a stride, or null
  float *query;       // [numTokens, heads * headDim]
  KvLayer cache;
  const int32_t *blockTable;     // physical blocks of all sequences
  const SequenceSpan *sequences; // [numSequences], ordered by firstRow
  const int32_t *tokenSequence;  // [numTokens] index into sequences
  int32_t numSequences;
  int32_t numTokens;
  int32_t heads;
  int32_t kvHeads;
  int32_t headDim;
  int32_t rotaryDim;
  float normEps;
  float normOffset;    // added to each weight of an RMS norm
  HeadNorm normKind;   // of heads
  int32_t normStride;  // from one head's weights to the next: 0 where shared
  int32_t normRows;    // 1: RMS of all heads together
  int32_t interleaved; // 1: pairs are (2i, 2i + 1), else (i, i + rotaryDim / 2)
};

// attention: causal grouped attention of each query over the cache, by the
// block law of docs/numerics.md. Position i sees j with j <= i and, where
// window > 0, i - j < window; a bidirectional one sees all positions of its
// span, which then holds the whole sequence. Output to float32 or quantised rows, as in
// rms_norm; K-groups of the quantised rows never straddle a head when headDim
// is a multiple of the group; otherwise a quantize launch follows.
// Items: numTokens * heads; with g = heads / kvHeads,
//   item = (kvHead * numTokens + token) * g + headInGroup,
// so that a slice holds the queries that read the same keys.
struct AttentionParams {
  const float *query; // [numTokens, heads * headDim]
  KvLayer cache;
  float *output; // [numTokens, heads * headDim] or null
  QuantizedRows quantized;
  const int32_t *blockTable;
  const SequenceSpan *sequences;
  const int32_t *tokenSequence;
  int32_t numSequences;
  int32_t numTokens;
  int32_t heads;
  int32_t kvHeads;
  int32_t headDim;
  int32_t window;        // 0: unlimited
  float scale;           // of the scores
  float softCap;         // 0: none
  int32_t bidirectional; // 1: has no window
};

// alibi_attention: `attention`, with the bias of compiler/kernels/Alibi.h added to
// each score behind scale and cap. Never bidirectional.
struct AlibiAttentionParams {
  AttentionParams attention;
  const float *slopes; // [heads]
  int32_t rounded;     // 1: by position and in bfloat16; 0: by distance
  int32_t reserved;
};

// route: of the softmax of each token's logits, the topK largest in descending
// order (of equal ones the first): routes[t] holds their numbers, then their
// probabilities, divided by their sum where `normalized` is 1. Items: tokens.
struct RouteParams {
  const float *logits; // [numTokens, experts]
  float *routes;       // [numTokens, 2 * topK]
  int32_t numTokens;
  int32_t experts;
  int32_t topK;
  int32_t normalized;
};

// order_slots: slot t * topK + j is of choice j of token t. The slots ordered by
// expert, then by number:
//   [0, slots)           the slot of each ordered row
//   [slots, 2 * slots)   the ordered row of each slot
//   [2 * slots, + experts + 1)  where the rows of each expert begin, then slots
// Items: one.
struct OrderSlotsParams {
  const float *routes; // [numTokens, 2 * topK]
  int32_t *order;      // [2 * slots + experts + 1], slots = numTokens * topK
  int32_t numTokens;
  int32_t experts;
  int32_t topK;
  int32_t reserved;
};

// dispatch: output[r, :] = input[order[r] / topK, :]. Items: slots.
struct DispatchParams {
  const float *input;   // [tokens, width]
  const int32_t *order; // of order_slots
  float *output;        // [numSlots, width]
  int32_t numSlots;
  int32_t width;
  int32_t topK;
  int32_t reserved;
};

// expert_linear: `linear` with numTokens ordered rows; those of expert e are
// multiplied with rows [e * n, (e + 1) * n) of the weights, n a multiple of 16.
// No bias, no residual. Items: experts times row tiles (n / 16).
struct ExpertLinearParams {
  LinearParams linear;
  const int32_t *order; // of order_slots
  int32_t experts;
  int32_t reserved;
};

// combine: output[t] = input[row of slot (t, 0)] * p0, then for each further
// choice j fma(input[row of slot (t, j)], pj, ·). Items: tokens.
struct CombineParams {
  const float *input;   // [slots, width], ordered
  const int32_t *order; // of order_slots
  const float *routes;  // [numTokens, 2 * topK]
  float *output;        // [numTokens, width]
  int32_t numTokens;
  int32_t width;
  int32_t topK;
  int32_t reserved;
};

// gather_rows: output[r, :] = input[rows[r], :]. Items: rows.
struct GatherRowsParams {
  const float *input;  // [numTokens, width]
  const int32_t *rows; // [numRows]
  float *output;       // [numRows, width]
  int32_t numRows;
  int32_t width;
};

// pool: the rows of a sequence become one, for the sequence of each of `rows`:
// their mean, the first or the last; then divided by its Euclidean length where
// `normalize` is 1 (docs/numerics.md, "Pooling"). Items: rows.
enum class PoolKind : int32_t { Mean = 0, Cls = 1, Last = 2 };
struct PoolParams {
  const float *input;            // [numTokens, width]
  const int32_t *rows;           // [numRows]
  const SequenceSpan *sequences; // [numSequences]
  const int32_t *tokenSequence;  // [numTokens]
  float *output;                 // [numRows, width]
  int32_t numRows;
  int32_t width;
  PoolKind kind;
  int32_t normalize;
};

} // namespace ingot::abi
