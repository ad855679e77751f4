#include "compiler/package/HalfRange.h"

#include "compiler/package/HalfFloat.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ingot::package {

std::optional<TileElement> beyondHalf(std::span<const std::uint8_t> tile,
                                      std::uint64_t columns,
                                      std::uint64_t &smallRows) {
  for (std::uint64_t row = 0; row < 16; ++row) {
    float largest = 0;
    bool changes = false;
    for (std::uint64_t column = 0; column < columns; ++column) {
      std::uint16_t bits;
      std::memcpy(&bits, tile.data() + (column * 16 + row) * 2, 2);
      const float value = brainToFloat(bits);
      const std::uint16_t half = floatToHalf(value);
      if ((half & 0x7c00) == 0x7c00)
        return TileElement{row, column, value};
      largest = std::max(largest, std::fabs(value));
      changes |= halfToFloat(half) != value;
    }
    smallRows += changes && largest < 0x1p-16f;
  }
  return std::nullopt;
}

} // namespace ingot::package
