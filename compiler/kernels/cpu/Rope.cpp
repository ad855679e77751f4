// rope_table and rope_cache_write. The second splits the merged projection of a
// token, normalises and rotates heads of q and k, and writes k (transposed, so
// that tokens are lanes of the scores) and v into the cache.
#include "compiler/kernels/SinCos.h"
#include "compiler/kernels/cpu/KvCache.h"
#include "compiler/kernels/cpu/Simd.h"
#include "runtime/plan/KernelAbi.h"

using namespace ingot;
using namespace ingot::kernels;

extern "C" void ingot_rope_table(const abi::RopeTableParams *params,
                                 const abi::Slice *slice) {
  const int32_t half = params->rotaryDim / 2;
  const double factor = params->attentionFactor;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    float *cosines =
        params->output + static_cast<int64_t>(token) * params->rotaryDim;
    float *sines = cosines + half;
    const float position = static_cast<float>(params->positions[token]);
    for (int32_t i = 0; i < half; ++i) {
      const float angle = position * params->invFreq[i];
      const SinCos both = sinCosLaw(static_cast<double>(angle));
      cosines[i] = static_cast<float>(both.cosine * factor);
      sines[i] = static_cast<float>(both.sine * factor);
    }
  }
}

// The head `from`, normalised where `norm` is given, then rotated, to `to`.
INGOT_INLINE void rotateHead(float *__restrict to, const float *__restrict from,
                             const float *norm, const float *__restrict cosines,
                             int32_t headDim, int32_t rotaryDim, float eps) {
  float head[kMaxHeadDim];
  if (norm) {
    VecF sum = splat(0.0f);
    for (int32_t d = 0; d < headDim; d += kLanes) {
      VecF value = loadSome(from + d, headDim - d);
      sum = fmaOf(value, value, sum);
    }
    const float r =
        1.0f /
        __builtin_sqrtf(sumLanes(sum) / static_cast<float>(headDim) + eps);
    for (int32_t d = 0; d < headDim; ++d)
      head[d] = (from[d] * r) * norm[d];
  } else {
    for (int32_t d = 0; d < headDim; ++d)
      head[d] = from[d];
  }
  const int32_t half = rotaryDim / 2;
  const float *__restrict sines = cosines + half;
  for (int32_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[half + i];
    to[i] = __builtin_fmaf(-b, sines[i], a * cosines[i]);
    to[half + i] = __builtin_fmaf(a, sines[i], b * cosines[i]);
  }
  for (int32_t d = rotaryDim; d < headDim; ++d)
    to[d] = head[d];
}

template <typename Element>
INGOT_INLINE void ropeCacheWrite(const abi::RopeCacheWriteParams *params,
                                 const abi::Slice *slice, int32_t headDim) {
  const int32_t heads = params->heads;
  const int32_t kvHeads = params->kvHeads;
  const int32_t rotaryDim = params->rotaryDim;
  for (int32_t token = slice->begin; token < slice->end; ++token) {
    const float *q = params->qkv + static_cast<int64_t>(token) *
                                       (heads + 2 * kvHeads) * headDim;
    const float *k = q + heads * headDim;
    const float *v = k + kvHeads * headDim;
    const float *cosines =
        params->table + static_cast<int64_t>(token) * rotaryDim;
    float *query =
        params->query + static_cast<int64_t>(token) * heads * headDim;
    for (int32_t h = 0; h < heads; ++h)
      rotateHead(query + h * headDim, q + h * headDim, params->qNorm, cosines,
                 headDim, rotaryDim, params->normEps);

    const abi::SequenceSpan sequence =
        params->sequences[params->tokenSequence[token]];
    const int32_t position =
        sequence.firstPosition + (token - sequence.firstRow);
    const KvBlock<Element> block =
        blockOf<Element>(params->cache, params->blockTable, sequence,
                         position / abi::kBlockTokens);
    const int32_t slot = position % abi::kBlockTokens;
    for (int32_t h = 0; h < kvHeads; ++h) {
      float key[kMaxHeadDim];
      rotateHead(key, k + h * headDim, params->kNorm, cosines, headDim,
                 rotaryDim, params->normEps);
      Element *keys = block.keys +
                      static_cast<int64_t>(h) * headDim * abi::kBlockTokens +
                      slot;
      Element *values =
          block.values +
          (static_cast<int64_t>(h) * abi::kBlockTokens + slot) * headDim;
      for (int32_t d = 0; d < headDim; ++d)
        keys[d * abi::kBlockTokens] = static_cast<Element>(key[d]);
      for (int32_t d = 0; d < headDim; ++d)
        values[d] = static_cast<Element>(v[h * headDim + d]);
    }
  }
}

extern "C" void
ingot_rope_cache_write_f32(const abi::RopeCacheWriteParams *params,
                           const abi::Slice *slice, int32_t headDim) {
  ropeCacheWrite<float>(params, slice, headDim);
}
extern "C" void
ingot_rope_cache_write_f16(const abi::RopeCacheWriteParams *params,
                           const abi::Slice *slice, int32_t headDim) {
  ropeCacheWrite<_Float16>(params, slice, headDim);
}
