// Limits that the kernel sources set and the catalog must respect; the sources
// hold the same numbers (compiler/kernels/cpu/Simd.h), and KernelCatalogTest
// compiles kernels at each of them.
#pragma once

#include <cstdint>

namespace ingot::codegen {

inline constexpr std::int64_t kLargestGroup = 1024;
// Of codes of 16 bits: 256 * 255 * 32512 is below 2^31.
inline constexpr std::int64_t kLargestWideGroup = 256;
inline constexpr std::int64_t kLargestHeadDim = 512;
// Token counts from which the variants of linear serve.
inline constexpr std::int64_t kFewTokens = 2;
inline constexpr std::int64_t kManyTokens = 16;

} // namespace ingot::codegen
