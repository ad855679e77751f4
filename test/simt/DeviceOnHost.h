// The language of CUDA for kernels that run in the emulator, and host bodies of the
// wrappers of compiler/kernels/cuda/Device.h. The build of such a kernel includes
// this file before anything else.
#pragma once

#include "test/simt/Half.h"
#include "test/simt/ThreadContext.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#define INGOT_DEVICE_ON_HOST 1
// A kernel may be in several objects of one program.
#define __global__ __attribute__((weak))
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define INGOT_KERNEL(NAME, PARAMS, THREADS)                                    \
  extern "C" __attribute__((weak)) void NAME(const PARAMS params)
#define INGOT_DEVICE                                                           \
  [[maybe_unused]] static __attribute__((always_inline)) inline
#define INGOT_DEVICE_MEMBER __attribute__((always_inline)) inline
// Rolled loops: one place in the code is one line of a trace.
#define INGOT_UNROLL _Pragma("clang loop unroll(disable)")
#define INGOT_UNROLL_TWO INGOT_UNROLL
#define INGOT_NO_UNROLL INGOT_UNROLL
#define INGOT_UNROLL_COPIES INGOT_UNROLL
// An emulator call whose return address names the line of the kernel. It must not be
// copied to two places, nor two of them made one: barriers are told apart by
// their addresses.
#define INGOT_SIMT_CALL                                                        \
  [[maybe_unused]] static                                                      \
      __attribute__((noinline, noduplicate, nomerge, no_sanitize("thread")))

#define threadIdx (ingot::simt::currentThread->thread)
#define blockIdx (ingot::simt::currentThread->block)
#define blockDim (ingot::simt::currentThread->blockDim)
#define gridDim (ingot::simt::currentThread->gridDim)

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};

// ---- barriers and collectives ----
INGOT_SIMT_CALL void __syncthreads() {
  ingot::simt::blockBarrier(__builtin_return_address(0));
}
INGOT_SIMT_CALL int __syncthreads_or(int predicate) {
  return ingot::simt::blockBarrierReduce(
      predicate, ingot::simt::BarrierReduce::Or, __builtin_return_address(0));
}
INGOT_SIMT_CALL int __syncthreads_and(int predicate) {
  return ingot::simt::blockBarrierReduce(
      predicate, ingot::simt::BarrierReduce::And, __builtin_return_address(0));
}
INGOT_SIMT_CALL int __syncthreads_count(int predicate) {
  return ingot::simt::blockBarrierReduce(predicate,
                                         ingot::simt::BarrierReduce::Count,
                                         __builtin_return_address(0));
}
INGOT_SIMT_CALL void __syncwarp(unsigned mask = ~0u) {
  ingot::simt::collective(ingot::simt::Collective::SyncWarp, mask, nullptr,
                          nullptr);
}

namespace ingot::simt {

enum class Shuffle { Index, Up, Down, Xor };

template <typename T> struct ShuffleArguments {
  T in, out;
  int operand, width;
};

template <typename T, Shuffle kind>
__attribute__((no_sanitize("thread"))) void shuffleLanes(void **arguments,
                                                         unsigned mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    auto &own = *static_cast<ShuffleArguments<T> *>(arguments[lane]);
    const int base = lane & ~(own.width - 1);
    int from = lane;
    if (kind == Shuffle::Index)
      from = base + (own.operand & (own.width - 1));
    else if (kind == Shuffle::Up)
      from = lane - own.operand < base ? lane : lane - own.operand;
    else if (kind == Shuffle::Down)
      from = lane + own.operand >= base + own.width ? lane : lane + own.operand;
    else
      from =
          (lane ^ own.operand) >= base + own.width ? lane : lane ^ own.operand;
    if (!(mask >> from & 1)) {
      misuse("a shuffle reads a lane outside its mask", nullptr);
      from = lane;
    }
    own.out = static_cast<ShuffleArguments<T> *>(arguments[from])->in;
  }
}

template <typename T, Shuffle kind>
__attribute__((noinline, no_sanitize("thread"))) T shuffle(unsigned mask, T in,
                                                           int operand,
                                                           int width) {
  ShuffleArguments<T> own{in, in, operand, width};
  collective(Collective::Shuffle, mask, &own, shuffleLanes<T, kind>);
  return own.out;
}

struct VoteArguments {
  bool in;
  unsigned out;
};
[[maybe_unused]] __attribute__((no_sanitize("thread"))) static void
countVotes(void **arguments, unsigned mask) {
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1 && static_cast<VoteArguments *>(arguments[lane])->in)
      ballot |= 1u << lane;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      static_cast<VoteArguments *>(arguments[lane])->out = ballot;
}

enum class Reduction { Add, Min, Max, And, Or, Xor };
template <typename T> struct ReduceArguments {
  T in, out;
};
template <typename T, Reduction kind>
__attribute__((no_sanitize("thread"))) void reduceLanes(void **arguments,
                                                        unsigned mask) {
  T total{};
  bool isFirst = true;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    T in = static_cast<ReduceArguments<T> *>(arguments[lane])->in;
    if (isFirst)
      total = in;
    else if (kind == Reduction::Add)
      total = T(total + in);
    else if (kind == Reduction::Min)
      total = in < total ? in : total;
    else if (kind == Reduction::Max)
      total = in > total ? in : total;
    else if (kind == Reduction::And)
      total = T(total & in);
    else if (kind == Reduction::Or)
      total = T(total | in);
    else
      total = T(total ^ in);
    isFirst = false;
  }
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1)
      static_cast<ReduceArguments<T> *>(arguments[lane])->out = total;
}
template <typename T, Reduction kind>
__attribute__((noinline, no_sanitize("thread"))) T reduce(unsigned mask, T in) {
  ReduceArguments<T> own{in, in};
  collective(Collective::Reduce, mask, &own, reduceLanes<T, kind>);
  return own.out;
}

} // namespace ingot::simt

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return ingot::simt::shuffle<T, ingot::simt::Shuffle::Index>(mask, value, lane,
                                                              width);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned apart,
                               int width = 32) {
  return ingot::simt::shuffle<T, ingot::simt::Shuffle::Up>(mask, value,
                                                           int(apart), width);
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned apart,
                                 int width = 32) {
  return ingot::simt::shuffle<T, ingot::simt::Shuffle::Down>(mask, value,
                                                             int(apart), width);
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int apart,
                                int width = 32) {
  return ingot::simt::shuffle<T, ingot::simt::Shuffle::Xor>(mask, value, apart,
                                                            width);
}
INGOT_SIMT_CALL unsigned __ballot_sync(unsigned mask, int predicate) {
  ingot::simt::VoteArguments own{predicate != 0, 0};
  ingot::simt::collective(ingot::simt::Collective::Vote, mask, &own,
                          ingot::simt::countVotes);
  return own.out;
}
static inline int __any_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
template <typename T>
static inline T __reduce_add_sync(unsigned mask, T value) {
  return ingot::simt::reduce<T, ingot::simt::Reduction::Add>(mask, value);
}
template <typename T>
static inline T __reduce_min_sync(unsigned mask, T value) {
  return ingot::simt::reduce<T, ingot::simt::Reduction::Min>(mask, value);
}
template <typename T>
static inline T __reduce_max_sync(unsigned mask, T value) {
  return ingot::simt::reduce<T, ingot::simt::Reduction::Max>(mask, value);
}
static inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return ingot::simt::reduce<unsigned, ingot::simt::Reduction::And>(mask,
                                                                    value);
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return ingot::simt::reduce<unsigned, ingot::simt::Reduction::Or>(mask, value);
}
static inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return ingot::simt::reduce<unsigned, ingot::simt::Reduction::Xor>(mask,
                                                                    value);
}

// ---- atomics: threads run one at a time, so a plain update is atomic ----
template <typename T, typename Update>
__attribute__((always_inline, no_sanitize("thread"))) static inline T
ingotSimtAtomic(T *at, Update update, const void *pc) {
  ingot::simt::noteAtomic(at, sizeof(T), pc);
  T old;
  std::memcpy(&old, at, sizeof old);
  const T next = update(old);
  std::memcpy(at, &next, sizeof next);
  return old;
}
template <typename T>
__attribute__((noinline, no_sanitize("thread"))) static T atomicAdd(T *at,
                                                                    T value) {
  return ingotSimtAtomic(
      at,
      [=](T old)
          __attribute__((no_sanitize("thread"))) { return T(old + value); },
      __builtin_return_address(0));
}
template <typename T>
__attribute__((noinline, no_sanitize("thread"))) static T atomicMax(T *at,
                                                                    T value) {
  return ingotSimtAtomic(
      at,
      [=](T old) __attribute__((no_sanitize("thread"))) {
        return old > value ? old : value;
      },
      __builtin_return_address(0));
}
template <typename T>
__attribute__((noinline, no_sanitize("thread"))) static T atomicMin(T *at,
                                                                    T value) {
  return ingotSimtAtomic(
      at,
      [=](T old) __attribute__((no_sanitize("thread"))) {
        return old < value ? old : value;
      },
      __builtin_return_address(0));
}
template <typename T>
__attribute__((noinline, no_sanitize("thread"))) static T atomicExch(T *at,
                                                                     T value) {
  return ingotSimtAtomic(
      at, [=](T) __attribute__((no_sanitize("thread"))) { return value; },
      __builtin_return_address(0));
}
template <typename T>
__attribute__((noinline, no_sanitize("thread"))) static T
atomicCAS(T *at, T expected, T value) {
  return ingotSimtAtomic(
      at,
      [=](T old) __attribute__((no_sanitize("thread"))) {
        return old == expected ? value : old;
      },
      __builtin_return_address(0));
}

// ---- wrappers of Device.h ----
namespace ingot::device {

class SharedMemory {
public:
  template <typename T> T *take(uint32_t count) {
    return static_cast<T *>(
        ingot::simt::carveShared(std::size_t(count) * sizeof(T), 16));
  }
};

// Wide accesses through one call each, so that the trace sees one access: the
// compiler may split or join plain ones.
template <typename Words>
__attribute__((always_inline, no_sanitize("thread"))) static inline Words
ingotSimtLoad(const void *from, const void *pc) {
  from = ingot::simt::accessAddress(from, sizeof(Words), pc);
  if (reinterpret_cast<std::uintptr_t>(from) & (sizeof(Words) - 1))
    ingot::simt::misuse("a wide load that is not aligned", pc);
  ingot::simt::noteAccess(from, sizeof(Words), false, pc);
  Words words;
  std::memcpy(&words, from, sizeof words);
  return words;
}
template <typename Words>
__attribute__((always_inline, no_sanitize("thread"))) static inline void
ingotSimtStore(void *to, Words words, const void *pc) {
  to = ingot::simt::accessAddress(to, sizeof(Words), pc);
  if (reinterpret_cast<std::uintptr_t>(to) & (sizeof(Words) - 1))
    ingot::simt::misuse("a wide store that is not aligned", pc);
  ingot::simt::noteAccess(to, sizeof(Words), true, pc);
  std::memcpy(to, &words, sizeof words);
}
INGOT_SIMT_CALL uint4 loadWords4(const void *from) {
  return ingotSimtLoad<uint4>(from, __builtin_return_address(0));
}
INGOT_SIMT_CALL uint2 loadWords2(const void *from) {
  return ingotSimtLoad<uint2>(from, __builtin_return_address(0));
}
INGOT_SIMT_CALL uint4 streamWords4(const void *from) {
  return ingotSimtLoad<uint4>(from, __builtin_return_address(0));
}
INGOT_SIMT_CALL void storeWords4(void *to, uint4 words) {
  ingotSimtStore(to, words, __builtin_return_address(0));
}
INGOT_SIMT_CALL void storeWords2(void *to, uint2 words) {
  ingotSimtStore(to, words, __builtin_return_address(0));
}

INGOT_SIMT_CALL void copyAsync16(void *target, const void *source,
                                 int32_t sourceBytes) {
  ingot::simt::asyncCopy(target, source, 16, sourceBytes,
                         __builtin_return_address(0));
}
INGOT_SIMT_CALL void commitCopies() { ingot::simt::commitAsyncCopies(); }
template <int pending> INGOT_SIMT_CALL void waitCopies() {
  ingot::simt::waitAsyncCopies(pending, __builtin_return_address(0));
}

INGOT_SIMT_CALL void loadMatrices4(uint32_t (&to)[4], const void *row) {
  ingot::simt::loadMatrix({row, to, 4, false}, __builtin_return_address(0));
}
INGOT_SIMT_CALL void loadMatrices4Transposed(uint32_t (&to)[4],
                                             const void *row) {
  ingot::simt::loadMatrix({row, to, 4, true}, __builtin_return_address(0));
}
INGOT_SIMT_CALL void mmaF16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                            uint32_t b1) {
  const uint32_t b[2] = {b0, b1};
  ingot::simt::multiplyAdd({c, a, b}, __builtin_return_address(0));
}

INGOT_DEVICE uint16_t toHalf(float value) {
  return ingot::simt::floatToHalf(value);
}
INGOT_DEVICE float fromHalf(uint16_t bits) {
  return ingot::simt::halfToFloat(bits);
}
INGOT_DEVICE uint32_t packHalves(float low, float high) {
  return uint32_t(toHalf(low)) | uint32_t(toHalf(high)) << 16;
}
INGOT_DEVICE uint32_t subtractHalves(uint32_t a, uint32_t b) {
  // Exact in float32, so rounding once more rounds once.
  return packHalves(fromHalf(uint16_t(a)) - fromHalf(uint16_t(b)),
                    fromHalf(uint16_t(a >> 16)) - fromHalf(uint16_t(b >> 16)));
}
INGOT_DEVICE float infinity() { return std::numeric_limits<float>::infinity(); }
INGOT_DEVICE float notANumber() { return std::bit_cast<float>(0x7fffffffu); }
INGOT_DEVICE uint32_t bitsOf(float value) {
  return std::bit_cast<uint32_t>(value);
}
INGOT_DEVICE float floatOf(uint32_t bits) { return std::bit_cast<float>(bits); }

} // namespace ingot::device

// ---- functions of CUDA that the kernels use ----
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i)
    result |= unsigned(bytes >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return result;
}
static inline int __popc(unsigned value) { return __builtin_popcount(value); }
static inline int __clz(int value) {
  return value ? __builtin_clz(unsigned(value)) : 32;
}
