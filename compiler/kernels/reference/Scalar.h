// float16 and bfloat16 by integer arithmetic, and the quantised row, for the
// reference operations. Nothing here is shared with the kernels.
#pragma once

#include "runtime/plan/KernelAbi.h"

#include <cstdint>

namespace ingot::reference {

float fromHalf(std::uint16_t bits);
std::uint16_t toHalf(float value); // to nearest, ties to even
float fromBrain(std::uint16_t bits);

// How values become codes; group 0 means that they do not.
struct Quantization {
  std::int32_t group = 0;
  std::int32_t bits = 16; // of a code: 8 or 16
};

// Code of element `k` of a quantised row.
std::int32_t activationCode(const std::uint8_t *row, std::int64_t k,
                            std::int32_t bits);
void setActivationCode(std::uint8_t *row, std::int64_t k, std::int32_t bits,
                       std::int32_t code);

// values[0, width) to codes from column `column` of a quantised row.
void quantizeValues(const abi::QuantizedRows &rows, std::int32_t token,
                    std::int32_t column, std::int32_t width,
                    Quantization quantization, const float *values);

// A key or value of one head to codes of the int8 cache; gives their scale. NaN
// where a value is not finite, 1 where all are zero or too small.
float quantizeHead(const float *values, std::int32_t headDim,
                   std::int8_t *codes);

// The sum of squares by the law of RMSNorm: 16 lanes, then pairwise.
float sumOfSquares(const float *values, std::int32_t width);
// Divides by the Euclidean length, at least 1e-12.
void normalizeLength(float *values, std::int32_t width);
// Mean and inverse deviation of a row by the law of LayerNorm.
struct Moments {
  float mean = 0;
  float inverse = 0;
};
Moments moments(const float *values, std::int32_t width, float eps);

} // namespace ingot::reference
