// Which CUDA kernels a launch of the target @cuda names, and how each is launched.
// The names are those of docs/kernel-names.md, the geometry that of CudaAbi.h.
#pragma once

#include "compiler/codegen/cpu/KernelCatalog.h"
#include "runtime/plan/CudaAbi.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::plan {

struct CudaKernelVariant {
  std::uint32_t first = 1; // row counts that it serves, as KernelVariant
  std::uint32_t last = 0;
  std::string name;
  std::string op;
  abi::KernelGeometry geometry{};
};

// The variants of an operation, in ascending order, without gaps. `config` as the
// CPU's catalogue takes it; "group" and "bits" of activations mean nothing here.
// A linear of float weights reads activations of two parts. "expert_linear" needs
// "experts" and "top_k", and counts slots. "attention" gives three kernels: the variant, "attention_split" and
// "attention_merge"; it needs "heads" too. Whatever has no CUDA kernel is an error.
Result<std::vector<CudaKernelVariant>>
cudaVariantsFor(const std::string &op, const codegen::KernelConfig &config);

// The levels of code for these chips, best first: chips by number, those with a
// letter before those without, then PTX for later ones. An unknown name or one twice
// is an error.
Result<std::vector<std::string>>
cudaLevels(const std::vector<std::string> &chips);

} // namespace ingot::plan
