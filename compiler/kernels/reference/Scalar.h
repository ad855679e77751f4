// float16 and bfloat16 by integer arithmetic, and the quantised row, for the
// reference operations. Nothing here is shared with the kernels.
#pragma once

#include "runtime/plan/KernelAbi.h"

#include <cstdint>

namespace ingot::reference {

float fromHalf(std::uint16_t bits);
std::uint16_t toHalf(float value); // to nearest, ties to even
float fromBrain(std::uint16_t bits);

// values[0, width) to codes from column `column` of a quantised row.
void quantizeValues(const abi::QuantizedRows &rows, std::int32_t token,
                    std::int32_t column, std::int32_t width, std::int32_t group,
                    const float *values);

// The sum of squares by the law of RMSNorm: 16 lanes, then pairwise.
float sumOfSquares(const float *values, std::int32_t width);

} // namespace ingot::reference
