// Stored blocks to floats against the gguf package, bit for bit.
#include "compiler/frontend/gguf/Dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace ingot;

namespace {

struct Vector {
  WeightDtype dtype;
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> bits;
};

const std::vector<Vector> vectors = {
#include "test/compiler/frontend/gguf/DequantizeVectors.inc"
};

TEST(Dequantize, EqualsGgufPackage) {
  ASSERT_EQ(vectors.size(), 6u);
  for (const Vector &vector : vectors) {
    std::vector<float> values(vector.bits.size());
    ASSERT_TRUE(dequantize(vector.dtype, vector.bytes, values).isOk());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), vector.bits[i])
          << weightDtypeName(vector.dtype) << " " << i;
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

TEST(Dequantize, RefusesPartialBlocks) {
  std::vector<float> values(32);
  EXPECT_FALSE(
      dequantize(WeightDtype::Q8_0, std::vector<std::uint8_t>(33), values)
          .isOk());
  EXPECT_FALSE(
      dequantize(WeightDtype::Q8_0, std::vector<std::uint8_t>(68), values)
          .isOk());
  values.resize(31);
  EXPECT_FALSE(
      dequantize(WeightDtype::Q8_0, std::vector<std::uint8_t>(34), values)
          .isOk());
}

} // namespace
