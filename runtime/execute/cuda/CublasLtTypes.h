// The part of cuBLASLt's interface that the runtime uses: types, numbers and
// signatures, declared here from NVIDIA's documentation of cuBLASLt, as those of the
// driver are in DriverTypes.h. No header of a toolkit is needed to build Ingot.
#pragma once

#include "runtime/execute/cuda/DriverTypes.h"

#include <cstddef>
#include <cstdint>

namespace ingot::cuda {

using LtStatus = int; // cublasStatus_t
using LtHandle = struct LtContext *;
using LtMatmul = struct LtMatmulData *;         // cublasLtMatmulDesc_t
using LtLayout = struct LtLayoutData *;         // cublasLtMatrixLayout_t
using LtPreference = struct LtPreferenceData *; // cublasLtMatmulPreference_t

struct LtAlgorithm { // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};
struct LtHeuristic { // cublasLtMatmulHeuristicResult_t
  LtAlgorithm algorithm;
  std::size_t workspaceBytes;
  LtStatus state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(LtHeuristic) == 96);

// cublasStatus_t
inline constexpr LtStatus kLtSuccess = 0;
inline constexpr LtStatus kLtNotInitialized = 1;
inline constexpr LtStatus kLtInvalidValue = 7;
inline constexpr LtStatus kLtExecutionFailed = 13;
inline constexpr LtStatus kLtNotSupported = 15;

// cudaDataType_t, cublasComputeType_t, cublasOperation_t
inline constexpr int kLtFloat32 = 0;
inline constexpr int kLtFloat16 = 2;
inline constexpr int kLtComputeFloat32 = 68;
inline constexpr std::int32_t kLtNotTransposed = 0;
inline constexpr std::int32_t kLtTransposed = 1;

// cublasLtMatmulDescAttributes_t
inline constexpr int kLtMatmulTransposeA = 3;
inline constexpr int kLtMatmulTransposeB = 4;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr int kLtPreferWorkspaceBytes = 1; // uint64_t
inline constexpr int kLtPreferAlignmentA = 5;     // uint32_t, bytes
inline constexpr int kLtPreferAlignmentB = 6;
inline constexpr int kLtPreferAlignmentC = 7;
inline constexpr int kLtPreferAlignmentD = 8;

// name in this code, symbol of the library, types of the arguments
#define INGOT_CUBLASLT_CALLS(X)                                                \
  X(create, "cublasLtCreate", (LtHandle *))                                    \
  X(destroy, "cublasLtDestroy", (LtHandle))                                    \
  X(matmulCreate, "cublasLtMatmulDescCreate", (LtMatmul *, int, int))          \
  X(matmulDestroy, "cublasLtMatmulDescDestroy", (LtMatmul))                    \
  X(matmulSet, "cublasLtMatmulDescSetAttribute",                               \
    (LtMatmul, int, const void *, std::size_t))                                \
  X(layoutCreate, "cublasLtMatrixLayoutCreate",                                \
    (LtLayout *, int, std::uint64_t, std::uint64_t, std::int64_t))             \
  X(layoutDestroy, "cublasLtMatrixLayoutDestroy", (LtLayout))                  \
  X(preferenceCreate, "cublasLtMatmulPreferenceCreate", (LtPreference *))      \
  X(preferenceDestroy, "cublasLtMatmulPreferenceDestroy", (LtPreference))      \
  X(preferenceSet, "cublasLtMatmulPreferenceSetAttribute",                     \
    (LtPreference, int, const void *, std::size_t))                            \
  X(heuristic, "cublasLtMatmulAlgoGetHeuristic",                               \
    (LtHandle, LtMatmul, LtLayout, LtLayout, LtLayout, LtLayout, LtPreference, \
     int, LtHeuristic *, int *))                                               \
  X(matmul, "cublasLtMatmul",                                                  \
    (LtHandle, LtMatmul, const void *, const void *, LtLayout, const void *,   \
     LtLayout, const void *, const void *, LtLayout, void *, LtLayout,         \
     const LtAlgorithm *, void *, std::size_t, StreamHandle))

} // namespace ingot::cuda
