// bfloat16 weights as CUDA's linear multiplies them: as float16, which ends at 65504
// and whose smallest step is 2^-24.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace ingot::package {

// An element of a tile.
struct TileElement {
  std::uint64_t row = 0, column = 0;
  float value = 0;
};

// Of `tile`, 16 rows of `columns` bfloat16 (layout "r16": [column][row]), the first
// element by row and column that float16 cannot hold. `smallRows` grows by the rows
// that float16 holds less precisely than bfloat16 does: their largest element is below
// 2^-16, so that an error of 2^-25 is more than 2^-9 of it, and some element changes.
std::optional<TileElement> beyondHalf(std::span<const std::uint8_t> tile,
                                      std::uint64_t columns,
                                      std::uint64_t &smallRows);

} // namespace ingot::package
