// One row of activations to int8 codes with a scale and a sum for each K-group:
// the epilogue that rms_norm, gated, attention and quantize share, so that the
// law of docs/numerics.md stands in one place.
#pragma once

#include "compiler/kernels/cpu/Simd.h"
#include "runtime/plan/KernelAbi.h"

namespace ingot::kernels {

// Larger than any finite float's bits without sign.
inline constexpr uint32_t kInfinityBits = 0x7f800000u;

// Quantises elements [0, width) as `at(k, count)` gives them, 16 at a time
// (lanes from `count` on are zero), to codes from column `column` of the row. A
// group may end short; codes are padded with zeros to a multiple of 32. Where
// `output` is not null it gets the float32 values.
template <typename At>
INGOT_INLINE void quantizeRow(uint8_t *row, const abi::QuantizedRows &layout,
                              int32_t column, int32_t width, int32_t group,
                              float *output, At at) {
  float values[kMaxGroup];
  auto *codes = reinterpret_cast<int8_t *>(row) + column;
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
    float inverse = 127.0f / amax;
    // Zero, or too small to be divided by: every code is zero.
    if (!(amax > 0.0f) || inverse > 3.4028234664e38f)
      inverse = 0.0f;
    scales[g] = finite ? amax / 127.0f : __builtin_nanf("");
    VecI sum = splat(0);
    for (int32_t k = 0; k < padded; k += kLanes) {
      VecF value = load(values + k);
      value = finite ? value : splat(0.0f);
      VecI code =
          __builtin_convertvector(roundEvenOf(value * splat(inverse)), VecI);
      sum += code;
      storeAs(codes + begin + k, __builtin_convertvector(code, VecI8));
    }
    sums[g] = sumLanes(sum);
  }
}

INGOT_INLINE uint8_t *rowOf(const abi::QuantizedRows &rows, int32_t token) {
  return rows.data + token * rows.rowBytes;
}

} // namespace ingot::kernels
