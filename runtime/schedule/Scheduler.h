// Policy only: request states and capacities in, a StepPlan out. Pure: the
// same arguments give the same plan, and nothing here allocates a block.
//
// First come, first served. Decoding sequences go first, each with its next
// token, so that a long prompt never stalls them; what is left of the token
// budget goes to prompts in order of arrival, cut where the budget ends.
// A waiting sequence is admitted when the blocks of its whole life fit beside
// those promised to the running ones, so a running sequence never runs out.
#pragma once

#include "runtime/schedule/StepPlan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

struct SequenceState {
  std::uint64_t id = 0;
  std::span<const std::int32_t> tokens; // known: prompt and generated
  std::int32_t numComputed = 0;         // of them, already in the cache
  std::int32_t maxTokens = 0;           // the longest that it may become
  bool isRunning = false;               // admitted by an earlier step
  bool wantsAllLogits = false;          // of every row, not only the last
};

struct GroupCapacity {
  std::int32_t numBlocks = 0;
  std::int32_t blockTokens = 32;
  std::int32_t window = 0;
};

struct ScheduleCapacity {
  std::int32_t maxStepTokens = 0;
  std::int32_t maxSequences = 0;
  std::int32_t maxLogitRows = 0;
  // The most prompt rows that one sequence gets in a step; 0: no limit.
  std::int32_t chunkTokens = 0;
  std::vector<GroupCapacity> groups;
};

struct ScheduleResult {
  StepPlan plan;
  std::vector<std::uint64_t> admitted; // ids that run from this step on
};

// `states` in order of arrival. A sequence is in the plan at most once.
ScheduleResult scheduleStep(std::span<const SequenceState> states,
                            const ScheduleCapacity &capacity);

// Can a sequence of `maxTokens` ever run, alone?
bool canEverFit(std::int32_t maxTokens, const ScheduleCapacity &capacity);

} // namespace ingot
