// Small kernels that do one thing each, right or wrong, for the tests of the
// emulator itself. Compiled like every kernel: with instrumentation.
#pragma once

#include <cstdint>

namespace ingot::simt::probes {

// Reverses 256 values through shared memory; without the barrier it is a race.
void reverse(float *values, bool withBarrier);
// A warp's exchange through shared memory, ordered by __syncwarp or by nothing.
void warpExchange(std::uint32_t *values, bool withSync);
// Reads shared[index] of 64 written ones, in a piece of `size` elements.
void sharedRead(float *out, int size, int index, bool isWritten);
void sharedWrite(int size, int index);
// values[index] = values[source].
void deviceCopy(float *values, int index, int source);
void deviceConstantWrite(float *values);
// All threads of two blocks: add 1 by an atomic, or by a load and a store.
void count(std::uint32_t *counter, bool isAtomic);
// Block 1 reads what block 0 writes, or the other way round.
void crossBlocks(float *values, float *out, int reader);
// shfl by index, up, down, xor of 32 values, in groups of `width`.
void shuffles(const int *in, int *out, int operand, int width);
void votes(const int *in, unsigned *out, unsigned mask);
void reductions(const int *in, int *out);
// Half of the warp calls with the mask of that half.
void halfWarps(const int *in, int *out);
void blockVotes(const int *in, int *out);
// Barriers that only some threads, or different threads at different places, meet.
void skippedBarrier(int threads);
void twoBarriers(int threads);
void strayLane();
void collectiveMismatch();
// Stages `steps` tiles of 16 bytes a thread through a ring of `stages` by
// asynchronous copies, waiting for all but `pending` groups before each use.
void ring(const float *in, float *out, int steps, int stages, int pending,
          bool lastBarrier);
// Rows past `valid` are filled with zeros.
void zeroFill(const float *in, float *out, int validBytes);
// One ldmatrix x4 of a 16 x 16 tile with rows of `stride` elements.
void matrices(const std::uint16_t *in, std::uint32_t *out, int stride,
              bool isTransposed);
// C = A * B of 16 x 16 and 16 x 8, loaded by the layout of docs/cuda.md.
void multiply(const std::uint16_t *a, const std::uint16_t *b, float *c);
// One mma of registers that the caller has laid out: a[32][4], b[32][2], c[32][4].
void multiplyRegisters(const std::uint32_t *a, const std::uint32_t *b,
                       float *c);
// Shared words at `stride`, and device words at `stride`: for the trace.
void strided(const std::uint32_t *in, std::uint32_t *out, int sharedStride,
             int deviceStride);

} // namespace ingot::simt::probes
