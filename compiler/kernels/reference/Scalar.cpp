#include "compiler/kernels/reference/Scalar.h"

#include <bit>
#include <cmath>
#include <limits>

namespace ingot::reference {

float fromHalf(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  float size;
  if (exponent == 31)
    size = fraction ? std::numeric_limits<float>::quiet_NaN()
                    : std::numeric_limits<float>::infinity();
  else if (exponent == 0)
    size = std::ldexp(static_cast<float>(fraction), -24);
  else
    size = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

std::uint16_t toHalf(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return sign | 0x7e00;
  const float size = std::fabs(value);
  if (size >= 65520.0f) // halfway to the next power of two, and beyond
    return sign | 0x7c00;
  int exponent = 0;
  std::frexp(size, &exponent); // size = m * 2^exponent, m in [1/2, 1)
  // Spacing of float16 here; below 2^-14 it stays that of the denormals.
  const int spacing = size == 0.0f || exponent - 11 < -24 ? -24 : exponent - 11;
  const auto steps =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, -spacing)));
  // steps <= 2048; a normal number has 1024 <= steps.
  if (spacing == -24)
    return sign | static_cast<std::uint16_t>(steps);
  return sign | static_cast<std::uint16_t>(((spacing + 24) << 10) + steps);
}

float fromBrain(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

void quantizeValues(const abi::QuantizedRows &rows, std::int32_t token,
                    std::int32_t column, std::int32_t width, std::int32_t group,
                    const float *values) {
  std::uint8_t *row = rows.data + token * rows.rowBytes;
  auto *codes = reinterpret_cast<std::int8_t *>(row) + column;
  auto *scales =
      reinterpret_cast<float *>(row + rows.scalesOffset) + column / group;
  auto *sums =
      reinterpret_cast<std::int32_t *>(row + rows.sumsOffset) + column / group;
  for (std::int32_t g = 0; g * group < width; ++g) {
    const std::int32_t begin = g * group;
    const std::int32_t end = begin + group < width ? begin + group : width;
    float amax = 0.0f;
    bool finite = true;
    for (std::int32_t k = begin; k < end; ++k) {
      finite = finite && std::isfinite(values[k]);
      if (std::fabs(values[k]) > amax)
        amax = std::fabs(values[k]);
    }
    float inverse = amax > 0.0f ? 127.0f / amax : 0.0f;
    if (!std::isfinite(inverse))
      inverse = 0.0f;
    scales[g] =
        finite ? amax / 127.0f : std::numeric_limits<float>::quiet_NaN();
    std::int32_t sum = 0;
    for (std::int32_t k = begin; k < end; ++k) {
      const float code = finite ? std::nearbyint(values[k] * inverse) : 0.0f;
      codes[k] = static_cast<std::int8_t>(code);
      sum += codes[k];
    }
    sums[g] = sum;
  }
  for (std::int32_t k = width; k % 32 != 0; ++k)
    codes[k] = 0;
}

float sumOfSquares(const float *values, std::int32_t width) {
  float lanes[16] = {};
  for (std::int32_t k = 0; k < width; ++k)
    lanes[k % 16] = std::fma(values[k], values[k], lanes[k % 16]);
  for (int apart = 8; apart > 0; apart /= 2)
    for (int lane = 0; lane < apart; ++lane)
      lanes[lane] = lanes[lane] + lanes[lane + apart];
  return lanes[0];
}

} // namespace ingot::reference
