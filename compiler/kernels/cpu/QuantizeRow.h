// One row of activations to integer codes with a scale and a sum for each
// K-group: the epilogue that rms_norm, gated, attention and quantize share, so
// that the law of docs/numerics.md stands in one place.
#pragma once

#include "compiler/kernels/cpu/Simd.h"
#include "runtime/plan/KernelAbi.h"

namespace ingot::kernels {

// Larger than any finite float's bits without sign.
inline constexpr uint32_t kInfinityBits = 0x7f800000u;

// How a kernel quantises its result; constants of the kernel. Group 0: not.
struct Quantization {
  int32_t group;
  int32_t bits; // of a code: 8 or 16
};

// The largest code. 32512 is 127 * 256: a code of 16 bits is also two of 8.
INGOT_INLINE float largestCode(int32_t bits) {
  return bits == 16 ? 32512.0f : 127.0f;
}

// 16 codes of elements from `k` on of a row, in its layout (KernelAbi.h).
INGOT_INLINE void storeCodes(uint8_t *row, int32_t k, VecI code, int32_t bits) {
  if (bits == 16) {
    const VecI16 wide = __builtin_convertvector(code, VecI16);
    storeAs(row + 2 * k,
            __builtin_shufflevector(wide, wide, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10,
                                    9, 11, 12, 14, 13, 15));
    return;
  }
  storeAs(row + k, __builtin_convertvector(code, VecI8));
}

// Quantises elements [0, width) as `at(k, count)` gives them, 16 at a time
// (lanes from `count` on are zero), to codes from column `column` of the row, a
// multiple of the group. A group may end short; codes are padded with zeros to a
// multiple of 32. Where `output` is not null it gets the float32 values.
template <typename At>
INGOT_INLINE void quantizeRow(uint8_t *row, const abi::QuantizedRows &layout,
                              int32_t column, int32_t width,
                              Quantization quantization, float *output, At at) {
  const int32_t group = quantization.group;
  const float largest = largestCode(quantization.bits);
  float values[kMaxGroup];
  float *scales =
      reinterpret_cast<float *>(row + layout.scalesOffset) + column / group;
  auto *sums =
      reinterpret_cast<int32_t *>(row + layout.sumsOffset) + column / group;
  INGOT_NO_UNROLL for (int32_t begin = 0, g = 0; begin < width;
                       begin += group, ++g) {
    const int32_t count = minOf(group, width - begin);
    const int32_t padded = static_cast<int32_t>(roundUp(count, 32));
    VecF most = splat(0.0f);
    VecI notFinite = splat(0);
    for (int32_t k = 0; k < padded; k += kLanes) {
      const int32_t lanes = count - k;
      VecF value = lanes > 0 ? at(begin + k, lanes) : splat(0.0f);
      store(values + k, value);
      if (output && lanes > 0)
        storeSome(output + begin + k, value, lanes);
      VecF size = absOf(value);
      most = greater(size, most);
      notFinite |= (VecI)((VecU)size >= kInfinityBits);
    }
    const float amax = maxLanes(most);
    const bool finite = sumLanes(notFinite) == 0;
    float inverse = largest / amax;
    // Zero, or too small to be divided by: every code is zero.
    if (!(amax > 0.0f) || inverse > 3.4028234664e38f)
      inverse = 0.0f;
    scales[g] = finite ? amax / largest : __builtin_nanf("");
    VecI sum = splat(0);
    for (int32_t k = 0; k < padded; k += kLanes) {
      VecF value = load(values + k);
      value = finite ? value : splat(0.0f);
      VecI code =
          __builtin_convertvector(roundEvenOf(value * splat(inverse)), VecI);
      sum += code;
      storeCodes(row, column + begin + k, code, quantization.bits);
    }
    sums[g] = sumLanes(sum);
  }
}

INGOT_INLINE uint8_t *rowOf(const abi::QuantizedRows &rows, int32_t token) {
  return rows.data + token * rows.rowBytes;
}

} // namespace ingot::kernels
