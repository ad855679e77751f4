// cuBLASLt itself, where the machine has it: its library opens without a GPU, is new
// enough and has every function that the runtime calls.
#include "runtime/execute/cuda/CublasLt.h"

#include <gtest/gtest.h>

namespace ingot::cuda {
namespace {

TEST(CublasLtTest, hasWhatIsCalled) {
  auto library = CublasLt::open();
  if (!library)
    GTEST_SKIP() << library.status().message();
  EXPECT_GE((*library)->version(), kLeastCublasLtVersion);
  EXPECT_NE((*library)->path(), "");
  std::printf("cuBLASLt %s, %s\n", (*library)->versionText().c_str(),
              (*library)->path().c_str());
  // Descriptors need no device, and what is wrong with one is said by name.
  LtMatmul matmul = nullptr;
  Status made =
      (*library)->matmulCreate(&matmul, kLtComputeFloat32, kLtFloat32);
  ASSERT_TRUE(made.isOk()) << made.message();
  EXPECT_TRUE((*library)
                  ->matmulSet(matmul, kLtMatmulTransposeA, &kLtTransposed,
                              sizeof kLtTransposed)
                  .isOk());
  Status refused =
      (*library)->matmulSet(matmul, kLtMatmulTransposeA, &kLtTransposed, 1);
  EXPECT_EQ(refused.message(), "cublasLtMatmulDescSetAttribute: "
                               "CUBLAS_STATUS_INVALID_VALUE (7)");
  LtPreference preference = nullptr;
  ASSERT_TRUE((*library)->preferenceCreate(&preference).isOk());
  std::uint64_t workspace = 1 << 20;
  std::uint32_t alignment = 64;
  EXPECT_TRUE((*library)
                  ->preferenceSet(preference, kLtPreferWorkspaceBytes,
                                  &workspace, sizeof workspace)
                  .isOk());
  for (int attribute : {kLtPreferAlignmentA, kLtPreferAlignmentB,
                        kLtPreferAlignmentC, kLtPreferAlignmentD})
    EXPECT_TRUE(
        (*library)
            ->preferenceSet(preference, attribute, &alignment, sizeof alignment)
            .isOk());
  EXPECT_TRUE((*library)->preferenceDestroy(preference).isOk());
  EXPECT_TRUE((*library)->matmulDestroy(matmul).isOk());
}

} // namespace
} // namespace ingot::cuda
