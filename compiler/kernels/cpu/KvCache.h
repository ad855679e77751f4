// Where a position of a sequence lies in the paged cache, and how its elements
// widen: K [kvHeads, headDim, 32 tokens], V [kvHeads, 32 tokens, headDim] in each
// block of a layer; of int8 each head is followed by its tokens' scales.
#pragma once

#include "compiler/kernels/cpu/QuantizeRow.h"
#include "compiler/kernels/cpu/Simd.h"
#include "runtime/plan/KernelAbi.h"

namespace ingot::kernels {

template <typename Element> struct KvBlock {
  Element *keys;   // [kvHeads, headDim, kBlockTokens]
  Element *values; // [kvHeads, kBlockTokens, headDim]
};

// Whether elements are codes, with a scale for each token and head.
template <typename Element>
inline constexpr bool kHasKvScales = sizeof(Element) == 1;

// Elements from one head of K, or of V, to the next.
template <typename Element> INGOT_INLINE int64_t headElements(int32_t headDim) {
  return abi::kvHeadBytes(headDim, sizeof(Element)) /
         static_cast<int64_t>(sizeof(Element));
}

// The scales of the kBlockTokens tokens of the head that begins at `head`.
INGOT_INLINE const float *scalesOf(const int8_t *head, int32_t headDim) {
  return reinterpret_cast<const float *>(head + headDim * abi::kBlockTokens);
}
INGOT_INLINE float *scalesOf(int8_t *head, int32_t headDim) {
  return reinterpret_cast<float *>(head + headDim * abi::kBlockTokens);
}

template <typename Element>
INGOT_INLINE KvBlock<Element>
blockOf(const abi::KvLayer &layer, const int32_t *blockTable,
        const abi::SequenceSpan &sequence, int32_t block) {
  const int64_t physical = blockTable[sequence.blockTableOffset + block];
  uint8_t *base = layer.base + physical * layer.blockBytes;
  return {reinterpret_cast<Element *>(base),
          reinterpret_cast<Element *>(base + layer.valueOffsetBytes)};
}

INGOT_INLINE VecF loadElements(const float *from) { return load(from); }
INGOT_INLINE VecF loadElements(const _Float16 *from) {
  return widen(loadAs<VecH>(from));
}
INGOT_INLINE VecF loadElements(const int8_t *from) {
  return __builtin_convertvector(loadAs<VecI8>(from), VecF);
}

// `count` is 16 or 8: heads are multiples of 8.
template <typename Element>
INGOT_INLINE VecF loadElements(const Element *from, int count) {
  if (count >= kLanes)
    return loadElements(from);
  typedef Element Half __attribute__((ext_vector_type(8)));
  const VecF8 low = __builtin_convertvector(loadAs<Half>(from), VecF8);
  return __builtin_shufflevector(low, (VecF8)(0.0f), 0, 1, 2, 3, 4, 5, 6, 7, 8,
                                 9, 10, 11, 12, 13, 14, 15);
}

// One key or value of one head as elements `stride` apart.
template <typename Element>
INGOT_INLINE void storeHead(Element *to, int32_t stride, const float *from,
                            int32_t headDim) {
  for (int32_t d = 0; d < headDim; ++d)
    to[d * stride] = static_cast<Element>(from[d]);
}

// The same as codes, whose scale goes to `scale`, by the law of the int8 cache.
INGOT_INLINE void storeHead(int8_t *to, int32_t stride, const float *from,
                            int32_t headDim, float *scale) {
  uint32_t most = 0; // sizes order as their bits do, infinity and NaN last
  for (int32_t d = 0; d < headDim; ++d) {
    const uint32_t size = __builtin_bit_cast(uint32_t, from[d]) & 0x7fffffffu;
    most = size > most ? size : most;
  }
  const bool finite = most < kInfinityBits;
  const float amax = __builtin_bit_cast(float, most);
  float inverse = 127.0f / amax;
  // Zero, or too small to be divided by: every code is zero.
  const bool coded = finite && inverse <= 3.4028234664e38f;
  inverse = coded ? inverse : 0.0f;
  *scale = !finite ? __builtin_nanf("") : coded ? amax / 127.0f : 1.0f;
  for (int32_t d = 0; d < headDim; ++d) {
    const float x = finite ? from[d] : 0.0f;
    to[d * stride] = static_cast<int8_t>(
        static_cast<int32_t>(__builtin_roundevenf(x * inverse)));
  }
}

} // namespace ingot::kernels
