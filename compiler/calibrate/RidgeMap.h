// An affine map by least squares with a penalty on its size, in closed form, from
// sums alone: rows are seen once and not kept, so memory is a function of the
// width, whatever the text. Sums and solution are in float64.
//
//   minimise  sum |target - (M x + b)|^2 + penalty * |M|^2
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

struct AffineMap {
  std::int64_t width = 0;
  std::vector<float> matrix; // [width, width], a row for each output
  std::vector<float> bias;   // [width]
};

// Sums over pairs of rows of one width.
class RidgeSums {
public:
  explicit RidgeSums(std::int64_t width);

  // `inputs` and `targets` are rows one after another.
  void add(std::span<const float> inputs, std::span<const float> targets);

  std::int64_t numRows() const { return numRows_; }

  // The map for a penalty of `strength` times the mean square of the inputs'
  // columns, per row. Fails where nothing was added or the sums are not finite.
  Result<AffineMap> solve(double strength) const;

  // The part of the targets' sum of squares that the map leaves, 1 for a map
  // to 0.
  double unexplained(const AffineMap &map) const;

private:
  std::int64_t width_;
  std::int64_t numRows_ = 0;
  std::vector<double> gram_;  // [width + 1, width + 1] of (x, 1), lower half
  std::vector<double> cross_; // [width + 1, width] of (x, 1) and the target
  double squares_ = 0;        // of the targets
};

} // namespace ingot
