// Which generic function of compiler/kernels/cpu a kernel is made from, and the
// constants that it is called with. The one place that ties configurations to
// kernel sources: the catalog reads a configuration with it and code generation
// resolves requests with it, so that both agree on what is valid.
#pragma once

#include "compiler/codegen/cpu/KernelCatalog.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::codegen {

struct KernelEntry {
  std::string source;   // of compiler/kernels/cpu, without ".cpp"
  std::string function; // symbol of the generic function
  std::vector<std::int32_t> constants; // after params and slice
  std::string name;                    // as docs/kernel-names.md spells it
};

// Resolves constants to an entry. Every key must be known and every value must
// have a kernel; messages name the operation and the key.
Result<KernelEntry> kernelEntry(const std::string &op,
                                const KernelConfig &constants);

} // namespace ingot::codegen
