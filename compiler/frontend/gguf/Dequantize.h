// Stored weights to float, bit for bit as the gguf Python package does it.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>

namespace ingot {

// `bytes` holds whole blocks and `values` has room for exactly their elements.
Status dequantize(WeightDtype dtype, std::span<const std::uint8_t> bytes,
                  std::span<float> values);

float halfToFloat(std::uint16_t bits);
float bfloatToFloat(std::uint16_t bits);

} // namespace ingot
