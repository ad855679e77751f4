#include "runtime/schedule/StepCost.h"

#include <algorithm>
#include <cmath>

namespace ingot {

namespace {
constexpr double kFade = 0.98;
constexpr double kMostRows = 65536;
} // namespace

void StepCost::observe(std::int32_t rows, double seconds) {
  if (rows < 1 || !(seconds > 0) || !std::isfinite(seconds))
    return;
  for (double *sum : {&weight_, &rows_, &seconds_, &rowsRows_, &rowsSeconds_})
    *sum *= kFade;
  double w = 1 / (seconds * seconds), x = rows;
  weight_ += w;
  rows_ += w * x;
  seconds_ += w * seconds;
  rowsRows_ += w * x * x;
  rowsSeconds_ += w * x * seconds;
  double meanRows = rows_ / weight_, meanSeconds = seconds_ / weight_;
  double variance = rowsRows_ / weight_ - meanRows * meanRows;
  // Steps that are all alike tell nothing of what a row costs.
  if (variance < 0.05 * meanRows * meanRows + 0.05)
    return;
  double perRow = (rowsSeconds_ / weight_ - meanRows * meanSeconds) / variance;
  if (perRow <= 0)
    return;
  fixedRows_ = std::clamp(meanSeconds / perRow - meanRows, 0.0, kMostRows);
}

std::int32_t StepCost::promptRows(std::int32_t decodes, double factor) const {
  double rows = (factor - 1) * (fixedRows_ + decodes);
  return std::max(kLeastRows, std::int32_t(std::min(rows, kMostRows)));
}

} // namespace ingot
