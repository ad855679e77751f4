#include "compiler/stored/Dequantize.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string>

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

// Element i of 32 codes of five bits: [4 bytes of fifth bits][16 x two nibbles]
int fiveBits(const std::uint8_t *codes, int i) {
  int nibble = i < 16 ? codes[4 + i] & 15 : codes[4 + i - 16] >> 4;
  return nibble | (codes[i / 8] >> (i % 8) & 1) << 4;
}

// [half d][codes]: value = d * (q - 16)
void dequantizeQ5_0(const std::uint8_t *block, float *values) {
  float d = halfToFloat(load16(block));
  for (int i = 0; i < 32; ++i)
    values[i] = d * static_cast<float>(fiveBits(block + 2, i) - 16);
}

// [half d][half m][codes]: value = d * q + m, rounded twice
void dequantizeQ5_1(const std::uint8_t *block, float *values) {
  float d = halfToFloat(load16(block));
  float m = halfToFloat(load16(block + 2));
  for (int i = 0; i < 32; ++i)
    values[i] = d * static_cast<float>(fiveBits(block + 4, i)) + m;
}

// [half d][half dmin][12 bytes of scales][128 bytes]: byte 32 j + i holds
// element i of groups 2j (low nibble) and 2j + 1 (high)
void dequantizeQ4_K(const std::uint8_t *block, float *values) {
  const std::uint8_t *codes = block + 16;
  for (int g = 0; g < 8; ++g) {
    float scale, minimum;
    kGroupScale(block, g, scale, minimum);
    for (int i = 0; i < 32; ++i) {
      int q = codes[g / 2 * 32 + i] >> (g % 2 * 4) & 15;
      values[g * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

// As Q4_K, with 32 bytes between of which bit g is the fifth bit of group g.
void dequantizeQ5_K(const std::uint8_t *block, float *values) {
  const std::uint8_t *high = block + 16, *codes = block + 48;
  for (int g = 0; g < 8; ++g) {
    float scale, minimum;
    kGroupScale(block, g, scale, minimum);
    for (int i = 0; i < 32; ++i) {
      int q = (codes[g / 2 * 32 + i] >> (g % 2 * 4) & 15) | (high[i] >> g & 1)
                                                                << 4;
      values[g * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

// [128 bytes of low nibbles][64 bytes of high bits][16 x int8][half d]: each
// half of 128 elements is four runs of 32; value = (d * scale) * (q - 32)
void dequantizeQ6_K(const std::uint8_t *block, float *values) {
  const std::uint8_t *low = block, *high = block + 128, *scales = block + 192;
  float d = halfToFloat(load16(block + 208));
  for (int k = 0; k < 256; ++k) {
    int half = k / 128, run = k % 128 / 32, i = k % 32;
    int nibble = low[half * 64 + run % 2 * 32 + i] >> (run / 2 * 4) & 15;
    int q = nibble | (high[half * 32 + i] >> (run * 2) & 3) << 4;
    float scale =
        d * static_cast<float>(static_cast<std::int8_t>(scales[k / 16]));
    values[k] = scale * static_cast<float>(q - 32);
  }
}

float loadDouble(const std::uint8_t *bytes) {
  double value;
  std::memcpy(&value, bytes, 8);
  return static_cast<float>(value);
}

} // namespace

void kGroupScale(const std::uint8_t *block, int g, float &scale,
                 float &minimum) {
  // Groups 0 to 3 have their six bits together; those of 4 to 7 are split.
  const std::uint8_t *packed = block + 4;
  int s, m;
  if (g < 4) {
    s = packed[g] & 63;
    m = packed[4 + g] & 63;
  } else {
    s = (packed[4 + g] & 15) | (packed[g - 4] >> 6) << 4;
    m = packed[4 + g] >> 4 | (packed[g] >> 6) << 4;
  }
  scale = halfToFloat(load16(block)) * static_cast<float>(s);
  minimum = halfToFloat(load16(block + 2)) * static_cast<float>(m);
}

// Moves exponent and fraction up, then corrects the bias by a multiplication,
// which is exact for denormals too; without branches, so that rows vectorise.
float halfToFloat(std::uint16_t bits) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fff)
                                  << 13;
  std::uint32_t value =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  value |= (bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return std::bit_cast<float>(value | static_cast<std::uint32_t>(bits & 0x8000)
                                          << 16);
}

float bfloatToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// [sign][4: bias 7][3]; no infinity, all ones is NaN.
float e4m3ToFloat(std::uint8_t bits) {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80) << 24;
  std::uint32_t exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 0x7f) == 0x7f)
    return std::bit_cast<float>(sign | 0x7fc00000u);
  if (exponent == 0) {
    float value = static_cast<float>(mantissa) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | (exponent + 120) << 23 | mantissa << 20);
}

// [sign][5: bias 15][2]: the upper byte of a half.
float e5m2ToFloat(std::uint8_t bits) {
  return halfToFloat(static_cast<std::uint16_t>(bits << 8));
}

// 2^(bits - 127); all ones is NaN.
float e8m0ToFloat(std::uint8_t bits) {
  if (bits == 255)
    return std::numeric_limits<float>::quiet_NaN();
  if (bits == 0)
    return 0x1p-127f;
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 23);
}

Status dequantize(StoredForm form, std::span<const std::uint8_t> bytes,
                  std::span<float> values) {
  std::uint64_t elements = storedBlockElements(form);
  std::uint64_t size = storedBlockBytes(form);
  if (size == 0 || bytes.size() % size != 0 || values.size() % elements != 0 ||
      bytes.size() / size != values.size() / elements)
    return Status::invalid(std::string("dequantize ") + storedFormName(form) +
                           ": " + std::to_string(bytes.size()) +
                           " bytes are not the blocks of " +
                           std::to_string(values.size()) + " values");
  const std::uint8_t *in = bytes.data();
  float *out = values.data();
  std::uint64_t blocks = bytes.size() / size;
  auto each = [&](auto &&convert) {
    for (std::uint64_t b = 0; b < blocks; ++b, in += size, out += elements)
      convert(in, out);
  };
  switch (form) {
  case StoredForm::F32:
    std::memcpy(out, in, bytes.size());
    break;
  case StoredForm::F16:
    each([](auto *from, float *to) { *to = halfToFloat(load16(from)); });
    break;
  case StoredForm::BF16:
    each([](auto *from, float *to) { *to = bfloatToFloat(load16(from)); });
    break;
  case StoredForm::F64:
    each([](auto *from, float *to) { *to = loadDouble(from); });
    break;
  case StoredForm::F8E4M3:
    each([](auto *from, float *to) { *to = e4m3ToFloat(*from); });
    break;
  case StoredForm::F8E5M2:
    each([](auto *from, float *to) { *to = e5m2ToFloat(*from); });
    break;
  case StoredForm::F8E8M0:
    each([](auto *from, float *to) { *to = e8m0ToFloat(*from); });
    break;
  case StoredForm::Q8_0:
    each(dequantizeQ8_0);
    break;
  case StoredForm::Q4_0:
    each(dequantizeQ4_0);
    break;
  case StoredForm::Q4_1:
    each(dequantizeQ4_1);
    break;
  case StoredForm::Q5_0:
    each(dequantizeQ5_0);
    break;
  case StoredForm::Q5_1:
    each(dequantizeQ5_1);
    break;
  case StoredForm::Q4_K:
    each(dequantizeQ4_K);
    break;
  case StoredForm::Q5_K:
    each(dequantizeQ5_K);
    break;
  case StoredForm::Q6_K:
    each(dequantizeQ6_K);
    break;
  case StoredForm::Codes:
    break;
  }
  return Status::ok();
}

} // namespace ingot
