// How segments of attention merge (docs/numerics.md), for the kernels that do it.
#pragma once

#include "compiler/kernels/cuda/Device.h"
// The builtins of Exp.h are defined by Device.h.
#include "compiler/kernels/Exp.h"

namespace ingot::device {

// What merging a segment (m, s) into (M, S) multiplies the two values with.
struct MergeFactors {
  float old, added;
};
INGOT_DEVICE MergeFactors mergeSegment(float &M, float &S, float m, float s) {
  if (s == 0.0f)
    return {1.0f, 0.0f}; // nothing visible in it
  const float next = fmaxf(M, m);
  const MergeFactors by = {kernels::expOfNegative(M - next),
                           kernels::expOfNegative(m - next)};
  S = __builtin_fmaf(S, by.old, s * by.added);
  M = next;
  return by;
}

} // namespace ingot::device
