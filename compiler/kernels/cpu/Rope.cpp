// rope_table and rope_cache_write. The second splits the merged projection of a
// token, normalises and rotates heads of q and k, and writes k (transposed, so
// that tokens are lanes of the scores) and v into the cache.
#include "compiler/kernels/Power.h"
#include "compiler/kernels/SinCos.h"
#include "compiler/kernels/cpu/KvCache.h"
#include "compiler/kernels/cpu/RowMoments.h"
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
    const float *invFreq = params->invFreq;
    int32_t length = params->rotaryLengths[token];
    bool computed = false;
    DynamicBase base = {};
    if (params->scaling == abi::RopeScaling::Listed) {
      invFreq += length > params->original ? half : 0;
    } else if (params->scaling == abi::RopeScaling::Dynamic) {
      length = maxOf(length, params->positions[token] + 1);
      computed = length > params->original;
      if (computed)
        base = dynamicBase(params->theta, params->factor, params->original,
                           length, half);
    }
    for (int32_t i = 0; i < half; ++i) {
      const float frequency = computed ? dynamicFrequency(base, i) : invFreq[i];
      const float angle = position * frequency;
      const SinCos both = sinCosLaw(static_cast<double>(angle));
      cosines[i] = static_cast<float>(both.cosine * factor);
      sines[i] = static_cast<float>(both.sine * factor);
    }
  }
}

// How the heads of q, or of k, are made.
struct HeadMaker {
  const float *norm; // of head 0, or null
  int32_t normStride;
  const float *cosines; // then as many sines
  int32_t headDim;
  int32_t rotaryDim;
  bool interleaved;
  bool isLayer;
  bool hasRowInverse;
  float rowInverse; // of all heads together
  float eps;
  float offset;
};

// Head number `index` at `from`, normalised where there is a norm, then rotated,
// to `to`.
INGOT_INLINE void makeHead(float *__restrict to, const float *__restrict from,
                           const HeadMaker &maker, int32_t index) {
  const int32_t headDim = maker.headDim;
  float head[kMaxHeadDim];
  if (maker.norm) {
    const float *norm =
        maker.norm + static_cast<int64_t>(index) * maker.normStride;
    if (maker.isLayer) {
      const RowMoments row = momentsOf(from, headDim, maker.eps);
      for (int32_t d = 0; d < headDim; ++d)
        head[d] = ((from[d] - row.mean) * row.inverse) * norm[d];
    } else {
      const float r = maker.hasRowInverse
                          ? maker.rowInverse
                          : inverseRms(from, headDim, maker.eps);
      if (maker.offset == 0.0f) {
        for (int32_t d = 0; d < headDim; ++d)
          head[d] = (from[d] * r) * norm[d];
      } else {
        for (int32_t d = 0; d < headDim; ++d)
          head[d] = (from[d] * r) * (norm[d] + maker.offset);
      }
    }
  } else {
    for (int32_t d = 0; d < headDim; ++d)
      head[d] = from[d];
  }
  const int32_t half = maker.rotaryDim / 2;
  const float *__restrict cosines = maker.cosines;
  const float *__restrict sines = cosines + half;
  if (maker.interleaved) {
    for (int32_t i = 0; i < half; ++i) {
      const float a = head[2 * i];
      const float b = head[2 * i + 1];
      to[2 * i] = __builtin_fmaf(-b, sines[i], a * cosines[i]);
      to[2 * i + 1] = __builtin_fmaf(a, sines[i], b * cosines[i]);
    }
  } else {
    for (int32_t i = 0; i < half; ++i) {
      const float a = head[i];
      const float b = head[half + i];
      to[i] = __builtin_fmaf(-b, sines[i], a * cosines[i]);
      to[half + i] = __builtin_fmaf(a, sines[i], b * cosines[i]);
    }
  }
  for (int32_t d = maker.rotaryDim; d < headDim; ++d)
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
    float *query =
        params->query + static_cast<int64_t>(token) * heads * headDim;
    HeadMaker maker = {params->qNorm,
                       params->normStride,
                       params->table + static_cast<int64_t>(token) * rotaryDim,
                       headDim,
                       rotaryDim,
                       params->interleaved != 0,
                       params->normKind == abi::HeadNorm::Layer,
                       params->normRows != 0,
                       0.0f,
                       params->normEps,
                       params->normOffset};
    if (maker.hasRowInverse)
      maker.rowInverse = inverseRms(q, heads * headDim, params->normEps);
    for (int32_t h = 0; h < heads; ++h)
      makeHead(query + h * headDim, q + h * headDim, maker, h);
    maker.norm = params->kNorm;
    if (maker.hasRowInverse)
      maker.rowInverse = inverseRms(k, kvHeads * headDim, params->normEps);

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
      makeHead(key, k + h * headDim, maker, h);
      const float *value = v + h * headDim;
      const int64_t offset = h * headElements<Element>(headDim);
      Element *keys = block.keys + offset;
      Element *values = block.values + offset;
      Element *ownValue = values + slot * headDim;
      if constexpr (kHasKvScales<Element>) {
        storeHead(keys + slot, abi::kBlockTokens, key, headDim,
                  scalesOf(keys, headDim) + slot);
        storeHead(ownValue, 1, value, headDim,
                  scalesOf(values, headDim) + slot);
      } else {
        storeHead(keys + slot, abi::kBlockTokens, key, headDim);
        storeHead(ownValue, 1, value, headDim);
      }
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
extern "C" void
ingot_rope_cache_write_i8(const abi::RopeCacheWriteParams *params,
                          const abi::Slice *slice, int32_t headDim) {
  ropeCacheWrite<int8_t>(params, slice, headDim);
}
