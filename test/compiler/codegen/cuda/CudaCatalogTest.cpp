// Names of CUDA kernels to what they are compiled with, and back; texts; what ptxas
// prints. Nothing here needs NVRTC.
#include "compiler/codegen/cuda/CompileCuda.h"
#include "compiler/codegen/cuda/KernelSources.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot::codegen {
namespace {

TEST(CudaCatalog, NamesSayEverything) {
  auto kernel = cudaKernel("linear_i4g32m_t16");
  ASSERT_TRUE(kernel) << kernel.status().message();
  EXPECT_EQ(kernel->op, "linear");
  EXPECT_EQ(kernel->entry, "ingot_linear_i4g32m_t16");
  const std::vector<std::pair<std::string, std::string>> want = {
      {"INGOT_CODE", "I4"},
      {"INGOT_GROUP", "32"},
      {"INGOT_MINIMUM", "true"},
      {"INGOT_TILE", "T16"},
      {"INGOT_PARTS", "1"}};
  EXPECT_EQ(kernel->constants, want);
  EXPECT_EQ(kernel->geometry.tokens, 16);
  // Activations of two parts: T32 is no split tile there.
  auto two = cudaKernel("linear_bf16x2_t32");
  ASSERT_TRUE(two) << two.status().message();
  EXPECT_EQ(two->file, "LinearWide.cu");
  EXPECT_EQ(cudaKernel("linear_bf16_t32")->file, "LinearSplit.cu");
  EXPECT_EQ(two->constants.back(),
            std::pair(std::string("INGOT_PARTS"), std::string("2")));
  auto attention = cudaKernel("attention_split_h128_bf16");
  ASSERT_TRUE(attention) << attention.status().message();
  EXPECT_EQ(attention->op, "attention_split");
  EXPECT_EQ(cudaKernel("attention_h128_bf16")->op, "attention");
  EXPECT_EQ(cudaKernel("attention_merge")->op, "attention_merge");
}

TEST(CudaCatalog, WrongNamesAreRefusedByTheirWrongPart) {
  const auto message = [](const char *name) {
    auto kernel = cudaKernel(name);
    return kernel ? std::string("accepted") : kernel.status().message();
  };
  for (auto [name, part] :
       {std::pair{"linear_f32_t8", "\"f32\""},
        {"linear_f16_t9", "t8, t16, t32, t64 or p64"},
        {"linear_f16", "t8, t16, t32, t64 or p64"},
        {"linear_i8g32x2_t8", "offered with f16 and bf16 weights"},
        {"linear_x2_t8", "\"\""},
        {"embed_f16x2", "\"f16x2\""},
        {"linear_i8g48_t8", "groups of 16, 32, 64, 128 and 256"},
        {"linear_i8g032_t8", "groups of 16"},
        {"attention_h60_f16", "multiples of 8"},
        {"attention_h512_f16", "multiples of 8 up to 256"},
        {"attention_h64_f32", "\"f32\""},
        {"attention_x64_f16", "expected h<head size>_<kv>"},
        {"rope_cache_write_h64", "expected h<head size>_<kv>"},
        {"gated_tanh", "no activation \"tanh\""},
        {"matmul", "no such operation"},
        {"", "no such operation"}})
    EXPECT_NE(message(name).find(part), std::string::npos) << message(name);
}

TEST(CudaCatalog, EncodingsSpellThemselves) {
  for (const char *spelling : {"f16", "bf16", "i8g16", "i8g32m", "i8c", "i4g64",
                               "i4g128", "i4g256m", "i4c"}) {
    auto encoding = cudaEncoding(spelling);
    ASSERT_TRUE(encoding) << spelling;
    EXPECT_EQ(spellCudaEncoding(*encoding), spelling);
  }
}

// One text, no includes but marks of lines; texts of different kernels differ.
TEST(CudaCatalog, TextsAreWholeAndDifferent) {
  std::set<std::uint64_t> hashes;
  for (const std::string &name : commonCudaKernels()) {
    auto kernel = cudaKernel(name);
    ASSERT_TRUE(kernel) << kernel.status().message();
    auto text = cudaKernelText(*kernel);
    ASSERT_TRUE(text) << text.status().message();
    EXPECT_EQ(text->find("#include"), std::string::npos) << name;
    EXPECT_EQ(text->find("#pragma once"), std::string::npos) << name;
    EXPECT_NE(text->find("INGOT_KERNEL(INGOT_NAME, " + kernel->params),
              std::string::npos)
        << name;
    hashes.insert(cudaTextHash(*text));
    EXPECT_LE(kernel->geometry.sharedBytes, 96 * 1024) << name;
    EXPECT_EQ(kernel->geometry.sharedBytes % 4, 0) << name;
  }
  EXPECT_EQ(hashes.size(), commonCudaKernels().size());
  EXPECT_FALSE(flattenCudaSource("compiler/kernels/cuda/None.cu"));
}

TEST(CudaCatalog, ResourcesAreReadFromTheLog) {
  const std::string log =
      "ptxas info    : 0 bytes gmem, 112 bytes cmem[3]\n"
      "ptxas info    : Compiling entry function 'ingot_a' for 'sm_90'\n"
      "ptxas info    : Function properties for ingot_a\n"
      "ptxas         .     8 bytes stack frame, 12 bytes spill stores, 16 "
      "bytes "
      "spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 64 bytes smem, 400 "
      "bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'ingot_b' for 'sm_90'\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes "
      "spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 400 bytes cmem[0]\n";
  const KernelResources a = readResources(log, "ingot_a");
  EXPECT_EQ(a.registers, 255u);
  EXPECT_EQ(a.spillBytes, 28u);
  EXPECT_EQ(a.stackBytes, 8u);
  EXPECT_EQ(a.staticSharedBytes, 64u);
  const KernelResources b = readResources(log, "ingot_b");
  EXPECT_EQ(b.registers, 32u);
  EXPECT_EQ(b.spillBytes, 0u);
  EXPECT_EQ(b.staticSharedBytes, 0u);
  EXPECT_EQ(readResources(log, "ingot_c").registers, 0u);
}

TEST(CudaCatalog, NoNvrtcIsOneSentence) {
  auto nvrtc = Nvrtc::open("/nowhere/libnvrtc.so");
  ASSERT_FALSE(nvrtc);
  EXPECT_EQ(nvrtc.status().code(), StatusCode::NotFound);
  EXPECT_NE(nvrtc.status().message().find("tried /nowhere/libnvrtc.so"),
            std::string::npos)
      << nvrtc.status().message();
  // A library that is something else.
  auto other = Nvrtc::open("libdl.so.2");
  ASSERT_FALSE(other);
  EXPECT_NE(other.status().message().find("nvrtcVersion"), std::string::npos)
      << other.status().message();
}

} // namespace
} // namespace ingot::codegen
