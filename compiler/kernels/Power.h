// Powers in double precision by our own logarithm and exponential, so that
// rotary frequencies that a kernel must compute are the same bits on every
// machine and level. One definition for the reference and the CPU kernels; also
// compiled freestanding. Within 2e-15 of the true power for the bases and
// exponents of rotary embeddings (1e-3 to 1e30, -2 to 2).
#pragma once

#include "compiler/kernels/SinCos.h" // fmaOf of doubles

#include <stdint.h>

namespace ingot::kernels {

// ln(x) of a positive finite x that is not denormal: x = m * 2^e with m in
// [0.71, 1.42), then 2 artanh((m - 1) / (m + 1)), its first dropped term below
// 1e-19.
static inline __attribute__((always_inline)) double logLaw(double x) {
  int64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  int64_t exponent = ((bits - 0x3fe6a09e667f3bcdLL) >> 52);
  bits -= exponent << 52;
  double m;
  __builtin_memcpy(&m, &bits, 8);
  double s = (m - 1.0) / (m + 1.0);
  double z = s * s;
  double p = 1.0 / 23.0;
  p = fmaOf(p, z, 1.0 / 21.0);
  p = fmaOf(p, z, 1.0 / 19.0);
  p = fmaOf(p, z, 1.0 / 17.0);
  p = fmaOf(p, z, 1.0 / 15.0);
  p = fmaOf(p, z, 1.0 / 13.0);
  p = fmaOf(p, z, 1.0 / 11.0);
  p = fmaOf(p, z, 1.0 / 9.0);
  p = fmaOf(p, z, 1.0 / 7.0);
  p = fmaOf(p, z, 1.0 / 5.0);
  p = fmaOf(p, z, 1.0 / 3.0);
  p = fmaOf(p * z, s + s, s + s);
  return fmaOf(static_cast<double>(exponent), 0x1.62e42fefa39efp-1, p);
}

// e^x for |x| below 700: 2^n times the Taylor series on |r| <= ln(2) / 2.
static inline __attribute__((always_inline)) double exp64Law(double x) {
  double shifted = x * 0x1.71547652b82fep+0 + 6755399441055744.0;
  int64_t bits;
  __builtin_memcpy(&bits, &shifted, 8);
  double n = shifted - 6755399441055744.0;
  double r = fmaOf(n, -0x1.62e42fefa39efp-1, x);
  r = fmaOf(n, -0x1.abc9e3b39803fp-56, r);
  double p = 1.0 / 87178291200.0;
  p = fmaOf(p, r, 1.0 / 6227020800.0);
  p = fmaOf(p, r, 1.0 / 479001600.0);
  p = fmaOf(p, r, 1.0 / 39916800.0);
  p = fmaOf(p, r, 1.0 / 3628800.0);
  p = fmaOf(p, r, 1.0 / 362880.0);
  p = fmaOf(p, r, 1.0 / 40320.0);
  p = fmaOf(p, r, 1.0 / 5040.0);
  p = fmaOf(p, r, 1.0 / 720.0);
  p = fmaOf(p, r, 1.0 / 120.0);
  p = fmaOf(p, r, 1.0 / 24.0);
  p = fmaOf(p, r, 1.0 / 6.0);
  p = fmaOf(p, r, 0.5);
  p = fmaOf(p, r, 1.0);
  p = fmaOf(p, r, 1.0);
  int64_t power = ((bits - 0x4338000000000000LL) + 1023) << 52;
  double scale;
  __builtin_memcpy(&scale, &power, 8);
  return p * scale;
}

// Frequency i of `count` under dynamic scaling, for a sequence of `length`:
// 1 / base^(i / count), with base = theta * (factor * length / original -
// (factor - 1)) ^ (count / (count - 1)). Exponent and power are rounded to
// float32, as they are where frequencies are made at import.
struct DynamicBase {
  double logarithm; // of the base
  float count;
};
static inline __attribute__((always_inline)) DynamicBase
dynamicBase(double theta, double factor, int32_t original, int32_t length,
            int32_t count) {
  double stretch =
      factor * static_cast<double>(length) / static_cast<double>(original) -
      (factor - 1.0);
  double exponent = static_cast<double>(count) / static_cast<double>(count - 1);
  return {fmaOf(logLaw(stretch), exponent, logLaw(theta)),
          static_cast<float>(count)};
}
static inline __attribute__((always_inline)) float
dynamicFrequency(const DynamicBase &base, int32_t i) {
  float exponent = static_cast<float>(i) / base.count;
  return 1.0f / static_cast<float>(
                    exp64Law(static_cast<double>(exponent) * base.logarithm));
}

} // namespace ingot::kernels
