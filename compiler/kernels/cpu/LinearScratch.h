// How many tokens the linear kernels take at a time, and the scratch that they
// need for it. Shared by the kernels and the catalog, which tells the plan.
#pragma once

#include <stdint.h>

namespace ingot::kernels {

// Prepared activations of a block should stay in the second-level cache.
inline constexpr int64_t kLinearScratchTarget = 192 * 1024;

// Tokens of a block; `tokens` is the constant of the variant (1, 2 or 16).
constexpr int32_t linearBlockTokens(int64_t paddedK, int32_t tokens) {
  if (tokens < 16)
    return tokens == 1 ? 1 : 16;
  const int64_t fitting = kLinearScratchTarget / (2 * paddedK + 64) / 8 * 8;
  return static_cast<int32_t>(fitting < 16 ? 16 : fitting > 64 ? 64 : fitting);
}

constexpr int64_t linearScratchBytes(int64_t paddedK, int32_t tokens) {
  return linearBlockTokens(paddedK, tokens) * (2 * paddedK + 64);
}

} // namespace ingot::kernels
