// Stored elements and blocks to float: ggml's blocks bit for bit as the gguf
// Python package does it, eight-bit floats by the definition of the OCP formats.
#pragma once

#include "compiler/stored/StoredForm.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>

namespace ingot {

// `bytes` holds whole blocks and `values` has room for exactly their elements.
// Codes have no blocks and are refused; StoredRows reads them.
Status dequantize(StoredForm form, std::span<const std::uint8_t> bytes,
                  std::span<float> values);

float halfToFloat(std::uint16_t bits);
float bfloatToFloat(std::uint16_t bits);
float e4m3ToFloat(std::uint8_t bits);
float e5m2ToFloat(std::uint8_t bits);
float e8m0ToFloat(std::uint8_t bits);

// Scale and minimum of the 32-element group g, 0 to 7, of a Q4_K or Q5_K block:
// value = scale * code - minimum.
void kGroupScale(const std::uint8_t *block, int g, float &scale,
                 float &minimum);

} // namespace ingot
