// One step as a value: which token rows of which sequences run, through which
// program segments, and which rows want logits. Made by policy (Scheduler),
// run by an executor, kept by tests. No tensors, no device, no pointers.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <vector>

namespace ingot {

// One sequence's rows of the step:
//   rows       [firstRow, firstRow + numRows)
//   positions  [firstPosition, firstPosition + numRows) of the sequence
struct StepSequence {
  std::uint64_t id = 0;
  std::int32_t firstRow = 0;
  std::int32_t numRows = 0;
  std::int32_t firstPosition = 0;
  // Of the whole sequence, fixed at its admission: what its rotary embedding is
  // chosen by, where it depends on length (RotaryChoice.h); else 0.
  std::int32_t rotaryLength = 0;
  bool operator==(const StepSequence &) const = default;
};

struct StepPlan {
  std::vector<StepSequence> sequences; // in order of firstRow, no gaps
  std::vector<std::int32_t> tokens;    // one a row
  std::vector<std::int32_t>
      logitRows; // ascending; logits row i is of logitRows[i]
  // Program segments [firstSegment, endSegment); endSegment -1: to the last. A
  // step that does not begin at 0 goes on with the rows of the one before it.
  std::int32_t firstSegment = 0;
  std::int32_t endSegment = -1;
  // Where the logits come from: the head of this exit, behind the segments,
  // which end at its cut; -1: the last segment.
  std::int32_t exitHead = -1;
  // For rows that leave at this exit: fills the layers behind it instead of
  // running segments, of which there are then none; -1: nothing is filled.
  std::int32_t exitFill = -1;
  // Keep the states at the exit where the segments end, until the next step
  // that says so.
  bool keepsHidden = false;
  // Which of the kept rows each row goes on from; the kept states are those
  // behind firstSegment. Empty: the step begins at 0, or has the rows of the
  // one before it.
  std::vector<std::int32_t> hiddenRows = {};

  std::int32_t numRows() const { return std::int32_t(tokens.size()); }
  bool isEmpty() const { return tokens.empty(); }
  bool operator==(const StepPlan &) const = default;
};

// What an executor may rely on; InvalidInput or Internal names what breaks it.
struct StepLimits {
  std::int32_t maxTokens = 0;
  std::int32_t maxLogitRows = 0;
  std::int32_t maxSequences = 0;
  std::int32_t vocab = 0;
  std::int32_t numSegments = 0;
  // Segments that have run before each exit, ascending.
  std::vector<std::int32_t> exitsAfter = {};
};
Status checkStepPlan(const StepPlan &plan, const StepLimits &limits);

} // namespace ingot
