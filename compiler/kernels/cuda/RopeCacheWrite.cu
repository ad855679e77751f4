// rope_cache_write: a warp for each head of q, k and v of a token: the norm of the
// head where there is one, the rotation, and the store into the query or the cache.
// A sum over a head is every 32nd element ascending with fma, then pairwise over
// lanes; over all heads, as in RmsNorm.cu.
#include "compiler/kernels/cuda/KvTile.h"
#include "compiler/kernels/cuda/RowBlock.h"

using namespace ingot;
using namespace ingot::device;

// Mean and inverse deviation of a head, or the inverse of its root mean square.
struct HeadMoments {
  float mean, inverse;
};

INGOT_DEVICE HeadMoments momentsOf(const float *x, bool isLayer, float eps) {
  float mean = 0.0f;
  if (isLayer) {
    for (int32_t d = laneOf(); d < kHeadDim; d += 32)
      mean = mean + x[d];
    mean = warpSum(mean) / (float)kHeadDim;
  }
  float squares = 0.0f;
  for (int32_t d = laneOf(); d < kHeadDim; d += 32) {
    const float apart = isLayer ? x[d] - mean : x[d];
    squares = __builtin_fmaf(apart, apart, squares);
  }
  return {mean, 1.0f / sqrtf(warpSum(squares) / (float)kHeadDim + eps)};
}

// One key or value to its place in the cache, by all lanes of a warp.
INGOT_DEVICE void storeHead(uint8_t *head, int32_t token, const float *x) {
  const int32_t lane = laneOf();
  if constexpr (kKv == KvElement::I8) {
    uint32_t largest = 0;
    for (int32_t d = lane; d < kHeadDim; d += 32) {
      const uint32_t size = bitsOf(x[d]) & 0x7fffffffu;
      largest = size > largest ? size : largest;
    }
    largest = __reduce_max_sync(kAllLanes, largest);
    const float amax = floatOf(largest);
    const bool isFinite = largest < kInfinityBits;
    // Zero, or too small to be divided by: every code is zero.
    const bool isCoded =
        isFinite && largest != 0 && bitsOf(127.0f / amax) < kInfinityBits;
    const float inverse = isCoded ? 127.0f / amax : 0.0f;
    for (int32_t d = lane; d < kHeadDim; d += 32)
      ((int8_t *)head)[token * kHeadDim + d] =
          (int8_t)(int32_t)rintf((isFinite ? x[d] : 0.0f) * inverse);
    if (lane == 0)
      ((float *)(head + abi::kBlockTokens * kHeadDim))[token] =
          !isFinite ? notANumber()
          : isCoded ? amax / 127.0f
                    : 1.0f;
  } else {
    for (int32_t d = lane; d < kHeadDim; d += 32)
      ((uint16_t *)head)[token * kHeadDim + d] =
          kKv == KvElement::F16 ? toHalfSaturated(x[d]) : toBrain(x[d]);
  }
}

// The inverse root mean square of all heads together.
template <int32_t number>
INGOT_DEVICE float inverseOfRow(const float *x, int32_t width, float eps,
                                float *scratch) {
  float squares = 0.0f;
  for (int32_t k = (int32_t)threadIdx.x; k < width; k += abi::kRowThreads)
    squares = __builtin_fmaf(x[k], x[k], squares);
  return 1.0f / sqrtf(blockSum<number>(squares, scratch) / (float)width + eps);
}

INGOT_KERNEL(INGOT_NAME, abi::RopeCacheWriteParams, abi::kRowThreads) {
  SharedMemory memory;
  float *scratch = takeRowScratch(memory);
  float *made = memory.take<float>(kRowWarps * kHeadDim) + warpOf() * kHeadDim;
  const int32_t row = (int32_t)blockIdx.x;
  const int32_t lane = laneOf();
  const int32_t heads = params.heads;
  const int32_t kvHeads = params.kvHeads;
  const int32_t half = params.rotaryDim / 2;
  const float *qkv =
      params.qkv + (int64_t)row * (heads + 2 * kvHeads) * kHeadDim;
  const float *cosines =
      params.table + (half ? (int64_t)row * params.rotaryDim : 0);
  const float *sines = cosines + half;
  float inverseOfQ = 0.0f, inverseOfK = 0.0f;
  if (params.normRows && params.qNorm)
    inverseOfQ =
        inverseOfRow<0>(qkv, heads * kHeadDim, params.normEps, scratch);
  if (params.normRows && params.kNorm)
    inverseOfK = inverseOfRow<1>(qkv + heads * kHeadDim, kvHeads * kHeadDim,
                                 params.normEps, scratch);

  const int32_t sequence = params.tokenSequence[row];
  int32_t position = 0;
  uint8_t *block = nullptr; // null: a padding row
  if (sequence >= 0) {
    const abi::SequenceSpan span = params.sequences[sequence];
    position = span.firstPosition + (row - span.firstRow);
    block =
        params.cache.base + params.blockTable[span.blockTableOffset +
                                              position / abi::kBlockTokens] *
                                params.cache.blockBytes;
  }
  const int32_t token = position % abi::kBlockTokens;

  for (int32_t h = warpOf(); h < heads + 2 * kvHeads; h += kRowWarps) {
    const float *x = qkv + h * kHeadDim;
    if (h >= heads + kvHeads) {
      if (block)
        storeHead(block + params.cache.valueOffsetBytes +
                      (h - heads - kvHeads) * kHeadBytes,
                  token, x);
      continue;
    }
    const bool isKey = h >= heads;
    const int32_t index = isKey ? h - heads : h;
    const float *norm = isKey ? params.kNorm : params.qNorm;
    const bool isLayer = params.normKind == abi::HeadNorm::Layer;
    HeadMoments moments = {0.0f, 0.0f};
    if (norm) {
      norm += index * params.normStride;
      if (params.normRows)
        moments.inverse = isKey ? inverseOfK : inverseOfQ;
      else
        moments = momentsOf(x, isLayer, params.normEps);
    }
    for (int32_t d = lane; d < kHeadDim; d += 32) {
      float value = x[d];
      if (norm && isLayer)
        value = ((value - moments.mean) * moments.inverse) * norm[d];
      else if (norm)
        value =
            (value * moments.inverse) *
            (params.normOffset == 0.0f ? norm[d] : norm[d] + params.normOffset);
      made[d] = value;
    }
    __syncwarp();
    for (int32_t i = lane; i < half; i += 32) {
      const int32_t first = params.interleaved ? 2 * i : i;
      const int32_t second = params.interleaved ? 2 * i + 1 : half + i;
      const float a = made[first];
      const float b = made[second];
      made[first] = __builtin_fmaf(-b, sines[i], a * cosines[i]);
      made[second] = __builtin_fmaf(a, sines[i], b * cosines[i]);
    }
    __syncwarp();
    if (!isKey) {
      float *query = params.query + ((int64_t)row * heads + h) * kHeadDim;
      for (int32_t d = lane; d < kHeadDim; d += 32)
        query[d] = made[d];
    } else if (block) {
      storeHead(block + index * kHeadBytes, token, made);
    }
    __syncwarp(); // before the next head
  }
}
