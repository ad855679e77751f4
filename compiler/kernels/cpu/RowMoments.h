// What norms know of a row: its mean and the inverse of its deviation, or of its
// root mean square, summed by the law of docs/numerics.md ("Norms").
#pragma once

#include "compiler/kernels/cpu/Simd.h"

namespace ingot::kernels {

struct RowMoments {
  float mean;
  float inverse; // 1 / sqrt(variance + eps)
};

INGOT_INLINE RowMoments momentsOf(const float *x, int32_t width, float eps) {
  VecF sum = splat(0.0f);
  for (int32_t k = 0; k < width; k += kLanes)
    sum = sum + loadSome(x + k, width - k);
  const float mean = sumLanes(sum) / static_cast<float>(width);
  VecF squares = splat(0.0f);
  for (int32_t k = 0; k < width; k += kLanes) {
    const VecF apart = loadSome(x + k, width - k) - splat(mean);
    const VecF next = fmaOf(apart, apart, squares);
    squares = width - k >= kLanes
                  ? next
                  : select(laneNumbers() < splat(width - k), next, squares);
  }
  const float variance = sumLanes(squares) / static_cast<float>(width);
  return {mean, 1.0f / __builtin_sqrtf(variance + eps)};
}

// 1 / sqrt(mean(x^2) + eps)
INGOT_INLINE float inverseRms(const float *x, int32_t width, float eps) {
  VecF sum = splat(0.0f);
  for (int32_t k = 0; k < width; k += kLanes) {
    const VecF value = loadSome(x + k, width - k);
    sum = fmaOf(value, value, sum);
  }
  return 1.0f /
         __builtin_sqrtf(sumLanes(sum) / static_cast<float>(width) + eps);
}

} // namespace ingot::kernels
