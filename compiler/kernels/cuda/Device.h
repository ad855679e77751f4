// What CUDA kernels of this folder are written with. One source serves two
// compilers: NVRTC, which takes the device bodies below (inline PTX), and clang++
// for the emulator of test/simt, whose build includes test/simt/DeviceOnHost.h
// first: that header brings the language of CUDA and host bodies of the same names.
//
// No CUDA header is included: the text of a kernel is this folder, Exp.h, SinCos.h
// and KernelAbi.h, and nothing of a toolkit can change what it says.
#pragma once

#include <stdint.h>

#ifndef INGOT_DEVICE_ON_HOST

// What NVRTC does not bring by itself.
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define __builtin_fmaf(a, b, c) __fmaf_rn(a, b, c)
#define __builtin_fma(a, b, c) __fma_rn(a, b, c)
#define __builtin_roundevenf(x) rintf(x)
#define __builtin_fabsf(x) fabsf(x)
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_memcpy(to, from, bytes) memcpy(to, from, bytes)

// A kernel: one struct by value (runtime/plan/CudaAbi.h). One block on an SM is
// promised: without that, ptxas may spill to fit more than dynamic shared memory lets in.
#define INGOT_KERNEL(NAME, PARAMS, THREADS)                                    \
  extern "C" __global__ void __launch_bounds__(THREADS, 1)                     \
      NAME(const __grid_constant__ PARAMS params)
#define INGOT_DEVICE static __device__ __forceinline__
#define INGOT_DEVICE_MEMBER __device__ __forceinline__
#define INGOT_UNROLL _Pragma("unroll")
#define INGOT_UNROLL_TWO _Pragma("unroll 2")
#define INGOT_NO_UNROLL _Pragma("unroll 1")
#define INGOT_UNROLL_COPIES _Pragma("unroll kCopiesAtOnce")

namespace ingot::device {

// ---- shared memory ----
// Pieces of dynamic shared memory. Offsets instead of rounded pointers: a pointer
// that went through an integer loses its address space.
extern __shared__ __align__(128) unsigned char sharedBase[];
class SharedMemory {
public:
  template <typename T> __device__ __forceinline__ T *take(uint32_t count) {
    const uint32_t begin = (used_ + 15u) & ~15u;
    used_ = begin + count * (uint32_t)sizeof(T);
    return (T *)(sharedBase + begin);
  }

private:
  uint32_t used_ = 0;
};
INGOT_DEVICE uint32_t sharedAddress(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

// ---- wide accesses ----
INGOT_DEVICE uint4 loadWords4(const void *from) { return *(const uint4 *)from; }
INGOT_DEVICE uint2 loadWords2(const void *from) { return *(const uint2 *)from; }
INGOT_DEVICE void storeWords4(void *to, uint4 words) { *(uint4 *)to = words; }
INGOT_DEVICE void storeWords2(void *to, uint2 words) { *(uint2 *)to = words; }
// Read once, by this thread alone: past the first cache.
INGOT_DEVICE uint4 streamWords4(const void *from) {
  uint4 words;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from));
  return words;
}

// ---- asynchronous copies, device to shared memory ----
// 16 bytes, of which the first `sourceBytes` come from `source` and the rest are 0.
INGOT_DEVICE void copyAsync16(void *target, const void *source,
                              int32_t sourceBytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   sharedAddress(target)),
               "l"(source), "r"(sourceBytes)
               : "memory");
}
INGOT_DEVICE void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Until at most `pending` groups of this thread are under way.
template <int pending> INGOT_DEVICE void waitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// ---- tensor cores ----
// Four 8 x 8 matrices of 16-bit elements; lane l gives row l % 8 of matrix l / 8.
INGOT_DEVICE void loadMatrices4(uint32_t (&to)[4], const void *row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(sharedAddress(row))
      : "memory");
}
INGOT_DEVICE void loadMatrices4Transposed(uint32_t (&to)[4], const void *row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(sharedAddress(row))
      : "memory");
}
// c += a * b, a 16 x 16 and b 16 x 8 of float16.
INGOT_DEVICE void mmaF16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                         uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- float16 as bits ----
INGOT_DEVICE uint16_t toHalf(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
INGOT_DEVICE float fromHalf(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
INGOT_DEVICE uint32_t packHalves(float low, float high) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
// The difference of two pairs of float16.
INGOT_DEVICE uint32_t subtractHalves(uint32_t a, uint32_t b) {
  uint32_t both;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(a), "r"(b));
  return both;
}
INGOT_DEVICE float infinity() { return __int_as_float(0x7f800000); }
INGOT_DEVICE float notANumber() { return __int_as_float(0x7fffffff); }
INGOT_DEVICE uint32_t bitsOf(float value) { return __float_as_uint(value); }
INGOT_DEVICE float floatOf(uint32_t bits) { return __uint_as_float(bits); }

} // namespace ingot::device

#endif // INGOT_DEVICE_ON_HOST

namespace ingot::device {

// ---- what follows is the same for both ----
constexpr uint32_t kAllLanes = 0xffffffffu;

INGOT_DEVICE int32_t divideUp(int32_t value, int32_t by) {
  return (value + by - 1) / by;
}
INGOT_DEVICE float fromBrain(uint16_t bits) {
  return floatOf((uint32_t)bits << 16);
}
// To nearest, ties to even; a NaN stays one.
INGOT_DEVICE uint16_t toBrain(float value) {
  const uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return (uint16_t)(bits >> 16 | 64);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
INGOT_DEVICE float lowHalf(uint32_t both) { return fromHalf((uint16_t)both); }
INGOT_DEVICE float highHalf(uint32_t both) {
  return fromHalf((uint16_t)(both >> 16));
}
INGOT_DEVICE int32_t warpOf() { return (int32_t)threadIdx.x / 32; }
INGOT_DEVICE int32_t laneOf() { return (int32_t)threadIdx.x % 32; }
INGOT_DEVICE int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }
INGOT_DEVICE int32_t most(int32_t a, int32_t b) { return a > b ? a : b; }

// Over the lanes of a warp, pairwise from 16 apart to 1 apart; every lane gets the
// result, of which the order of additions is the same for all.
INGOT_DEVICE float warpSum(float value) {
  for (int32_t apart = 16; apart > 0; apart /= 2)
    value = value + __shfl_xor_sync(kAllLanes, value, apart);
  return value;
}
INGOT_DEVICE float warpMax(float value) {
  for (int32_t apart = 16; apart > 0; apart /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, apart));
  return value;
}

} // namespace ingot::device
