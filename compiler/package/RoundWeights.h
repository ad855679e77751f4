// Round-to-nearest quantisation of one K-group of weights.
#pragma once

#include <cstdint>
#include <span>

namespace ingot::package {

enum class RoundResult {
  Exactly,     // rounded as the encoding asks
  Underflowed, // not zero, but too small for a float16 scale: stored as zero
  TooLarge,    // needs a scale or minimum beyond float16
};

// Codes carry the offset of the encoding (128 for int8, 8 for symmetric int4).
// An all-zero group has scale 1 and codes equal to the offset. Values must be
// finite; `codes` is as long as `values`.
RoundResult roundInt8(std::span<const float> values, std::uint8_t *codes,
                      std::uint16_t &scale);

// Symmetric int4: the scale, of a fixed list around the one that maps the largest
// weight to -8, with the least squared error. The same input gives the same codes.
RoundResult roundInt4(std::span<const float> values, std::uint8_t *codes,
                      std::uint16_t &scale);

// int4 with a minimum: value = scale * code + minimum.
RoundResult roundInt4Minimum(std::span<const float> values, std::uint8_t *codes,
                             std::uint16_t &scale, std::uint16_t &minimum);

} // namespace ingot::package
