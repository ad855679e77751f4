// Bodies of single threads, run by the test inside simt::launch.
#include "test/simt/Probes.h"
#include "compiler/kernels/cuda/Device.h"

namespace ingot::simt::probes {

using namespace ingot::device;

void reverse(float *values, bool withBarrier) {
  SharedMemory memory;
  auto *shared = memory.take<float>(256);
  shared[threadIdx.x] = values[threadIdx.x];
  if (withBarrier)
    __syncthreads();
  values[threadIdx.x] = shared[255 - threadIdx.x];
}

void warpExchange(uint32_t *values, bool withSync) {
  SharedMemory memory;
  auto *shared = memory.take<uint32_t>(32);
  shared[threadIdx.x] = values[threadIdx.x];
  if (withSync)
    __syncwarp();
  values[threadIdx.x] = shared[threadIdx.x ^ 5];
}

void sharedRead(float *out, int size, int index, bool isWritten) {
  SharedMemory memory;
  auto *shared = memory.take<float>(uint32_t(size));
  if (isWritten && int(threadIdx.x) < size)
    shared[threadIdx.x] = 1.0f;
  __syncthreads();
  if (threadIdx.x == 0)
    out[0] = shared[index];
}

void sharedWrite(int size, int index) {
  SharedMemory memory;
  auto *shared = memory.take<float>(uint32_t(size));
  if (threadIdx.x == 0)
    shared[index] = 1.0f;
}

void deviceCopy(float *values, int index, int source) {
  if (threadIdx.x == 0)
    values[index] = values[source];
}

void deviceConstantWrite(float *values) {
  if (threadIdx.x == 0)
    values[0] = 1.0f;
}

void count(uint32_t *counter, bool isAtomic) {
  if (isAtomic)
    atomicAdd(counter, 1u);
  else
    *counter = *counter + 1;
}

void crossBlocks(float *values, float *out, int reader) {
  if (threadIdx.x != 0)
    return;
  if (int(blockIdx.x) == reader)
    out[0] = values[0];
  else
    values[0] = 2.0f;
}

void shuffles(const int *in, int *out, int operand, int width) {
  const int value = in[threadIdx.x];
  out[threadIdx.x] = __shfl_sync(kAllLanes, value, operand, width);
  out[32 + threadIdx.x] =
      __shfl_up_sync(kAllLanes, value, unsigned(operand), width);
  out[64 + threadIdx.x] =
      __shfl_down_sync(kAllLanes, value, unsigned(operand), width);
  out[96 + threadIdx.x] = __shfl_xor_sync(kAllLanes, value, operand, width);
}

void votes(const int *in, unsigned *out, unsigned mask) {
  if (!(mask >> threadIdx.x & 1))
    return;
  const int value = in[threadIdx.x];
  out[threadIdx.x] = __ballot_sync(mask, value);
  out[32 + threadIdx.x] = unsigned(__any_sync(mask, value));
  out[64 + threadIdx.x] = unsigned(__all_sync(mask, value));
}

void reductions(const int *in, int *out) {
  const int value = in[threadIdx.x];
  out[threadIdx.x] = __reduce_add_sync(kAllLanes, value);
  out[32 + threadIdx.x] = __reduce_min_sync(kAllLanes, value);
  out[64 + threadIdx.x] = __reduce_max_sync(kAllLanes, value);
  out[96 + threadIdx.x] = int(__reduce_xor_sync(kAllLanes, unsigned(value)));
}

void halfWarps(const int *in, int *out) {
  const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
  int value = in[threadIdx.x];
  for (int apart = 8; apart > 0; apart /= 2)
    value += __shfl_xor_sync(mask, value, apart);
  __syncwarp(mask);
  out[threadIdx.x] = value;
}

void blockVotes(const int *in, int *out) {
  const int value = in[threadIdx.x];
  const int any = __syncthreads_or(value);
  const int all = __syncthreads_and(value);
  const int number = __syncthreads_count(value);
  out[threadIdx.x] = any * 10000 + all * 1000 + number;
}

void skippedBarrier(int threads) {
  if (int(threadIdx.x) < threads)
    __syncthreads();
}

void twoBarriers(int threads) {
  // What follows differs, or the compiler makes one barrier of the two.
  if (int(threadIdx.x) < threads) {
    __syncthreads();
    asm volatile("# first" ::: "memory");
  } else {
    __syncthreads();
    asm volatile("# second" ::: "memory");
  }
}

void strayLane() {
  if (threadIdx.x != 7)
    (void)__shfl_xor_sync(kAllLanes, 1, 1);
  __syncthreads();
}

void collectiveMismatch() {
  if (threadIdx.x < 16)
    (void)__ballot_sync(kAllLanes, 1);
  else
    (void)__shfl_xor_sync(kAllLanes, 1, 1);
}

void ring(const float *in, float *out, int steps, int stages, int pending,
          bool lastBarrier) {
  SharedMemory memory;
  auto *shared = memory.take<float>(uint32_t(stages) * 4 * blockDim.x);
  const int width = 4 * int(blockDim.x);
  const int own = 4 * int(threadIdx.x);
  auto issue = [&](int step) {
    if (step < steps)
      copyAsync16(shared + step % stages * width + own, in + step * width + own,
                  16);
    commitCopies();
  };
  for (int step = 0; step < stages; ++step)
    issue(step);
  float total = 0.0f;
  for (int step = 0; step < steps; ++step) {
    // The wait count is a constant of the instruction.
    if (pending == 0)
      waitCopies<0>();
    else if (pending == 1)
      waitCopies<1>();
    else if (pending == 2)
      waitCopies<2>();
    else
      waitCopies<3>();
    __syncthreads();
    total += shared[step % stages * width + width - 1 - own];
    if (lastBarrier)
      __syncthreads();
    issue(step + stages);
  }
  out[threadIdx.x] = total;
}

void zeroFill(const float *in, float *out, int validBytes) {
  SharedMemory memory;
  auto *shared = memory.take<float>(4 * 32);
  copyAsync16(shared + 4 * threadIdx.x, in, validBytes);
  commitCopies();
  waitCopies<0>();
  __syncthreads();
  for (int i = 0; i < 4; ++i)
    out[4 * threadIdx.x + i] = shared[4 * threadIdx.x + i];
}

void matrices(const uint16_t *in, uint32_t *out, int stride,
              bool isTransposed) {
  SharedMemory memory;
  auto *shared = memory.take<uint16_t>(uint32_t(16 * stride));
  for (int i = int(threadIdx.x); i < 256; i += 32)
    shared[i / 16 * stride + i % 16] = in[i];
  __syncthreads();
  // Matrices 0 and 1: rows 0..7 and 8..15 of columns 0..7; then columns 8..15.
  const int lane = int(threadIdx.x);
  const uint16_t *row = shared + lane % 16 * stride + lane / 16 * 8;
  uint32_t words[4];
  if (isTransposed)
    loadMatrices4Transposed(words, row);
  else
    loadMatrices4(words, row);
  for (int i = 0; i < 4; ++i)
    out[lane * 4 + i] = words[i];
}

void multiply(const uint16_t *a, const uint16_t *b, float *c) {
  const int lane = int(threadIdx.x);
  const int g = lane / 4;
  const int q = lane % 4;
  auto pair = [](const uint16_t *at, int apart) {
    return uint32_t(at[0]) | uint32_t(at[apart]) << 16;
  };
  const uint32_t own[4] = {
      pair(a + g * 16 + 2 * q, 1), pair(a + (g + 8) * 16 + 2 * q, 1),
      pair(a + g * 16 + 2 * q + 8, 1), pair(a + (g + 8) * 16 + 2 * q + 8, 1)};
  float sums[4] = {c[g * 8 + 2 * q], c[g * 8 + 2 * q + 1],
                   c[(g + 8) * 8 + 2 * q], c[(g + 8) * 8 + 2 * q + 1]};
  mmaF16(sums, own, pair(b + 2 * q * 8 + g, 8),
         pair(b + (2 * q + 8) * 8 + g, 8));
  for (int i = 0; i < 4; ++i)
    c[(g + i / 2 * 8) * 8 + 2 * q + i % 2] = sums[i];
}

void multiplyRegisters(const uint32_t *a, const uint32_t *b, float *c) {
  const int lane = int(threadIdx.x);
  const uint32_t own[4] = {a[lane * 4], a[lane * 4 + 1], a[lane * 4 + 2],
                           a[lane * 4 + 3]};
  float sums[4] = {};
  mmaF16(sums, own, b[lane * 2], b[lane * 2 + 1]);
  for (int i = 0; i < 4; ++i)
    c[lane * 4 + i] = sums[i];
}

void strided(const uint32_t *in, uint32_t *out, int sharedStride,
             int deviceStride) {
  SharedMemory memory;
  auto *shared = memory.take<uint32_t>(uint32_t(32 * sharedStride));
  const int lane = int(threadIdx.x);
  shared[lane * sharedStride] = in[lane * deviceStride];
  __syncwarp();
  out[lane] = shared[lane * sharedStride];
}

} // namespace ingot::simt::probes
