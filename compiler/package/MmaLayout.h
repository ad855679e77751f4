// Where the planes of a weight in the layout "mma16" lie (runtime/plan/CudaAbi.h): as
// those of "r16", but for the codes, whose tiles are the tensor cores' own.
#pragma once

#include "compiler/package/PackWeights.h"
#include "runtime/plan/CudaAbi.h"

namespace ingot::package {

// The word of the CUDA kernels for an encoding. f32 has none.
Result<abi::CudaCode> cudaCode(const WeightEncoding &encoding);

Result<PackedLayout> mmaLayout(const WeightEncoding &encoding,
                               std::uint64_t rows, std::uint64_t columns);

} // namespace ingot::package
