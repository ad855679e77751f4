#include "runtime/schedule/StepCost.h"

#include <algorithm>
#include <cmath>

namespace ingot {

namespace {
constexpr double kFade = 0.98;
constexpr double kMostRows = 65536;
} // namespace

StepWork workOf(const StepPlan &plan) {
  StepWork work;
  for (const StepSequence &rows : plan.sequences) {
    double n = rows.numRows;
    work.rows += rows.numRows;
    work.positions += n * rows.firstPosition + n * (n + 1) / 2;
  }
  return work;
}

double PromptBudget::costOf(std::int32_t first, std::int32_t rows) const {
  double n = rows;
  return n + perPosition * (n * first + n * (n + 1) / 2);
}

std::int32_t PromptBudget::rowsFrom(std::int32_t first) const {
  if (!(cost > 0))
    return 0;
  // The root of perPosition / 2 * n^2 + linear * n = cost, in the form that holds
  // for a perPosition of zero too.
  double linear = 1 + perPosition * (first + 0.5);
  double rows =
      2 * cost / (linear + std::sqrt(linear * linear + 2 * perPosition * cost));
  return std::int32_t(std::min(rows + 1e-9, kMostRows));
}

void StepCost::observe(const StepWork &work, double seconds,
                       double attentionSeconds) {
  seconds -= attentionSeconds;
  if (work.rows < 1 || !(seconds > 0) || !std::isfinite(seconds) ||
      !(attentionSeconds >= 0))
    return;
  for (double *sum : {&weight_, &rows_, &seconds_, &rowsRows_, &rowsSeconds_,
                      &attentionSeconds_, &positions_})
    *sum *= kFade;
  attentionSeconds_ += attentionSeconds;
  positions_ += work.positions;
  double w = 1 / (seconds * seconds), x = work.rows;
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

double StepCost::rowsPerPosition() const {
  if (!(positions_ > 0))
    return 0;
  double perRow = seconds_ / (fixedRows_ * weight_ + rows_);
  return attentionSeconds_ / positions_ / perRow;
}

PromptBudget StepCost::promptBudget(const StepWork &decoding,
                                    double factor) const {
  double perPosition = rowsPerPosition();
  double cost = fixedRows_ + decoding.rows + perPosition * decoding.positions;
  return {std::max(0.0, factor - 1) * cost, perPosition};
}

} // namespace ingot
