// float16 and bfloat16 to and from float32 in integer arithmetic that compilers
// vectorise: packing converts every weight of a model.
#pragma once

#include <bit>
#include <cstdint>

namespace ingot::package {

inline float halfToFloat(std::uint16_t half) {
  // Moves exponent and fraction up, then corrects the bias by a multiplication,
  // which is exact for denormals too.
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fff)
                                  << 13;
  std::uint32_t bits =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  bits |= (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(half & 0x8000)
                                         << 16);
}

// To nearest, ties to even; beyond the range infinity, NaN stays NaN.
inline std::uint16_t floatToHalf(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x7f800000u) // infinity or NaN
    return static_cast<std::uint16_t>(sign | 0x7c00 |
                                      (magnitude > 0x7f800000u ? 0x200 : 0));
  if (magnitude < 0x38800000u) {
    // Denormal: adding 1/2 leaves the fraction in the low bits, rounded.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded =
      magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000u;
  const std::uint32_t half = rounded >> 13;
  return static_cast<std::uint16_t>(sign | (half > 0x7c00 ? 0x7c00 : half));
}

inline float brainToFloat(std::uint16_t brain) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(brain) << 16);
}

// To nearest, ties to even; for values that are not NaN.
inline std::uint16_t floatToBrain(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace ingot::package
