// How many columns of a feed-forward stay where a share of them is to go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ingot {

// Columns are kept in whole groups of the narrowest encoding.
inline constexpr std::int64_t kColumnStep = 32;

// Of `columns`, those that stay when `share` (more than 0, less than 1) of them
// goes: whole groups, so a little more than asked may stay; one group at least,
// `columns` at most. What binary fractions add to the product (0.7 of 320 leaves
// 96.00000000000001) is no group more.
inline std::int64_t columnsKept(std::int64_t columns, double share) {
  double groups = double(columns) * (1 - share) / double(kColumnStep);
  auto whole = std::int64_t(std::ceil(groups - 1e-9 * std::max(groups, 1.0)));
  return std::min(std::max<std::int64_t>(whole, 1) * kColumnStep, columns);
}

} // namespace ingot
