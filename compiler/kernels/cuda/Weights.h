// Weights in the layout "mma16" (runtime/plan/CudaAbi.h): registers of the A operand
// from what a lane loads, and single elements. The encoding of a variant is
// INGOT_CODE, INGOT_GROUP and INGOT_MINIMUM.
#pragma once

#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaAbi.h"

namespace ingot::device {

constexpr abi::CudaCode kCode = abi::CudaCode::INGOT_CODE;
constexpr int32_t kGroup = INGOT_GROUP; // 0: one scale for a row, or none
constexpr bool kMinimum = INGOT_MINIMUM;
constexpr bool kInteger =
    kCode == abi::CudaCode::I8 || kCode == abi::CudaCode::I4;
constexpr int32_t kUnitBytes = (int32_t)abi::cudaUnitBytes(kCode);
constexpr int32_t kSteps = abi::kCudaUnit / 16; // of an mma in a unit
constexpr int32_t kStepsOfLoad =
    4 * 512 / kUnitBytes; // that 16 bytes of a lane hold

// A pair of float16 that are 1024 + code, to codes without their offset.
INGOT_DEVICE uint32_t withoutOffset(uint32_t pair) {
  constexpr uint32_t offset = 1024 + (kMinimum                     ? 0
                                      : kCode == abi::CudaCode::I8 ? 128
                                                                   : 8);
  // float16 of a whole number in [1024, 2048) counts its last bits in ones.
  constexpr uint32_t half = 0x6400 + (offset - 1024);
  return subtractHalves(pair, half | half << 16);
}

// The A operand of step `step` of those that `words` hold.
INGOT_DEVICE void weightFragment(uint32_t (&a)[4], const uint4 &words,
                                 int32_t step) {
  if constexpr (kCode == abi::CudaCode::F16) {
    a[0] = words.x, a[1] = words.y, a[2] = words.z, a[3] = words.w;
  } else if constexpr (kCode == abi::CudaCode::BF16) {
    const uint32_t own[4] = {words.x, words.y, words.z, words.w};
    INGOT_UNROLL
    for (int32_t r = 0; r < 4; ++r)
      a[r] = packHalves(floatOf(own[r] << 16), floatOf(own[r] & 0xffff0000u));
  } else if constexpr (kCode == abi::CudaCode::I8) {
    const uint32_t low = step == 0 ? words.x : words.z;
    const uint32_t high = step == 0 ? words.y : words.w;
    a[0] = withoutOffset(__byte_perm(low, 0x64646464u, 0x4140));
    a[1] = withoutOffset(__byte_perm(low, 0x64646464u, 0x4342));
    a[2] = withoutOffset(__byte_perm(high, 0x64646464u, 0x4140));
    a[3] = withoutOffset(__byte_perm(high, 0x64646464u, 0x4342));
  } else {
    const uint32_t word = step == 0   ? words.x
                          : step == 1 ? words.y
                          : step == 2 ? words.z
                                      : words.w;
    INGOT_UNROLL
    for (int32_t r = 0; r < 4; ++r)
      a[r] = withoutOffset((word >> 4 * r & 0x000f000fu) | 0x64006400u);
  }
}

// Where element (row, k) of a unit is: its step, lane and number in the lane.
struct ElementPlace {
  int32_t step, lane, element;
};
INGOT_DEVICE ElementPlace placeOf(int32_t row, int32_t k) {
  const int32_t inStep = k % 16;
  return {k / 16, row % 8 * 4 + inStep % 8 / 2,
          inStep / 8 * 4 + row / 8 * 2 + inStep % 2};
}

// The float32 that element (row, k) stands for.
INGOT_DEVICE float weightAt(const abi::PackedWeights &weights, int64_t row,
                            int32_t k, int32_t columns) {
  const int64_t tile = row / abi::kMmaRows;
  const int32_t inTile = (int32_t)(row % abi::kMmaRows);
  const uint8_t *unit = (const uint8_t *)weights.codes +
                        tile * abi::cudaTileBytes(kCode, columns) +
                        k / abi::kCudaUnit * kUnitBytes;
  const ElementPlace at = placeOf(inTile, k % abi::kCudaUnit);
  if constexpr (!kInteger) {
    const uint16_t bits =
        ((const uint16_t *)unit)[(at.step * 32 + at.lane) * 8 + at.element];
    return kCode == abi::CudaCode::F16 ? fromHalf(bits) : fromBrain(bits);
  }
  int32_t code;
  if constexpr (kCode == abi::CudaCode::I8) {
    code =
        unit[((at.step / 2 * 32 + at.lane) * 2 + at.step % 2) * 8 + at.element];
  } else {
    const uint32_t word = ((const uint32_t *)unit)[at.lane * 4 + at.step];
    code = (int32_t)(word >> (at.element % 2 * 16 + at.element / 2 * 4) & 15);
  }
  const int64_t groups = abi::cudaGroups(columns, kGroup);
  const int64_t plane =
      (tile * groups + (kGroup ? k / (kGroup ? kGroup : 1) : 0)) *
          abi::kMmaRows +
      inTile;
  const float scale = fromHalf(weights.scales[plane]);
  if constexpr (kMinimum)
    return __builtin_fmaf((float)code, scale, fromHalf(weights.mins[plane]));
  return (float)(code - (kCode == abi::CudaCode::I8 ? 128 : 8)) * scale;
}

} // namespace ingot::device
