// The exponential of the kernels and the functions made from it: one definition
// for scalars (the reference) and vectors (cpu/Simd.h), the same operations in
// the same order, so that both give the same bits. docs/numerics.md states them.
// Also compiled freestanding: no library header.
#pragma once

#include <stdint.h>

namespace ingot::kernels {

// The scalar forms of the few operations that the definitions use; a vector type
// brings its own before it includes this file.
static inline float fmaOf(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
static inline float roundEvenOf(float x) { return __builtin_roundevenf(x); }
static inline float absOf(float x) { return __builtin_fabsf(x); }
static inline float select(bool mask, float yes, float no) {
  return mask ? yes : no;
}
// 2^(floor(n / 2)) or the rest of n: the two factors of 2^n. Works on the bits of
// n + 1.5 * 2^23, so a NaN needs no conversion to an integer.
static inline float powerHalf(float n, bool upper) {
  int32_t bits;
  float shifted = n + 12582912.0f;
  __builtin_memcpy(&bits, &shifted, 4);
  int32_t whole = bits - 0x4b400000;
  int32_t half = whole >> 1;
  int32_t exponent = upper ? whole - half : half;
  uint32_t power = (static_cast<uint32_t>(exponent) + 127u) << 23;
  float result;
  __builtin_memcpy(&result, &power, 4);
  return result;
}

// 2^n of a whole n in [-126, 127], by the same means.
static inline float powerOf(float n) {
  int32_t bits;
  float shifted = n + 12582912.0f;
  __builtin_memcpy(&bits, &shifted, 4);
  uint32_t power = (static_cast<uint32_t>(bits) - 0x4b400000u + 127u) << 23;
  float result;
  __builtin_memcpy(&result, &power, 4);
  return result;
}

// e^(y - n ln 2), for |y - n ln 2| <= ln 2 / 2.
template <typename Real>
static inline __attribute__((always_inline)) Real expPolynomial(Real y,
                                                                Real n) {
  Real r = fmaOf(n, Real(-0x1.62e430p-1f), y);
  r = fmaOf(n, Real(0x1.05c610p-29f), r);
  Real p = fmaOf(r, Real(0x1.6a23d0p-10f), Real(0x1.123a20p-7f));
  p = fmaOf(p, r, Real(0x1.5558f2p-5f));
  p = fmaOf(p, r, Real(0x1.555492p-3f));
  p = fmaOf(p, r, Real(0x1.fffffcp-2f));
  p = fmaOf(p, r, Real(1.0f));
  p = fmaOf(p, r, Real(1.0f));
  return p;
}

// e^x. Below -87.33654 zero, above 88.72283 infinity, NaN stays NaN; elsewhere
// within 1 ulp.
template <typename Real>
static inline __attribute__((always_inline)) Real expLaw(Real x) {
  auto low = x < Real(-87.33654f);
  auto high = x > Real(88.72283f);
  Real y = select(low, Real(-87.33654f), select(high, Real(88.72283f), x));
  Real n = roundEvenOf(y * Real(0x1.715476p+0f));
  Real p = expPolynomial(y, n);
  Real result = (p * powerHalf(n, false)) * powerHalf(n, true);
  return select(low, Real(0.0f), select(high, Real(__builtin_inff()), result));
}

// expLaw of an x that is not above zero, or NaN: there 2^n is one factor.
template <typename Real>
static inline __attribute__((always_inline)) Real expOfNegative(Real x) {
  auto low = x < Real(-87.33654f);
  Real y = select(low, Real(-87.33654f), x);
  Real n = roundEvenOf(y * Real(0x1.715476p+0f));
  Real result = expPolynomial(y, n) * powerOf(n);
  return select(low, Real(0.0f), result);
}

// x / (1 + e^-x)
template <typename Real>
static inline __attribute__((always_inline)) Real siluLaw(Real x) {
  return x / (Real(1.0f) + expLaw(-x));
}

// The tanh form of GELU, written with one exponential:
// x / (1 + e^(-2 sqrt(2/pi) (x + 0.044715 x^3))).
template <typename Real>
static inline __attribute__((always_inline)) Real geluTanhLaw(Real x) {
  Real cube = (x * x) * x;
  Real inner = fmaOf(Real(0.044715f), cube, x);
  return x / (Real(1.0f) + expLaw(inner * Real(-1.5957691216f)));
}

// GELU by the error function, x * Phi(x), from its tail: Phi(-|x|) =
// erfc(t) / 2 with t = |x| / sqrt(2), and erfc(t) = e^(-t q(t)) up to 4, where q
// is a polynomial; 0 beyond. Phi is within 5e-8.
template <typename Real>
static inline __attribute__((always_inline)) Real geluLaw(Real x) {
  Real t = absOf(x) * Real(0x1.6a09e6p-1f);
  Real q = fmaOf(t, Real(-0x1.0de844p-17f), Real(0x1.bcb5a4p-14f));
  q = fmaOf(q, t, Real(-0x1.344196p-11f));
  q = fmaOf(q, t, Real(0x1.9d56c0p-10f));
  q = fmaOf(q, t, Real(-0x1.ed1e06p-15f));
  q = fmaOf(q, t, Real(-0x1.3ada88p-6f));
  q = fmaOf(q, t, Real(0x1.a510c8p-4f));
  q = fmaOf(q, t, Real(0x1.45f28cp-1f));
  q = fmaOf(q, t, Real(0x1.20dd78p+0f));
  Real tail = expLaw(-(q * t)) * Real(0.5f);
  tail = select(t > Real(4.0f), Real(0.0f), tail);
  return x * select(x < Real(0.0f), tail, Real(1.0f) - tail);
}

template <typename Real>
static inline __attribute__((always_inline)) Real reluLaw(Real x) {
  return select(x < Real(0.0f), Real(0.0f), x);
}

// cap * tanh(x / cap), with tanh |t| = (1 - e^-2|t|) / (1 + e^-2|t|).
template <typename Real>
static inline __attribute__((always_inline)) Real softCapLaw(Real x, Real cap) {
  Real t = x / cap;
  Real e = expLaw(absOf(t) * Real(-2.0f));
  Real size = (Real(1.0f) - e) / (Real(1.0f) + e);
  return cap * select(t < Real(0.0f), -size, size);
}

} // namespace ingot::kernels
