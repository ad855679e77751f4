// linear over int8 and int4 weights. The slice is a row of weight tiles; tokens
// are taken a block at a time, so that activations stay in the second-level
// cache while the tiles stream, and within a block a register tile of tokens
// shares each load of weights. `tokens` is the smallest count that the variant
// serves: 1 streams weights from memory for single tokens; the largest first
// lays a stretch of a tile's weights out in scratch, so that what a weight costs
// besides its products is paid once for the block of tokens.
#include "compiler/kernels/cpu/IntegerDot.h"
#include "compiler/kernels/cpu/LinearBlock.h"
#include "compiler/kernels/cpu/LinearOutput.h"
#include "compiler/kernels/cpu/Simd.h"
#include "compiler/kernels/cpu/WeightCodes.h"
#include "runtime/plan/KernelAbi.h"

using namespace ingot;
using namespace ingot::kernels;

// Weights that come from memory are asked for this far ahead.
static constexpr int64_t kPrefetchBytes = 2048;

namespace {
struct Tile {
  const uint8_t *codes;
  const uint16_t *scales;
  const uint16_t *mins;
};
} // namespace

template <WeightCode Code, int Tokens, bool Stream>
INGOT_INLINE void multiplyTile(const abi::LinearParams &params, Tile tile,
                               int32_t tileIndex, int32_t token, int32_t group,
                               bool minimum) {
  constexpr int64_t blockBytes = tileBytes(Code, 32);
  const int32_t paddedK = static_cast<int32_t>(roundUp(params.k, 32));
  const int64_t scalesOffset = params.quantized.scalesOffset;
  const int64_t sumsOffset = params.quantized.sumsOffset;
  // The scale and sum of a token's group g are at rows[t] + offset + 4g.
  const uint8_t *rows[Tokens];
  INGOT_UNROLL for (int t = 0; t < Tokens; ++t) rows[t] =
      params.quantized.data + (token + t) * params.quantized.rowBytes;
  VecF total[Tokens];
  INGOT_UNROLL for (int t = 0; t < Tokens; ++t) total[t] = splat(0.0f);

  int64_t at = 0;
  INGOT_NO_UNROLL for (int64_t g = 0; at < paddedK; ++g) {
    TileSums<Tokens> sums;
    sums.clear();
    const int64_t end = at + group < paddedK ? at + group : paddedK;
    INGOT_NO_UNROLL do {
      if constexpr (Stream)
        INGOT_UNROLL for (int64_t line = 0; line < blockBytes; line += 64)
            __builtin_prefetch(tile.codes + kPrefetchBytes + line);
      addBlock<Code, Tokens>(sums, tile.codes, rows, at);
      tile.codes += blockBytes;
      at += 32;
    }
    while (at < end)
      ;

    const VecF weightScale = widen(loadAs<VecH>(tile.scales + g * kLanes));
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) {
      const int32_t sum = loadWord(rows[t] + sumsOffset + 4 * g);
      const float scale =
          __builtin_bit_cast(float, loadWord(rows[t] + scalesOffset + 4 * g));
      VecI dot = sums.of(t);
      if (!minimum)
        dot -= splat(sum) << (Code == WeightCode::I8 ? 7 : 3);
      total[t] = fmaOf(toFloat(dot), weightScale * splat(scale), total[t]);
      if (minimum) {
        const VecF least = widen(loadAs<VecH>(tile.mins + g * kLanes));
        total[t] = fmaOf(least, splat(scale) * toFloat(splat(sum)), total[t]);
      }
    }
  }
  storeOutputs(params, tileIndex, token, total, Tokens);
}

// What the scratch of the variant for many tokens holds.
namespace {
struct Stretch {
  uint8_t *weights; // prepared, as many blocks of 32 as the stretch has
  float *scales;    // [groups][16]
  float *mins;      // [groups][16]
  VecF *totals;     // [tokens of a block]
};
} // namespace

INGOT_INLINE Stretch stretchIn(void *scratch) {
  auto *bytes = static_cast<uint8_t *>(scratch);
  Stretch stretch;
  stretch.weights = bytes;
  stretch.scales = reinterpret_cast<float *>(bytes + kStretchWeightBytes);
  stretch.mins = stretch.scales + kStretchGroups * kLanes;
  stretch.totals =
      reinterpret_cast<VecF *>(stretch.mins + kStretchGroups * kLanes);
  return stretch;
}

// Adds the elements [begin, end) of K to the totals of tokens [token, token +
// Tokens), or, with `begin` 0, starts them.
template <WeightCode Code, int Tokens>
INGOT_INLINE void multiplyStretch(const abi::LinearParams &params,
                                  const Stretch &stretch, VecF *totals,
                                  int32_t token, int64_t begin, int64_t end,
                                  int32_t group, bool minimum) {
  // Where the scales and sums of the group are in each row.
  int64_t scaleAt = params.quantized.scalesOffset + 4 * (begin / group);
  int64_t sumAt = params.quantized.sumsOffset + 4 * (begin / group);
  const uint8_t *rows[Tokens];
  INGOT_UNROLL for (int t = 0; t < Tokens; ++t) rows[t] =
      params.quantized.data + (token + t) * params.quantized.rowBytes;
  if (begin == 0)
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) totals[t] = splat(0.0f);
  const uint8_t *weights = stretch.weights;
  int64_t at = begin;
  INGOT_NO_UNROLL for (int64_t g = 0; at < end; ++g) {
    TileSums<Tokens> sums;
    const int64_t groupEnd = at + group < end ? at + group : end;
    addPrepared<Code, true>(sums, weights, rows, at);
    INGOT_NO_UNROLL for (at += 32, weights += preparedBytes(Code);
                         at < groupEnd;
                         at += 32, weights += preparedBytes(Code))
        addPrepared<Code, false>(sums, weights, rows, at);
    const VecF weightScale = load(stretch.scales + g * kLanes);
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) {
      const float scale =
          __builtin_bit_cast(float, loadWord(rows[t] + scaleAt));
      VecI dot = sums.of(t);
      if (Code == WeightCode::I4 && !minimum)
        dot -= splat(loadWord(rows[t] + sumAt)) << 3;
      VecF total = totals[t];
      total = fmaOf(toFloat(dot), weightScale * splat(scale), total);
      if (minimum) {
        const int32_t sum = loadWord(rows[t] + sumAt);
        total = fmaOf(load(stretch.mins + g * kLanes),
                      splat(scale) * toFloat(splat(sum)), total);
      }
      totals[t] = total;
    }
    // Without this the optimiser keeps a pointer to each token's scale and sum and
    // runs out of registers.
    scaleAt += 4;
    sumAt += 4;
    asm volatile("" : "+r"(scaleAt), "+r"(sumAt));
  }
}

// Tokens [blockStart, blockEnd) against one tile, a stretch of K after another.
template <WeightCode Code>
INGOT_INLINE void multiplyPrepared(const abi::LinearParams &params, Tile tile,
                                   const Stretch &stretch, int32_t tileIndex,
                                   int32_t blockStart, int32_t blockEnd,
                                   int32_t group, bool minimum) {
  const int64_t paddedK = roundUp(params.k, 32);
  const int64_t length = stretchElements(group);
  for (int64_t begin = 0; begin < paddedK; begin += length) {
    const int64_t end = begin + length < paddedK ? begin + length : paddedK;
    uint8_t *to = stretch.weights;
    for (int64_t at = begin; at < end; at += 32) {
      prepareBlock<Code>(to, tile.codes, minimum);
      tile.codes += tileBytes(Code, 32);
      to += preparedBytes(Code);
    }
    for (int64_t g = 0; begin + g * group < end; ++g) {
      store(stretch.scales + g * kLanes, widen(loadAs<VecH>(tile.scales)));
      tile.scales += kLanes;
      if (minimum) {
        store(stretch.mins + g * kLanes, widen(loadAs<VecH>(tile.mins)));
        tile.mins += kLanes;
      }
    }
    // The codes that follow are asked for while these are multiplied, a part with
    // each register tile of tokens; and outputs are stored with the tile, for both
    // wait for memory and neither should wait alone.
    const int64_t ahead = roundUp((end - begin) * (tileBytes(Code, 32) / 32) *
                                      kPreparedTokens / (blockEnd - blockStart),
                                  64);
    const uint8_t *next = tile.codes;
    const bool last = end == paddedK;
    int32_t token = blockStart;
    VecF *totals = stretch.totals;
    for (; token + kPreparedTokens <= blockEnd;
         token += kPreparedTokens, totals += kPreparedTokens) {
      INGOT_NO_UNROLL for (int64_t line = 0; line < ahead; line += 64)
          __builtin_prefetch(next + line);
      next += ahead;
      multiplyStretch<Code, kPreparedTokens>(params, stretch, totals, token,
                                             begin, end, group, minimum);
      if (last)
        storeOutputs(params, tileIndex, token, totals, kPreparedTokens);
    }
    for (; token < blockEnd; ++token, ++totals) {
      multiplyStretch<Code, 1>(params, stretch, totals, token, begin, end,
                               group, minimum);
      if (last)
        storeOutputs(params, tileIndex, token, totals, 1);
    }
  }
}

template <WeightCode Code>
INGOT_INLINE void linear(const abi::LinearParams *given,
                         const abi::Slice *slice, int32_t group,
                         int32_t minimum, int32_t tokens) {
  const abi::LinearParams params = *given;
  const int64_t paddedK = roundUp(params.k, 32);
  const int64_t groups = (params.k + group - 1) / group;
  const int32_t blockTokens =
      linearBlockTokens(activationBytes(Code) * paddedK, tokens);

  for (int32_t blockStart = 0; blockStart < params.numTokens;
       blockStart += blockTokens) {
    const int32_t blockEnd = minOf(blockStart + blockTokens, params.numTokens);
    for (int32_t index = slice->begin; index < slice->end; ++index) {
      Tile tile;
      tile.codes = static_cast<const uint8_t *>(params.weights.codes) +
                   index * tileBytes(Code, paddedK);
      tile.scales = params.weights.scales + index * groups * kLanes;
      tile.mins =
          minimum ? params.weights.mins + index * groups * kLanes : nullptr;
      if (tokens >= kManyTokensFrom) {
        multiplyPrepared<Code>(params, tile, stretchIn(slice->scratch), index,
                               blockStart, blockEnd, group, minimum);
        continue;
      }
      int32_t token = blockStart;
      if (tokens > 1) {
        for (; token + kManyTokens <= blockEnd; token += kManyTokens)
          multiplyTile<Code, kManyTokens, false>(params, tile, index, token,
                                                 group, minimum);
        for (; token + 2 <= blockEnd; token += 2)
          multiplyTile<Code, 2, false>(params, tile, index, token, group,
                                       minimum);
      }
      for (; token < blockEnd; ++token)
        multiplyTile<Code, 1, true>(params, tile, index, token, group, minimum);
    }
  }
}

extern "C" void ingot_linear_i8(const abi::LinearParams *params,
                                const abi::Slice *slice, int32_t group,
                                int32_t minimum, int32_t tokens) {
  linear<WeightCode::I8>(params, slice, group, minimum, tokens);
}
extern "C" void ingot_linear_i4(const abi::LinearParams *params,
                                const abi::Slice *slice, int32_t group,
                                int32_t minimum, int32_t tokens) {
  linear<WeightCode::I4>(params, slice, group, minimum, tokens);
}

// The rows of each expert with its own tiles. Items are tiles, expert by expert.
template <WeightCode Code>
INGOT_INLINE void expertLinear(const abi::ExpertLinearParams *given,
                               const abi::Slice *slice, int32_t group,
                               int32_t minimum, int32_t tokens) {
  const int32_t tiles = given->linear.n / kLanes;
  const int32_t *begins = given->order + 2 * given->linear.numTokens;
  const int64_t paddedK = roundUp(given->linear.k, 32);
  const int64_t groups = (given->linear.k + group - 1) / group;
  INGOT_NO_UNROLL for (int32_t item = slice->begin; item < slice->end;) {
    const int32_t expert = item / tiles;
    const int32_t end = minOf(slice->end, (expert + 1) * tiles);
    const int32_t first = clampOf(begins[expert], given->linear.numTokens);
    abi::LinearParams params = given->linear;
    params.numTokens =
        clampOf(begins[expert + 1], given->linear.numTokens) - first;
    if (params.numTokens > 0) {
      const int64_t tile = static_cast<int64_t>(expert) * tiles;
      params.output += first * params.outputStride;
      params.weights.codes =
          static_cast<const uint8_t *>(params.weights.codes) +
          tile * tileBytes(Code, paddedK);
      params.weights.scales += tile * groups * kLanes;
      if (minimum)
        params.weights.mins += tile * groups * kLanes;
      params.quantized.data += first * params.quantized.rowBytes;
      abi::Slice part = *slice;
      part.begin = item - expert * tiles;
      part.end = end - expert * tiles;
      linear<Code>(&params, &part, group, minimum, tokens);
    }
    item = end;
  }
}

extern "C" void ingot_expert_linear_i8(const abi::ExpertLinearParams *params,
                                       const abi::Slice *slice, int32_t group,
                                       int32_t minimum, int32_t tokens) {
  expertLinear<WeightCode::I8>(params, slice, group, minimum, tokens);
}
extern "C" void ingot_expert_linear_i4(const abi::ExpertLinearParams *params,
                                       const abi::Slice *slice, int32_t group,
                                       int32_t minimum, int32_t tokens) {
  expertLinear<WeightCode::I4>(params, slice, group, minimum, tokens);
}
