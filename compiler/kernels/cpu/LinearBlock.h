// How many tokens the linear kernels take at a time.
#pragma once

#include <stdint.h>

namespace ingot::kernels {

// Activations of a block should stay in the second-level cache.
inline constexpr int64_t kLinearBlockBytes = 192 * 1024;

// Tokens of a block; `tokens` is the constant of the variant (1, 2 or 16),
// `rowBytes` what a token's activations take.
constexpr int32_t linearBlockTokens(int64_t rowBytes, int32_t tokens) {
  if (tokens < 16)
    return tokens == 1 ? 1 : 16;
  const int64_t fitting = kLinearBlockBytes / rowBytes / 8 * 8;
  return static_cast<int32_t>(fitting < 16 ? 16 : fitting > 64 ? 64 : fitting);
}

} // namespace ingot::kernels
