// linear over float weights (float32, float16, bfloat16) and float32
// activations: 16 output rows are the lanes, K is summed in groups of 32. Tokens
// share each load of weights; a single token keeps several groups in flight, for
// one group is one chain of dependent additions.
#include "compiler/kernels/cpu/IntegerDot.h"
#include "compiler/kernels/cpu/LinearBlock.h"
#include "compiler/kernels/cpu/LinearOutput.h"
#include "compiler/kernels/cpu/Simd.h"
#include "compiler/kernels/cpu/WeightCodes.h"
#include "runtime/plan/KernelAbi.h"

using namespace ingot;
using namespace ingot::kernels;

template <WeightCode Code>
INGOT_INLINE VecF weightsAt(const uint8_t *tile, int64_t k) {
  if constexpr (Code == WeightCode::F32)
    return loadAs<VecF>(tile + k * 64);
  if constexpr (Code == WeightCode::F16)
    return widen(loadAs<VecH>(tile + k * 32));
  if constexpr (Code == WeightCode::BF16)
    return widenBrain(loadAs<VecU16>(tile + k * 32));
}

template <WeightCode Code, int Tokens, int Groups>
INGOT_INLINE void addGroups(VecF *total, const uint8_t *tile,
                            const float *const *x, int64_t at, int32_t count) {
  VecF part[Groups][Tokens];
  INGOT_UNROLL for (int g = 0; g < Groups; ++g)
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) part[g][t] = splat(0.0f);
  INGOT_NO_UNROLL for (int64_t k = at; k < at + count; ++k)
      INGOT_UNROLL for (int g = 0; g < Groups; ++g) {
    const VecF w = weightsAt<Code>(tile, k + g * abi::kFloatGroup);
    if constexpr (Groups > 1)
      __builtin_prefetch(tile +
                         tileBytes(Code, k + (g + Groups) * abi::kFloatGroup));
    INGOT_UNROLL for (int t = 0; t < Tokens; ++t) part[g][t] =
        fmaOf(w, splat(x[t][k + g * abi::kFloatGroup]), part[g][t]);
  }
  INGOT_UNROLL for (int g = 0; g < Groups; ++g)
      INGOT_UNROLL for (int t = 0; t < Tokens; ++t) total[t] =
          total[t] + part[g][t];
}

template <WeightCode Code, int Tokens>
INGOT_INLINE void multiplyTokens(const abi::LinearParams &params,
                                 const uint8_t *tile, int32_t tileIndex,
                                 int32_t token) {
  constexpr int groupsInFlight = Tokens == 1 ? 4 : 1;
  const float *x[Tokens];
  VecF total[Tokens];
  INGOT_UNROLL for (int t = 0; t < Tokens; ++t) {
    x[t] = params.input + static_cast<int64_t>(token + t) * params.k;
    total[t] = splat(0.0f);
  }
  int64_t at = 0;
  constexpr int64_t whole = groupsInFlight * abi::kFloatGroup;
  for (; at + whole <= params.k; at += whole)
    addGroups<Code, Tokens, groupsInFlight>(total, tile, x, at,
                                            abi::kFloatGroup);
  for (; at < params.k; at += abi::kFloatGroup)
    addGroups<Code, Tokens, 1>(
        total, tile, x, at,
        minOf(abi::kFloatGroup, static_cast<int32_t>(params.k - at)));
  storeOutputs(params, tileIndex, token, total, Tokens);
}

template <WeightCode Code>
INGOT_INLINE void linear(const abi::LinearParams *given,
                         const abi::Slice *slice, int32_t tokens) {
  const abi::LinearParams params = *given;
  const int64_t stride = tileBytes(Code, roundUp(params.k, 32));
  const int32_t blockTokens = linearBlockTokens(2 * params.k, tokens);
  for (int32_t blockStart = 0; blockStart < params.numTokens;
       blockStart += blockTokens) {
    const int32_t blockEnd = minOf(blockStart + blockTokens, params.numTokens);
    for (int32_t index = slice->begin; index < slice->end; ++index) {
      const uint8_t *tile =
          static_cast<const uint8_t *>(params.weights.codes) + index * stride;
      int32_t token = blockStart;
      if (tokens > 1)
        for (; token + kManyTokens <= blockEnd; token += kManyTokens)
          multiplyTokens<Code, kManyTokens>(params, tile, index, token);
      if (tokens > 1)
        for (; token + 2 <= blockEnd; token += 2)
          multiplyTokens<Code, 2>(params, tile, index, token);
      for (; token < blockEnd; ++token)
        multiplyTokens<Code, 1>(params, tile, index, token);
    }
  }
}

#define INGOT_LINEAR(NAME, CODE)                                               \
  extern "C" void ingot_linear_##NAME(const abi::LinearParams *params,         \
                                      const abi::Slice *slice,                 \
                                      int32_t tokens) {                        \
    linear<CODE>(params, slice, tokens);                                       \
  }
INGOT_LINEAR(f32, WeightCode::F32)
INGOT_LINEAR(f16, WeightCode::F16)
INGOT_LINEAR(bf16, WeightCode::BF16)

// The rows of each expert with its own tiles. Items are tiles, expert by expert.
template <WeightCode Code>
INGOT_INLINE void expertLinear(const abi::ExpertLinearParams *given,
                               const abi::Slice *slice, int32_t tokens) {
  const int32_t tiles = given->linear.n / kLanes;
  const int32_t *begins = given->order + 2 * given->linear.numTokens;
  const int64_t paddedK = roundUp(given->linear.k, 32);
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
      params.input += static_cast<int64_t>(first) * params.k;
      abi::Slice part = *slice;
      part.begin = item - expert * tiles;
      part.end = end - expert * tiles;
      linear<Code>(&params, &part, tokens);
    }
    item = end;
  }
}

#define INGOT_EXPERT_LINEAR(NAME, CODE)                                        \
  extern "C" void ingot_expert_linear_##NAME(                                  \
      const abi::ExpertLinearParams *params, const abi::Slice *slice,          \
      int32_t tokens) {                                                        \
    expertLinear<CODE>(params, slice, tokens);                                 \
  }
INGOT_EXPERT_LINEAR(f32, WeightCode::F32)
INGOT_EXPERT_LINEAR(f16, WeightCode::F16)
INGOT_EXPERT_LINEAR(bf16, WeightCode::BF16)
