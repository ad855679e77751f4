// Compiles kernels for a feature level and maps their code as a runtime does:
// one read and execute segment from a file, no dynamic linker. For tests and
// benchmarks.
#pragma once

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/KernelBitcode.h"
#include "runtime/plan/KernelAbi.h"

#include <memory>
#include <string>
#include <vector>

namespace ingot::test {

// The product's levels that this machine can run, and "emulated-avx512": the
// sources of avx512-vnni with portable bodies for its wide instructions.
const codegen::CpuLevel &emulatedLevel();
// Null for an unknown name.
const codegen::CpuLevel *levelNamed(const std::string &name);
bool machineRuns(const codegen::CpuLevel &level);

class MappedKernels {
public:
  static Result<MappedKernels>
  compile(const codegen::CpuLevel &level,
          const std::vector<codegen::KernelRequest> &requests);
  MappedKernels(MappedKernels &&other) noexcept;
  MappedKernels &operator=(MappedKernels &&) = delete;
  ~MappedKernels();

  // By position in the requests.
  abi::KernelFn at(std::size_t index) const;
  const codegen::CompiledLevel &level() const { return level_; }

private:
  MappedKernels() = default;
  codegen::CompiledLevel level_;
  void *base_ = nullptr;
};

} // namespace ingot::test
