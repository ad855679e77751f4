// How long a step takes, learnt from those before it: a fixed part (reading the
// weights) and one for each row. From it follows how many prompt rows may stand
// beside decoding without making it slow. What a step computes never depends
// on this, only when.
#pragma once

#include <cstdint>

namespace ingot {

class StepCost {
public:
  void observe(std::int32_t rows, double seconds);

  // The most prompt rows beside `decodes` others that keep a step within
  // `factor` times one without them; at least kLeastRows, so that a prompt
  // always goes on.
  std::int32_t promptRows(std::int32_t decodes, double factor) const;

  // The fixed part of a step, in rows.
  double fixedRows() const { return fixedRows_; }

  static constexpr std::int32_t kLeastRows = 4;

private:
  // Sums of a weighted regression of seconds over rows. Errors count relative
  // to the step's length, and old steps fade.
  double weight_ = 0, rows_ = 0, seconds_ = 0, rowsRows_ = 0, rowsSeconds_ = 0;
  double fixedRows_ = 16; // before anything is known
};

} // namespace ingot
