// AWQ (Lin et al. 2023): columns that large inputs meet are scaled up before
// rounding, and what makes the inputs is scaled down, so that they lose less.
// Which power of the inputs' mean size to scale by is searched, for all weights
// that read the same rows together.
#pragma once

#include "compiler/calibrate/GroupCodes.h"
#include "compiler/calibrate/SecondMoments.h"

namespace ingot {

// A weight that reads the rows.
struct AwqWeight {
  std::span<const float> values; // [rows, columns]
  std::int64_t rows = 0;
  CodeShape shape;
};

struct AwqChoice {
  double power = 0;          // 0: all scales are 1
  std::vector<float> scales; // [columns], positive
  // Of the output, over the rows that the search looked at.
  double errorWithout = 0, error = 0;
};

struct AwqOptions {
  std::int64_t steps = 20;       // powers 0, 1/steps ... (steps - 1)/steps
  std::int64_t searchRows = 256; // of each weight, at equal distances
  // Columns i and j with one entry share a scale (heads that read one value);
  // empty: none do.
  std::vector<std::int64_t> ties;
  unsigned threads = 1;
};

// The scales for columns of `moments`. Deterministic: of equal errors the
// smallest power.
Result<AwqChoice> searchAwqScales(std::span<const AwqWeight> weights,
                                  std::span<const float> moments,
                                  std::span<const float> meanMagnitude,
                                  const AwqOptions &options = {});

// Rounds to nearest with the scale of each group that the inputs mind least: of a
// fixed list of scales below the one that holds the group's largest weight (so
// that it is clipped), the one with the least error of the group's part of the
// output, d' H d over the group's columns. `moments` are of the inputs that meet
// `weights` as they are (divided by the scales of the columns).
Result<GroupCodes> roundToInputs(std::span<const float> weights,
                                 std::int64_t rows, std::int64_t columns,
                                 const CodeShape &shape,
                                 std::span<const float> moments,
                                 unsigned threads = 1);

// What the power makes of the inputs' mean sizes: (size ^ power), divided by the
// root of the largest times the smallest of them.
std::vector<float> awqScales(std::span<const float> meanMagnitude, double power,
                             std::span<const std::int64_t> ties = {});

} // namespace ingot
