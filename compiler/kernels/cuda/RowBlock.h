// What kernels with one block for each row share: sums and maxima over the block, in
// an order that only the number of threads decides, and the store of a row as float32
// and as half rows (runtime/plan/CudaAbi.h).
#pragma once

#include "compiler/kernels/cuda/Device.h"
#include "runtime/plan/CudaAbi.h"

namespace ingot::device {

constexpr int32_t kRowWarps = abi::kRowThreads / 32;
constexpr uint32_t kInfinityBits = 0x7f800000u;

// Reductions of a kernel have a piece of scratch each, by their numbers, so that one
// barrier is enough for each.
INGOT_DEVICE float *takeRowScratch(SharedMemory &memory) {
  return memory.take<float>(abi::kRowReductions * kRowWarps);
}

// Warps in ascending order; every thread gets the result.
template <int32_t number>
INGOT_DEVICE float blockSum(float value, float *scratch) {
  scratch += number * kRowWarps;
  value = warpSum(value);
  if (laneOf() == 0)
    scratch[warpOf()] = value;
  __syncthreads();
  float total = scratch[0];
  for (int32_t warp = 1; warp < kRowWarps; ++warp)
    total = total + scratch[warp];
  return total;
}

template <int32_t number>
INGOT_DEVICE uint32_t blockMax(uint32_t value, float *scratch) {
  scratch += number * kRowWarps;
  value = __reduce_max_sync(kAllLanes, value);
  if (laneOf() == 0)
    scratch[warpOf()] = floatOf(value);
  __syncthreads();
  uint32_t largest = 0;
  for (int32_t warp = 0; warp < kRowWarps; ++warp) {
    const uint32_t other = bitsOf(scratch[warp]);
    largest = other > largest ? other : largest;
  }
  return largest;
}

// The scale of a half row whose largest size has these bits, and its inverse.
struct HalfScale {
  float scale, inverse;
};
INGOT_DEVICE HalfScale halfScale(uint32_t largest) {
  if (largest == 0)
    return {1.0f, 1.0f};
  if (largest >= kInfinityBits)
    return {notANumber(), 0.0f};
  const int32_t exponent = most((int32_t)(largest >> 23) - 14, 1);
  return {floatOf((uint32_t)exponent << 23),
          floatOf((uint32_t)(254 - exponent) << 23)};
}

// Writes valueAt(k), k in [0, width), as row `row`: to `output` unless it is null, and
// to half rows unless they are. valueAt may read what `output` holds at k only. Takes the last
// piece of scratch.
template <typename Value>
INGOT_DEVICE void writeRow(Value valueAt, int32_t row, int32_t width,
                           float *output, const abi::QuantizedRows &halves,
                           float *scratch) {
  float *own = output ? output + (int64_t)row * width : nullptr;
  uint32_t largest = 0;
  for (int32_t k = (int32_t)threadIdx.x; k < width; k += abi::kRowThreads) {
    const float value = valueAt(k);
    if (own)
      own[k] = value;
    const uint32_t size = bitsOf(value) & 0x7fffffffu;
    largest = size > largest ? size : largest;
  }
  if (!halves.data)
    return;
  largest = blockMax<abi::kRowReductions - 1>(largest, scratch);
  const HalfScale by = halfScale(largest);
  const bool isFinite = largest < kInfinityBits;
  uint8_t *to = halves.data + (int64_t)row * halves.rowBytes;
  const int32_t padded = (int32_t)abi::cudaPaddedK(width);
  for (int32_t k = (int32_t)threadIdx.x; k < padded; k += abi::kRowThreads) {
    float value = 0.0f;
    if (k < width && isFinite)
      value = own ? own[k] : valueAt(k);
    const uint16_t half = toHalf(value * by.inverse);
    ((uint16_t *)to)[k] = half;
    if (halves.sumsOffset) // rows of two parts
      ((uint16_t *)(to + halves.sumsOffset))[k] =
          toHalf(value * by.inverse - fromHalf(half));
  }
  if (threadIdx.x == 0)
    *(float *)(to + halves.scalesOffset) = by.scale;
}

} // namespace ingot::device
