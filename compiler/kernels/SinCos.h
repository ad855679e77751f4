// Sine and cosine of rotary angles, in double precision and by our own
// reduction, so that they are the same bits on every machine and level: n =
// round(x * 2/pi), r = x - n * pi/2 with pi/2 in two parts, then the Taylor
// series on |r| <= pi/4 (its first dropped term is below 5e-17). One definition
// for the reference and the CPU kernels; also compiled freestanding.
#pragma once

#include <stdint.h>

namespace ingot::kernels {

struct SinCos {
  double sine;
  double cosine;
};

static inline __attribute__((always_inline)) double fmaOf(double a, double b,
                                                          double c) {
  return __builtin_fma(a, b, c);
}

static inline __attribute__((always_inline)) SinCos sinCosLaw(double x) {
  // Adding 1.5 * 2^52 rounds to an integer, to nearest even, and leaves it in
  // the low bits.
  double shifted = x * 0x1.45f306dc9c883p-1 + 6755399441055744.0;
  int64_t bits;
  __builtin_memcpy(&bits, &shifted, 8);
  double n = shifted - 6755399441055744.0;
  double r = fmaOf(n, -0x1.921fb54442d18p+0, x);
  r = fmaOf(n, -0x1.1a62633145c07p-54, r);
  double z = r * r;
  double s = -1.0 / 1307674368000.0;
  s = fmaOf(s, z, 1.0 / 6227020800.0);
  s = fmaOf(s, z, -1.0 / 39916800.0);
  s = fmaOf(s, z, 1.0 / 362880.0);
  s = fmaOf(s, z, -1.0 / 5040.0);
  s = fmaOf(s, z, 1.0 / 120.0);
  s = fmaOf(s, z, -1.0 / 6.0);
  s = fmaOf(s * z, r, r);
  double c = 1.0 / 20922789888000.0;
  c = fmaOf(c, z, -1.0 / 87178291200.0);
  c = fmaOf(c, z, 1.0 / 479001600.0);
  c = fmaOf(c, z, -1.0 / 3628800.0);
  c = fmaOf(c, z, 1.0 / 40320.0);
  c = fmaOf(c, z, -1.0 / 720.0);
  c = fmaOf(c, z, 1.0 / 24.0);
  c = fmaOf(c, z, -0.5);
  c = fmaOf(c, z, 1.0);
  bool swap = (bits & 1) != 0;
  double sine = swap ? c : s;
  double cosine = swap ? s : c;
  return {(bits & 2) != 0 ? -sine : sine,
          ((bits + 1) & 2) != 0 ? -cosine : cosine};
}

} // namespace ingot::kernels
