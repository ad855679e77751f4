// Where a position of a sequence lies in the paged cache, and how its elements
// widen: K [kvHeads, headDim, 32 tokens], V [kvHeads, 32 tokens, headDim] in each
// block of a layer.
#pragma once

#include "compiler/kernels/cpu/Simd.h"
#include "runtime/plan/KernelAbi.h"

namespace ingot::kernels {

template <typename Element> struct KvBlock {
  Element *keys;   // [kvHeads, headDim, kBlockTokens]
  Element *values; // [kvHeads, kBlockTokens, headDim]
};

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

} // namespace ingot::kernels
