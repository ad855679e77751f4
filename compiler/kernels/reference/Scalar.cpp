#include "compiler/kernels/reference/Scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
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

// Byte of a code of 16 bits: elements 1 and 2 of every four trade places.
static std::int64_t wideOffset(std::int64_t k) {
  const std::int64_t inFour = k % 4;
  const bool middle = inFour == 1 || inFour == 2;
  return 2 * (middle ? k - inFour + (3 - inFour) : k);
}

std::int32_t activationCode(const std::uint8_t *row, std::int64_t k,
                            std::int32_t bits) {
  if (bits == 8)
    return static_cast<std::int8_t>(row[k]);
  std::int16_t code;
  std::memcpy(&code, row + wideOffset(k), 2);
  return code;
}

void setActivationCode(std::uint8_t *row, std::int64_t k, std::int32_t bits,
                       std::int32_t code) {
  if (bits == 8) {
    row[k] = static_cast<std::uint8_t>(code);
    return;
  }
  const auto wide = static_cast<std::int16_t>(code);
  std::memcpy(row + wideOffset(k), &wide, 2);
}

void quantizeValues(const abi::QuantizedRows &rows, std::int32_t token,
                    std::int32_t column, std::int32_t width,
                    Quantization quantization, const float *values) {
  const std::int32_t group = quantization.group;
  const std::int32_t bits = quantization.bits;
  const float largest = bits == 16 ? 32512.0f : 127.0f;
  std::uint8_t *row = rows.data + token * rows.rowBytes;
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
    float inverse = amax > 0.0f ? largest / amax : 0.0f;
    if (!std::isfinite(inverse))
      inverse = 0.0f;
    scales[g] =
        finite ? amax / largest : std::numeric_limits<float>::quiet_NaN();
    std::int32_t sum = 0;
    for (std::int32_t k = begin; k < end; ++k) {
      const auto code = static_cast<std::int32_t>(
          finite ? std::nearbyint(values[k] * inverse) : 0.0f);
      setActivationCode(row, column + k, bits, code);
      sum += code;
    }
    sums[g] = sum;
  }
  for (std::int32_t k = width; k % 32 != 0; ++k)
    setActivationCode(row, column + k, bits, 0);
}

static float sumPairwise(float (&lanes)[16]) {
  for (int apart = 8; apart > 0; apart /= 2)
    for (int lane = 0; lane < apart; ++lane)
      lanes[lane] = lanes[lane] + lanes[lane + apart];
  return lanes[0];
}

float quantizeHead(const float *values, std::int32_t headDim,
                   std::int8_t *codes) {
  float amax = 0.0f;
  bool finite = true;
  for (std::int32_t d = 0; d < headDim; ++d) {
    codes[d] = 0;
    finite = finite && std::isfinite(values[d]);
    amax = std::fmax(amax, std::fabs(values[d]));
  }
  if (!finite)
    return std::numeric_limits<float>::quiet_NaN();
  if (amax == 0.0f)
    return 1.0f;
  const float inverse = 127.0f / amax;
  if (std::isinf(inverse))
    return 1.0f;
  for (std::int32_t d = 0; d < headDim; ++d)
    codes[d] = static_cast<std::int8_t>(std::nearbyint(values[d] * inverse));
  return amax / 127.0f;
}

float sumOfSquares(const float *values, std::int32_t width) {
  float lanes[16] = {};
  for (std::int32_t k = 0; k < width; ++k)
    lanes[k % 16] = std::fma(values[k], values[k], lanes[k % 16]);
  return sumPairwise(lanes);
}

void normalizeLength(float *values, std::int32_t width) {
  const float length = std::sqrt(sumOfSquares(values, width));
  const float divisor = length > 1e-12f ? length : 1e-12f;
  for (std::int32_t k = 0; k < width; ++k)
    values[k] = values[k] / divisor;
}

Moments moments(const float *values, std::int32_t width, float eps) {
  float sums[16] = {};
  for (std::int32_t k = 0; k < width; ++k)
    sums[k % 16] = sums[k % 16] + values[k];
  const float mean = sumPairwise(sums) / static_cast<float>(width);
  float squares[16] = {};
  for (std::int32_t k = 0; k < width; ++k) {
    const float apart = values[k] - mean;
    squares[k % 16] = std::fma(apart, apart, squares[k % 16]);
  }
  const float variance = sumPairwise(squares) / static_cast<float>(width);
  return {mean, 1.0f / std::sqrt(variance + eps)};
}

} // namespace ingot::reference
