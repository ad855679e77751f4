// How long a step takes, learnt from those before it: a fixed part (reading the
// weights), one for each row, and one for each position that a row attends to.
// From it follows how much of a prompt may stand beside decoding without making
// it slow. What a step computes never depends on this, only when.
#pragma once

#include "runtime/schedule/StepPlan.h"

#include <cstdint>

namespace ingot {

// What a step has to do.
struct StepWork {
  std::int32_t rows = 0;
  double positions =
      0; // the sum, over rows, of the positions up to the row's own
};
StepWork workOf(const StepPlan &plan);

// Cost in rows: one that attends to `p` positions costs 1 + perPosition * p.
struct PromptBudget {
  double cost = 0;
  double perPosition = 0;

  // The most rows from `first` on that cost no more than this.
  std::int32_t rowsFrom(std::int32_t first) const;
  double costOf(std::int32_t first, std::int32_t rows) const;
};

class StepCost {
public:
  // A step of `work` that took `seconds`, `attentionSeconds` of them in attention
  // over the cache (0 where that is not known).
  void observe(const StepWork &work, double seconds, double attentionSeconds);

  // What prompts may cost beside `decoding`, to keep a step within `factor` times
  // one without them.
  PromptBudget promptBudget(const StepWork &decoding, double factor) const;

  // The other parts of a step, in rows.
  double fixedRows() const { return fixedRows_; }
  double rowsPerPosition() const;

private:
  // Sums of a weighted regression over rows of the seconds without attention.
  // Errors count relative to the step's length, and old steps fade.
  double weight_ = 0, rows_ = 0, seconds_ = 0, rowsRows_ = 0, rowsSeconds_ = 0;
  double attentionSeconds_ = 0, positions_ = 0; // fade too
  double fixedRows_ = 16;                       // before anything is known
};

} // namespace ingot
