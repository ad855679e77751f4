// How many tokens the linear kernels take at a time, and the scratch of those for
// many tokens. Shared by the kernels and the catalog, which tells the plan.
#pragma once

#include <stdint.h>

namespace ingot::kernels {

// Activations of a block should stay in the second-level cache.
inline constexpr int64_t kLinearBlockBytes = 192 * 1024;
inline constexpr int32_t kLargestBlock = 64;
// The variant for at least so many tokens prepares the weights.
inline constexpr int32_t kManyTokensFrom = 16;

// Tokens of a block; `tokens` is the constant of the variant (1, 2 or 16),
// `rowBytes` what a token's activations take.
constexpr int32_t linearBlockTokens(int64_t rowBytes, int32_t tokens) {
  if (tokens < kManyTokensFrom)
    return tokens == 1 ? 1 : 16;
  const int64_t fitting = kLinearBlockBytes / rowBytes / 8 * 8;
  return static_cast<int32_t>(fitting < 16              ? 16
                              : fitting > kLargestBlock ? kLargestBlock
                                                        : fitting);
}

// A stretch of K whose prepared weights stay in the first-level cache: whole
// groups, at least one.
constexpr int64_t stretchElements(int64_t group) {
  return group > 512 ? group : 512 / group * group;
}
// int8 takes 32 bytes an element (groups of at most 256), int4 16 (at most 1024).
inline constexpr int64_t kStretchWeightBytes = 16 * 1024;
inline constexpr int64_t kStretchGroups = 16;

// Prepared weights; scales and minima of 16 rows; totals of a block.
constexpr int64_t linearScratchBytes(int32_t tokens) {
  return tokens < kManyTokensFrom
             ? 0
             : kStretchWeightBytes + 2 * kStretchGroups * 64 +
                   kLargestBlock * 64;
}

} // namespace ingot::kernels
