// What CublasLtTypes.h and DriverTypes.h declare by hand against NVIDIA's own header,
// on machines that have one: numbers, sizes and the arguments of each function.
#include "runtime/execute/cuda/CublasLtTypes.h"

#include <cublasLt.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace ingot::cuda {
namespace {

static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(LtHeuristic, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(LtHeuristic, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(sizeof(LtStatus) == sizeof(cublasStatus_t));
static_assert(kLtSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kLtNotInitialized == CUBLAS_STATUS_NOT_INITIALIZED);
static_assert(kLtInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kLtExecutionFailed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(kLtNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(kLtFloat32 == CUDA_R_32F && kLtFloat16 == CUDA_R_16F);
static_assert(kLtComputeFloat32 == CUBLAS_COMPUTE_32F);
static_assert(kLtNotTransposed == CUBLAS_OP_N && kLtTransposed == CUBLAS_OP_T);
static_assert(kLtMatmulTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(kLtMatmulTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kLtPreferWorkspaceBytes ==
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kLtPreferAlignmentA ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kLtPreferAlignmentB ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(kLtPreferAlignmentC ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(kLtPreferAlignmentD ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);

// The same kind of argument in a call: pointers of any type, else the size and whether
// it is a whole number.
template <typename Ours, typename Theirs> constexpr bool isSame() {
  if (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>)
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  constexpr bool ours = std::is_integral_v<Ours> || std::is_enum_v<Ours>;
  constexpr bool theirs = std::is_integral_v<Theirs> || std::is_enum_v<Theirs>;
  return ours == theirs && sizeof(Ours) == sizeof(Theirs);
}
template <typename Ours, typename Theirs> struct Signature;
template <typename... Ours, typename Result, typename... Theirs>
struct Signature<void(Ours...), Result(Theirs...)> {
  static constexpr bool isSameCount = sizeof...(Ours) == sizeof...(Theirs);
  static constexpr bool check() {
    if constexpr (!isSameCount)
      return false;
    else
      return std::is_same_v<Result, cublasStatus_t> &&
             (isSame<Ours, Theirs>() && ...);
  }
};

#define INGOT_CHECK(NAME, SYMBOL, TYPES)                                       \
  static_assert(Signature<void TYPES, decltype(INGOT_THEIRS_##NAME)>::check());
#define INGOT_THEIRS_create cublasLtCreate
#define INGOT_THEIRS_destroy cublasLtDestroy
#define INGOT_THEIRS_matmulCreate cublasLtMatmulDescCreate
#define INGOT_THEIRS_matmulDestroy cublasLtMatmulDescDestroy
#define INGOT_THEIRS_matmulSet cublasLtMatmulDescSetAttribute
#define INGOT_THEIRS_layoutCreate cublasLtMatrixLayoutCreate
#define INGOT_THEIRS_layoutDestroy cublasLtMatrixLayoutDestroy
#define INGOT_THEIRS_preferenceCreate cublasLtMatmulPreferenceCreate
#define INGOT_THEIRS_preferenceDestroy cublasLtMatmulPreferenceDestroy
#define INGOT_THEIRS_preferenceSet cublasLtMatmulPreferenceSetAttribute
#define INGOT_THEIRS_heuristic cublasLtMatmulAlgoGetHeuristic
#define INGOT_THEIRS_matmul cublasLtMatmul
INGOT_CUBLASLT_CALLS(INGOT_CHECK)

// All of the above is checked by the compiler; what is left is the version's count.
TEST(CublasLtTypesTest, areNvidias) {
  EXPECT_EQ(CUBLAS_VERSION / 10000, CUBLAS_VER_MAJOR);
}

} // namespace
} // namespace ingot::cuda
