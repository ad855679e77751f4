#include "compiler/frontend/gguf/Dequantize.h"

#include <bit>
#include <cstring>

namespace ingot {
namespace {

std::uint16_t load16(const std::uint8_t *bytes) {
  return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

// [half d][32 x int8]: value = q * d
void dequantizeQ8_0(const std::uint8_t *block, float *values) {
  float d = halfToFloat(load16(block));
  for (int i = 0; i < 32; ++i)
    values[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

// [half d][16 x two nibbles]: low nibbles are elements 0..15, high 16..31;
// value = d * (q - 8)
void dequantizeQ4_0(const std::uint8_t *block, float *values) {
  float d = halfToFloat(load16(block));
  for (int i = 0; i < 16; ++i) {
    int byte = block[2 + i];
    values[i] = d * static_cast<float>((byte & 15) - 8);
    values[16 + i] = d * static_cast<float>((byte >> 4) - 8);
  }
}

// [half d][half m][16 x two nibbles]: value = d * q + m, rounded twice
void dequantizeQ4_1(const std::uint8_t *block, float *values) {
  float d = halfToFloat(load16(block));
  float m = halfToFloat(load16(block + 2));
  for (int i = 0; i < 16; ++i) {
    int byte = block[4 + i];
    values[i] = d * static_cast<float>(byte & 15) + m;
    values[16 + i] = d * static_cast<float>(byte >> 4) + m;
  }
}

} // namespace

float halfToFloat(std::uint16_t bits) {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  std::uint32_t exponent = (bits >> 10) & 31;
  std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 31) // infinity and NaN, with its payload
    return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) { // zero and subnormal: mantissa * 2^-24, exact
    float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

float bfloatToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

Status dequantize(WeightDtype dtype, std::span<const std::uint8_t> bytes,
                  std::span<float> values) {
  std::uint64_t elements = weightBlockElements(dtype);
  std::uint64_t size = weightBlockBytes(dtype);
  if (bytes.size() % size != 0 || values.size() % elements != 0 ||
      bytes.size() / size != values.size() / elements)
    return Status::invalid(std::string("dequantize ") + weightDtypeName(dtype) +
                           ": " + std::to_string(bytes.size()) +
                           " bytes are not the blocks of " +
                           std::to_string(values.size()) + " values");
  const std::uint8_t *in = bytes.data();
  float *out = values.data();
  std::uint64_t blocks = bytes.size() / size;
  for (std::uint64_t b = 0; b < blocks; ++b, in += size, out += elements) {
    switch (dtype) {
    case WeightDtype::F32:
      std::memcpy(out, in, 4);
      break;
    case WeightDtype::F16:
      *out = halfToFloat(load16(in));
      break;
    case WeightDtype::BF16:
      *out = bfloatToFloat(load16(in));
      break;
    case WeightDtype::Q8_0:
      dequantizeQ8_0(in, out);
      break;
    case WeightDtype::Q4_0:
      dequantizeQ4_0(in, out);
      break;
    case WeightDtype::Q4_1:
      dequantizeQ4_1(in, out);
      break;
    }
  }
  return Status::ok();
}

} // namespace ingot
