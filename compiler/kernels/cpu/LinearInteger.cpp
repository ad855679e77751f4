// linear over int8 and int4 weights. The slice is a row of weight tiles; tokens
// are taken a block at a time, so that activations stay in the second-level
// cache while the tiles stream, and within a block a register tile of tokens
// shares each load of weights. `tokens` is the smallest count that the variant
// serves: 1 streams weights from memory for single tokens.
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
      int32_t token = blockStart;
      if (tokens == 1) {
        for (; token < blockEnd; ++token)
          multiplyTile<Code, 1, true>(params, tile, index, token, group,
                                      minimum);
        continue;
      }
      for (; token + kManyTokens <= blockEnd; token += kManyTokens)
        multiplyTile<Code, kManyTokens, false>(params, tile, index, token,
                                               group, minimum);
      for (; token + 2 <= blockEnd; token += 2)
        multiplyTile<Code, 2, false>(params, tile, index, token, group,
                                     minimum);
      if (token < blockEnd)
        multiplyTile<Code, 1, false>(params, tile, index, token, group,
                                     minimum);
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
