// Which CUDA kernels exist, by name: the grammar of docs/kernel-names.md. A kernel is
// one text for NVRTC, the emulator and the stand-in driver; its hash says that they
// speak of the same one.
#pragma once

#include "runtime/plan/CudaAbi.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::codegen {

struct CudaKernel {
  std::string name;   // "linear_f16_t8"
  std::string op;     // "linear"
  std::string entry;  // "ingot_linear_f16_t8"
  std::string params; // "abi::LinearParams": what it takes by value
  std::string file;   // of compiler/kernels/cuda
  // What the file is compiled with, in order.
  std::vector<std::pair<std::string, std::string>> constants;
  // attention_merge: for one head; mergeGeometry() says the rest.
  abi::KernelGeometry geometry;
};

// The kernel of a name; an error says which part of the name is wrong.
Result<CudaKernel> cudaKernel(std::string_view name);

// The kernel's complete text, and XXH3-64 of it.
Result<std::string> cudaKernelText(const CudaKernel &kernel);
std::uint64_t cudaTextHash(std::string_view text);

// An encoding as names spell it: "f16", "bf16", "i8g128", "i4g32m", "i8c".
struct CudaEncoding {
  abi::CudaCode code = abi::CudaCode::F16;
  std::int32_t group = 0;
  bool minimum = false;
};
Result<CudaEncoding> cudaEncoding(std::string_view spelling);
std::string spellCudaEncoding(const CudaEncoding &encoding);
std::string_view spellLinearTile(abi::LinearTile tile); // "t8", ..., "p64"

// Every kernel that a test should have seen: all tiles of the usual encodings, all
// sizes of heads that the emulator runs, every operation.
std::vector<std::string> commonCudaKernels();

} // namespace ingot::codegen
