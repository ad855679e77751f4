// How kernels find a weight in its packed "r16" tile: 16 output rows
// interleaved, K padded to a multiple of 32.
//   float  codes [rowTiles][K][16]
//   int8   codes [rowTiles][K/4][16][4]   value = scale * (code - 128)
//   int4   codes [rowTiles][K/8][16][4]   byte b of a row's four holds k = 8j+b in
//          its low and k = 8j+4+b in its high nibble; value = scale * (code - 8),
//          or scale * code + min
//   scales, mins  float16 [rowTiles][groups][16]
#pragma once

#include "compiler/kernels/cpu/Simd.h"
#include "runtime/plan/KernelAbi.h"

namespace ingot::kernels {

enum class WeightCode { F32, F16, BF16, I8, I4 };

constexpr bool isInteger(WeightCode code) {
  return code == WeightCode::I8 || code == WeightCode::I4;
}
// Bytes that 16 rows of `k` elements take (k a multiple of 32).
constexpr int64_t tileBytes(WeightCode code, int64_t k) {
  switch (code) {
  case WeightCode::F32:
    return k * 64;
  case WeightCode::F16:
  case WeightCode::BF16:
    return k * 32;
  case WeightCode::I8:
    return k * 16;
  case WeightCode::I4:
    return k * 8;
  }
}

// One output row of a packed weight, element by element.
template <WeightCode Code> class TileRow {
public:
  INGOT_MEMBER TileRow(const abi::PackedWeights &weights, int64_t row,
                       int32_t columns, int32_t group, bool minimum)
      : codes_(static_cast<const uint8_t *>(weights.codes) +
               row / kLanes * tileBytes(Code, roundUp(columns, 32))),
        lane_(row % kLanes), group_(group), minimum_(minimum) {
    if constexpr (isInteger(Code)) {
      const int64_t groups = (columns + group - 1) / group;
      const int64_t first = row / kLanes * groups * kLanes + lane_;
      scales_ = weights.scales + first;
      mins_ = minimum ? weights.mins + first : nullptr;
    }
  }

  INGOT_MEMBER float at(int32_t k) const {
    if constexpr (Code == WeightCode::F32)
      return reinterpret_cast<const float *>(codes_)[k * kLanes + lane_];
    if constexpr (Code == WeightCode::F16)
      return halfToFloat(
          reinterpret_cast<const uint16_t *>(codes_)[k * kLanes + lane_]);
    if constexpr (Code == WeightCode::BF16)
      return __builtin_bit_cast(
          float, static_cast<uint32_t>(reinterpret_cast<const uint16_t *>(
                     codes_)[k * kLanes + lane_])
                     << 16);
    if constexpr (isInteger(Code)) {
      const float scale = halfToFloat(scales_[k / group_ * kLanes]);
      int32_t code;
      if constexpr (Code == WeightCode::I8) {
        code = codes_[k / 4 * 64 + lane_ * 4 + k % 4];
      } else {
        const int32_t both = codes_[k / 8 * 64 + lane_ * 4 + k % 4];
        code = (k & 4) != 0 ? both >> 4 : both & 15;
      }
      if (minimum_)
        return __builtin_fmaf(static_cast<float>(code), scale,
                              halfToFloat(mins_[k / group_ * kLanes]));
      return static_cast<float>(code - (Code == WeightCode::I8 ? 128 : 8)) *
             scale;
    }
  }

private:
  const uint8_t *codes_;
  const uint16_t *scales_ = nullptr;
  const uint16_t *mins_ = nullptr;
  int64_t lane_;
  int32_t group_;
  bool minimum_;
};

} // namespace ingot::kernels
