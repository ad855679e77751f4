// One kernel: the generic function of its source, called with constants, inlined,
// optimised for a feature level and emitted as an object.
#pragma once

#include "compiler/codegen/cpu/CodeObject.h"
#include "compiler/codegen/cpu/KernelBitcode.h"
#include "compiler/codegen/cpu/KernelEntry.h"

namespace ingot::codegen {

// Uses an LLVM context of its own: any number of threads may specialise at once.
Result<NamedObject> specialize(const CpuLevel &level, const KernelEntry &entry,
                               const std::string &symbol);

// compileLevel for a given level; also for levels that are no product (tests).
Result<CompiledLevel> compileForLevel(const CpuLevel &level,
                                      const std::vector<KernelRequest> &kernels,
                                      unsigned threads);

} // namespace ingot::codegen
