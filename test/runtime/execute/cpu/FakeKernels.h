// Plain C++ kernels behind the ABI, for the tiny artifact: float32 weights,
// float32 cache, simple and exact enough that a token's bits are its own. With
// them the binding, the executor and the engine are tested without a compiler.
#pragma once

#include "runtime/plan/KernelAbi.h"

#include <vector>

namespace ingot::test {

// By index of TinyKernel.
std::vector<abi::KernelFn> fakeKernels();

} // namespace ingot::test
