// Stored blocks to floats against the gguf package, bit for bit.
#include "compiler/stored/Dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace ingot;

namespace {

struct Vector {
  StoredForm form;
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> bits;
};

const std::vector<Vector> vectors = {
#include "test/compiler/stored/DequantizeVectors.inc"
};

TEST(Dequantize, EqualsGgufPackage) {
  ASSERT_EQ(vectors.size(), 11u);
  for (const Vector &vector : vectors) {
    std::vector<float> values(vector.bits.size());
    ASSERT_TRUE(dequantize(vector.form, vector.bytes, values).isOk());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), vector.bits[i])
          << storedFormName(vector.form) << " " << i;
  }
}

// All 65536 halves against the definition of the format.
TEST(Dequantize, EveryHalf) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    float value = halfToFloat(static_cast<std::uint16_t>(bits));
    std::uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), mantissa != 0);
      if (mantissa == 0) {
        EXPECT_EQ(value, sign * INFINITY);
      }
      continue;
    }
    double expected = exponent == 0
                          ? std::ldexp(mantissa, -24)
                          : std::ldexp(1024 + mantissa, int(exponent) - 25);
    EXPECT_EQ(value, sign * expected);
    EXPECT_EQ(std::signbit(value), sign < 0);
  }
}

// All codes of the eight-bit floats against the definitions of the formats.
TEST(Dequantize, EveryEightBitFloat) {
  auto value = [](int code, int fractionBits, int bias) {
    int fraction = code & ((1 << fractionBits) - 1);
    int exponent = (code & 127) >> fractionBits;
    int whole = 1 << fractionBits;
    double magnitude =
        exponent == 0
            ? std::ldexp(fraction, 1 - bias - fractionBits)
            : std::ldexp(whole + fraction, exponent - bias - fractionBits);
    return code & 128 ? -magnitude : magnitude;
  };
  for (int code = 0; code < 256; ++code) {
    float e4m3 = e4m3ToFloat(static_cast<std::uint8_t>(code));
    if ((code & 127) == 127)
      EXPECT_TRUE(std::isnan(e4m3));
    else
      EXPECT_EQ(e4m3, value(code, 3, 7)) << code;
    EXPECT_EQ(std::signbit(e4m3), code >= 128);
    float e5m2 = e5m2ToFloat(static_cast<std::uint8_t>(code));
    if ((code & 127) > 0x7c)
      EXPECT_TRUE(std::isnan(e5m2));
    else if ((code & 127) == 0x7c)
      EXPECT_TRUE(std::isinf(e5m2));
    else
      EXPECT_EQ(e5m2, value(code, 2, 15)) << code;
    float e8m0 = e8m0ToFloat(static_cast<std::uint8_t>(code));
    if (code == 255)
      EXPECT_TRUE(std::isnan(e8m0));
    else
      EXPECT_EQ(e8m0, std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_EQ(e4m3ToFloat(0x7e), 448.0f);
  const double numbers[] = {1.0 / 3, -1e-40, 1e300};
  std::vector<float> values(3);
  ASSERT_TRUE(dequantize(StoredForm::F64,
                         {reinterpret_cast<const std::uint8_t *>(numbers), 24},
                         values)
                  .isOk());
  EXPECT_EQ(values[0], 1.0f / 3);
  EXPECT_EQ(values[1], -1e-40f);
  EXPECT_TRUE(std::isinf(values[2])); // the packer refuses it by name
}

TEST(Dequantize, RefusesPartialBlocks) {
  std::vector<float> values(32);
  EXPECT_FALSE(
      dequantize(StoredForm::Q8_0, std::vector<std::uint8_t>(33), values)
          .isOk());
  EXPECT_FALSE(
      dequantize(StoredForm::Q8_0, std::vector<std::uint8_t>(68), values)
          .isOk());
  values.resize(31);
  EXPECT_FALSE(
      dequantize(StoredForm::Q8_0, std::vector<std::uint8_t>(34), values)
          .isOk());
}

} // namespace
