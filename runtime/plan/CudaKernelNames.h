// What a verifier must know of a CUDA kernel's name (docs/kernel-names.md), which says
// what its code was specialised for.
#pragma once

#include <string_view>

namespace ingot {

// Whether a kernel of linear or expert_linear reads half rows of two parts:
// "linear_f16x2_t8". Others read the first part of either kind.
inline bool readsTwoParts(std::string_view kernel) {
  return (kernel.starts_with("linear_") ||
          kernel.starts_with("expert_linear_")) &&
         kernel.find("x2_") != std::string_view::npos;
}

} // namespace ingot
