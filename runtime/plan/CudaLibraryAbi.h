// What the two kernels around a product of cuBLASLt take: weights of the layout mma16
// to plain rows before it, sums to the values of `linear` behind it. As CudaAbi.h,
// included by the kernels' text and by the executor.
#pragma once

#include "runtime/plan/CudaAbi.h"

namespace ingot::abi {

// library_linear: the weights as float16 [paddedRows, paddedK], paddedK = cudaPaddedK(k),
// paddedRows = n rounded up to 16. bfloat16 becomes float16 as `linear` makes it.
struct CudaUnpackParams {
  const void *codes; // as PackedWeights
  uint16_t *output;
  int32_t k;
  int32_t n;
};
static_assert(sizeof(CudaUnpackParams) == 24);
inline constexpr int32_t kUnpackUnits = 4; // of K, of a tile: one a warp
inline constexpr KernelGeometry unpackGeometry() {
  return {kUnpackUnits * 32, 0, kMmaRows, 1};
}
inline constexpr KernelGrid unpackGrid(int32_t n, int32_t k) {
  const int64_t units = cudaPaddedK(k) / kCudaUnit;
  return {static_cast<uint32_t>((n + kMmaRows - 1) / kMmaRows),
          static_cast<uint32_t>((units + kUnpackUnits - 1) / kUnpackUnits), 1};
}
inline constexpr int64_t unpackedBytes(int64_t n, int64_t k) {
  return (n + kMmaRows - 1) / kMmaRows * kMmaRows * cudaPaddedK(k) * 2;
}

// library_finish: y = sum * the token's scale, + bias, + residual. Grid: rowGrid(tokens).
struct CudaFinishParams {
  const float *sums; // [tokens, sumsStride]
  int64_t sumsStride;
  LinearParams linear; // all but the weights
};
static_assert(sizeof(CudaFinishParams) == 16 + sizeof(LinearParams));
// Floats from one token's sums to the next: rows begin at multiples of 256 bytes.
inline constexpr int64_t librarySumsStride(int64_t n) {
  return (n + 63) / 64 * 64;
}

} // namespace ingot::abi
