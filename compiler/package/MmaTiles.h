// From a packed tile of the layout "r16" to one of "mma16" (runtime/plan/CudaAbi.h):
// the codes in the order in which lanes of a warp hold them. Scales and minima are
// the same in both layouts.
#pragma once

#include "runtime/plan/CudaAbi.h"

#include <cstdint>
#include <span>

namespace ingot::package {

// Bytes of the codes of a tile of 16 rows in "r16".
std::uint64_t r16TileBytes(abi::CudaCode code, std::uint64_t columns);

// `r16` has r16TileBytes() bytes, `mma16` cudaTileBytes(). Columns beyond those of
// the weight become zeros (with `minimum`, code 0).
void mmaTile(abi::CudaCode code, std::uint64_t columns, bool minimum,
             std::span<const std::uint8_t> r16, std::span<std::uint8_t> mma16);

} // namespace ingot::package
