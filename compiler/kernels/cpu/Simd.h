// The vectors that CPU kernels are written with: always 16 lanes of 32 bits, one
// a row of a weight tile. The compiler splits them for the feature level (two
// 256-bit halves for x86-64-v3, one register for avx512-vnni), so kernels share
// their logic and no vector width can show in the bits. Only the integer dot
// products differ by level (IntegerDot.h).
//
// Freestanding: no library, no exceptions, no static data.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INGOT_INLINE static inline __attribute__((always_inline))
#define INGOT_MEMBER inline __attribute__((always_inline))
#define INGOT_UNROLL _Pragma("clang loop unroll(full)")
#define INGOT_NO_UNROLL _Pragma("clang loop unroll(disable)")

namespace ingot::kernels {

typedef float VecF __attribute__((ext_vector_type(16)));
typedef int32_t VecI __attribute__((ext_vector_type(16)));
typedef uint32_t VecU __attribute__((ext_vector_type(16)));
typedef uint16_t VecU16 __attribute__((ext_vector_type(16)));
typedef int8_t VecI8 __attribute__((ext_vector_type(16)));
typedef int16_t VecI16 __attribute__((ext_vector_type(16)));
typedef _Float16 VecH __attribute__((ext_vector_type(16)));
typedef _Float16 VecH8 __attribute__((ext_vector_type(8)));
typedef float VecF8 __attribute__((ext_vector_type(8)));

inline constexpr int kLanes = 16;
// The largest K-group of a quantised row or weight; of int8 weights it is 256,
// which keeps their sums in 32 bits (docs/numerics.md).
inline constexpr int kMaxGroup = 1024;
// The largest attention head.
inline constexpr int kMaxHeadDim = 512;

INGOT_INLINE VecF splat(float x) { return (VecF)(x); }
INGOT_INLINE VecI splat(int32_t x) { return (VecI)(x); }

// Unaligned loads and stores of any vector type.
template <typename V> INGOT_INLINE V loadAs(const void *from) {
  struct __attribute__((packed, may_alias)) Box {
    V value;
  };
  return static_cast<const Box *>(from)->value;
}
template <typename V> INGOT_INLINE void storeAs(void *to, V value) {
  struct __attribute__((packed, may_alias)) Box {
    V value;
  };
  static_cast<Box *>(to)->value = value;
}

INGOT_INLINE VecF load(const float *from) { return loadAs<VecF>(from); }
INGOT_INLINE void store(float *to, VecF value) { storeAs(to, value); }

// The first `count` lanes; the others are zero. For the ragged ends.
INGOT_INLINE VecF loadSome(const float *from, int count) {
  if (count >= kLanes)
    return load(from);
  float lanes[kLanes];
  store(lanes, splat(0.0f));
  INGOT_NO_UNROLL for (int i = 0; i < count; ++i) lanes[i] = from[i];
  return load(lanes);
}
INGOT_INLINE void storeSome(float *to, VecF value, int count) {
  if (count >= kLanes) {
    store(to, value);
    return;
  }
  float lanes[kLanes];
  store(lanes, value);
  INGOT_NO_UNROLL for (int i = 0; i < count; ++i) to[i] = lanes[i];
}

INGOT_INLINE VecF widen(VecH half) {
  return __builtin_convertvector(half, VecF);
}
INGOT_INLINE float halfToFloat(uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
// bfloat16 is the upper half of a float32.
INGOT_INLINE VecF widenBrain(VecU16 bits) {
  return (VecF)(__builtin_convertvector(bits, VecU) << 16);
}
INGOT_INLINE VecF toFloat(VecI x) { return __builtin_convertvector(x, VecF); }

// As the scalar form in compiler/kernels/Alibi.h.
INGOT_INLINE VecF roundToBrain(VecF x) {
  const VecU bits = (VecU)x;
  return (VecF)((bits + (VecU)(0x7fffu) + ((bits >> 16) & (VecU)(1u))) &
                (VecU)(0xffff0000u));
}

INGOT_INLINE VecF absOf(VecF x) { return __builtin_elementwise_abs(x); }
INGOT_INLINE VecF fmaOf(VecF a, VecF b, VecF c) {
  return __builtin_elementwise_fma(a, b, c);
}
INGOT_INLINE VecF roundEvenOf(VecF x) {
  return __builtin_elementwise_roundeven(x);
}
// a > b ? a : b in each lane (so a NaN in `a` yields b).
INGOT_INLINE VecF greater(VecF a, VecF b) { return a > b ? a : b; }
INGOT_INLINE VecF select(VecI mask, VecF yes, VecF no) {
  return mask ? yes : no;
}
// One of the two factors of 2^n (see Exp.h).
INGOT_INLINE VecF powerHalf(VecF n, bool upper) {
  VecI whole = (VecI)(n + splat(12582912.0f)) - splat(0x4b400000);
  VecI half = whole >> 1;
  VecI exponent = upper ? whole - half : half;
  return (VecF)((exponent + splat(127)) << 23);
}
// 2^n of a whole n in [-126, 127] (see Exp.h).
INGOT_INLINE VecF powerOf(VecF n) {
  return (VecF)(((VecI)(n + splat(12582912.0f)) - splat(0x4b400000 - 127))
                << 23);
}

// Pairwise over the lanes: l + l+8, l + l+4, l + l+2, l + l+1.
INGOT_INLINE float sumLanes(VecF x) {
  auto eight = x.lo + x.hi;
  auto four = eight.lo + eight.hi;
  auto two = four.lo + four.hi;
  return two.x + two.y;
}
INGOT_INLINE int32_t sumLanes(VecI x) {
  auto eight = x.lo + x.hi;
  auto four = eight.lo + eight.hi;
  auto two = four.lo + four.hi;
  return two.x + two.y;
}
INGOT_INLINE float maxLanes(VecF x) {
  auto eight = x.lo > x.hi ? x.lo : x.hi;
  auto four = eight.lo > eight.hi ? eight.lo : eight.hi;
  auto two = four.lo > four.hi ? four.lo : four.hi;
  return two.x > two.y ? two.x : two.y;
}
INGOT_INLINE VecI laneNumbers() {
  return VecI{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}

INGOT_INLINE int32_t minOf(int32_t a, int32_t b) { return a < b ? a : b; }
INGOT_INLINE int32_t maxOf(int32_t a, int32_t b) { return a > b ? a : b; }
// Within [0, most].
INGOT_INLINE int32_t clampOf(int32_t value, int32_t most) {
  return minOf(maxOf(value, 0), most);
}
INGOT_INLINE int64_t roundUp(int64_t x, int64_t to) {
  return (x + to - 1) / to * to;
}

} // namespace ingot::kernels
