#include "runtime/schedule/StepPlan.h"

#include <string>

namespace ingot {

static std::string str(std::int64_t value) { return std::to_string(value); }

Status checkStepPlan(const StepPlan &plan, const StepLimits &limits) {
  if (plan.numRows() > limits.maxTokens)
    return Status::internal("step of " + str(plan.numRows()) +
                            " token rows, capacity " + str(limits.maxTokens));
  if (std::int64_t(plan.logitRows.size()) > limits.maxLogitRows)
    return Status::internal("step of " + str(plan.logitRows.size()) +
                            " logit rows, capacity " +
                            str(limits.maxLogitRows));
  if (std::int64_t(plan.sequences.size()) > limits.maxSequences)
    return Status::internal("step of " + str(plan.sequences.size()) +
                            " sequences, capacity " + str(limits.maxSequences));
  std::int32_t next = 0;
  for (const StepSequence &sequence : plan.sequences) {
    if (sequence.firstRow != next || sequence.numRows < 1 ||
        sequence.firstPosition < 0)
      return Status::internal("sequence " + std::to_string(sequence.id) +
                              ": rows from " + str(sequence.firstRow) +
                              ", expected from " + str(next));
    next += sequence.numRows;
  }
  if (next != plan.numRows())
    return Status::internal("sequences cover " + str(next) + " of " +
                            str(plan.numRows()) + " rows");
  for (std::int32_t token : plan.tokens)
    if (token < 0 || token >= limits.vocab)
      return Status::invalid("token id " + str(token) +
                             " is outside the vocabulary of " +
                             str(limits.vocab));
  std::int32_t last = -1;
  for (std::int32_t row : plan.logitRows) {
    if (row <= last || row >= plan.numRows())
      return Status::internal("logit row " + str(row) + " after " + str(last) +
                              ", of " + str(plan.numRows()));
    last = row;
  }
  std::int32_t end =
      plan.endSegment == -1 ? limits.numSegments : plan.endSegment;
  bool isFill = plan.exitFill != -1;
  if (plan.firstSegment < 0 || plan.firstSegment > end ||
      (plan.firstSegment == end) != isFill || end > limits.numSegments)
    return Status::internal("segments [" + str(plan.firstSegment) + ", " +
                            str(end) + ") of " + str(limits.numSegments));
  for (std::int32_t exit : {plan.exitHead, plan.exitFill})
    if (exit != -1 && (exit < 0 || exit >= std::ssize(limits.exitsAfter) ||
                       limits.exitsAfter[std::size_t(exit)] != end))
      return Status::internal("exit " + str(exit) + " of " +
                              str(std::ssize(limits.exitsAfter)) +
                              " behind segment " + str(end));
  if (isFill && (plan.exitHead != -1 || plan.keepsHidden ||
                 !plan.logitRows.empty() || plan.hiddenRows.empty()))
    return Status::internal("a fill goes on from kept rows and gives nothing");
  if (!plan.hiddenRows.empty() &&
      (std::ssize(plan.hiddenRows) != plan.numRows() || plan.firstSegment == 0))
    return Status::internal(str(std::ssize(plan.hiddenRows)) +
                            " kept rows for " + str(plan.numRows()) +
                            " that begin at segment " + str(plan.firstSegment));
  return Status::ok();
}

} // namespace ingot
