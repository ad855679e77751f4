// float16 on the host, as the device converts it: to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace ingot::simt {

inline float halfToFloat(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16;
  const std::uint32_t rest = bits & 0x7fff;
  if (rest >= 0x7c00) // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest < 0x400) { // zero and denormals: steps of 2^-24
    const float size = float(rest) * 0x1p-24f;
    return sign ? -size : size;
  }
  return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000));
}

inline std::uint16_t floatToHalf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = std::uint16_t(bits >> 16 & 0x8000);
  const std::uint32_t size = bits & 0x7fffffff;
  if (size > 0x7f800000)
    return std::uint16_t(sign | 0x7fff);
  if (size >= 0x477ff000) // 65520: rounds beyond the largest
    return std::uint16_t(sign | 0x7c00);
  if (size < 0x38800000) // below 2^-14: adding 1/2 rounds to steps of 2^-24
    return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(
                                     std::bit_cast<float>(size) + 0.5f) -
                                 0x3f000000));
  const std::uint32_t rounded = size + 0xfff + (size >> 13 & 1);
  return std::uint16_t(sign | (rounded - 0x38000000) >> 13);
}

} // namespace ingot::simt
