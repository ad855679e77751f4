// What a CUDA thread sees of itself, and the emulator's entry points for kernels.
// Included by kernel sources through DeviceOnHost.h, so it brings no heavy header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::simt {

struct Index3 {
  unsigned x, y, z;
};

struct ThreadContext {
  Index3 thread, block, blockDim, gridDim;
  int linear, lane, warp;
};
// Of the thread that runs now.
extern const ThreadContext *currentThread;

enum class Collective { SyncWarp, Shuffle, Vote, Reduce, LoadMatrix, Mma };

// Called once, by the last lane to arrive, with the arguments of the lanes in
// `mask` (others null).
using CollectiveFn = void (*)(void **arguments, unsigned mask);
void collective(Collective kind, unsigned mask, void *argument,
                CollectiveFn fn);
void blockBarrier(const void *pc);
enum class BarrierReduce { Or, And, Count };
int blockBarrierReduce(int predicate, BarrierReduce operation, const void *pc);

// A piece of dynamic shared memory; every thread carves the same pieces in the
// same order and gets the same addresses.
void *carveShared(std::size_t bytes, std::size_t align);

// An access that the compiler's instrumentation does not see, or splits.
void noteAccess(const void *address, std::size_t bytes, bool isWrite,
                const void *pc);
// Where a wide access of `bytes` goes: `address`, but for a planted fault.
void *accessAddress(const void *address, std::size_t bytes, const void *pc);
// Before an atomic operation of the current thread.
void noteAtomic(const void *address, std::size_t bytes, const void *pc);
void misuse(const char *message, const void *pc);

void asyncCopy(void *target, const void *source, int bytes, int sourceBytes,
               const void *pc);
void commitAsyncCopies();
// Until at most `pending` groups of this thread have not landed.
void waitAsyncCopies(int pending, const void *pc);

// ldmatrix: `row` is the lane's address of eight 16-bit elements.
struct LoadMatrixArguments {
  const void *row;
  std::uint32_t *registers; // one a matrix
  int matrices;             // 1, 2 or 4
  bool isTransposed;
};
void loadMatrix(const LoadMatrixArguments &arguments, const void *pc);

// mma.m16n8k16, float16 inputs, float32 accumulation.
struct MmaArguments {
  float *accumulators;    // 4: both input and output
  const std::uint32_t *a; // 4
  const std::uint32_t *b; // 2
};
void multiplyAdd(const MmaArguments &arguments, const void *pc);

} // namespace ingot::simt
