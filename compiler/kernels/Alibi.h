// What ALiBi adds to the score of a key at position `at` for a query at `position`:
// one definition for scalars (the reference) and vectors (cpu/Simd.h), so that both
// give the same bits. docs/numerics.md states it. Also compiled freestanding.
#pragma once

#include <stdint.h>

namespace ingot::kernels {

// To the nearest bfloat16, ties to even; `x` is finite.
static inline float roundToBrain(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  bits = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

// `at` is the key's position, or a vector of positions, as floats.
//   exact:   slope * (at - position), which is 0 or less
//   rounded: bfloat16(slope * bfloat16(at)) * scale, with a slope in bfloat16
template <typename Real>
static inline __attribute__((always_inline)) Real
alibiLaw(Real at, float position, float slope, float scale, bool rounded) {
  return rounded ? roundToBrain(roundToBrain(at) * Real(slope)) * Real(scale)
                 : (at - Real(position)) * Real(slope);
}

} // namespace ingot::kernels
