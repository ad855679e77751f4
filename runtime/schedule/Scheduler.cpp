#include "runtime/schedule/Scheduler.h"

#include <algorithm>

namespace ingot {
namespace {

// As many blocks of the group as the sequence can hold at once; must agree
// with what runtime/memory takes (its blocksForTokens).
std::int64_t blocksOf(std::int32_t maxTokens, const GroupCapacity &group,
                      std::int32_t stepTokens) {
  std::int64_t size = group.blockTokens;
  std::int64_t all = (std::int64_t(maxTokens) + size - 1) / size;
  if (group.window > 0)
    all = std::min(
        all, (std::int64_t(group.window) + stepTokens + size - 1) / size + 1);
  return all;
}

class StepBuilder {
public:
  explicit StepBuilder(const ScheduleCapacity &capacity)
      : capacity_(capacity) {}

  // Appends up to `limit` rows of the sequence; false when nothing fits.
  bool append(const SequenceState &state, std::int32_t limit) {
    std::int32_t numTokens = std::int32_t(state.tokens.size());
    std::int32_t rows = std::min({numTokens - state.numComputed, limit,
                                  capacity_.maxStepTokens - plan_.numRows()});
    std::int32_t freeLogits =
        capacity_.maxLogitRows - std::int32_t(plan_.logitRows.size());
    if (state.wantsAllLogits)
      rows = std::min(rows, freeLogits);
    bool isLast = state.numComputed + rows == numTokens;
    if (isLast && !state.wantsAllLogits && freeLogits < 1)
      --rows; // the last row waits for a step that has room for its logits
    if (rows < 1)
      return false;
    isLast = state.numComputed + rows == numTokens;
    std::int32_t firstRow = plan_.numRows();
    plan_.sequences.push_back({state.id, firstRow, rows, state.numComputed});
    auto first = state.tokens.begin() + state.numComputed;
    plan_.tokens.insert(plan_.tokens.end(), first, first + rows);
    if (state.wantsAllLogits) {
      for (std::int32_t r = 0; r < rows; ++r)
        plan_.logitRows.push_back(firstRow + r);
    } else if (isLast) {
      plan_.logitRows.push_back(firstRow + rows - 1);
    }
    return true;
  }

  StepPlan take() { return std::move(plan_); }

private:
  const ScheduleCapacity &capacity_;
  StepPlan plan_;
};

} // namespace

bool canEverFit(std::int32_t maxTokens, const ScheduleCapacity &capacity) {
  for (const GroupCapacity &group : capacity.groups)
    if (blocksOf(maxTokens, group, capacity.maxStepTokens) > group.numBlocks)
      return false;
  return true;
}

ScheduleResult scheduleStep(std::span<const SequenceState> states,
                            const ScheduleCapacity &capacity) {
  ScheduleResult result;
  StepBuilder builder(capacity);
  std::vector<std::int64_t> promised(capacity.groups.size(), 0);
  auto promise = [&](const SequenceState &state) {
    for (std::size_t g = 0; g < capacity.groups.size(); ++g)
      promised[g] +=
          blocksOf(state.maxTokens, capacity.groups[g], capacity.maxStepTokens);
  };
  std::int32_t running = 0;
  auto pending = [](const SequenceState &state) {
    return std::int32_t(state.tokens.size()) - state.numComputed;
  };
  std::int32_t chunk =
      capacity.chunkTokens > 0 ? capacity.chunkTokens : capacity.maxStepTokens;

  // 1. Decoding sequences, one row each.
  for (const SequenceState &state : states) {
    if (!state.isRunning)
      continue;
    promise(state);
    ++running;
    if (pending(state) == 1)
      builder.append(state, 1);
  }
  // 2. Prompts that have begun.
  for (const SequenceState &state : states)
    if (state.isRunning && pending(state) > 1)
      builder.append(state, chunk);
  // 3. Waiting sequences in order, until one does not fit.
  for (const SequenceState &state : states) {
    if (state.isRunning || pending(state) < 1)
      continue;
    bool fits = running < capacity.maxSequences;
    for (std::size_t g = 0; g < capacity.groups.size() && fits; ++g)
      fits = promised[g] + blocksOf(state.maxTokens, capacity.groups[g],
                                    capacity.maxStepTokens) <=
             capacity.groups[g].numBlocks;
    if (!fits || !builder.append(state, chunk))
      break;
    promise(state);
    ++running;
    result.admitted.push_back(state.id);
  }
  result.plan = builder.take();
  return result;
}

} // namespace ingot
