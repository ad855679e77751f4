// Policy only: request states, capacities and what the cache offers in, a
// StepPlan out. The same arguments give the same plan; nothing here allocates a
// block, and time comes in as a value.
//
// A step is filled in this order:
//   1. every decoding sequence gets the row of its next token, so that no
//      prompt ever stalls it; then, where there is room, its drafts;
//   2. prompts that have begun, each at most a chunk; beside decoding a long one
//      leaves half of what prompts may cost to those much shorter, so that no
//      short request waits for the end of a long prompt;
//   3. waiting sequences, best first, until one does not fit: it is not
//      passed, so it cannot starve.
//
// Blocks are given as rows need them, not for a whole life. A waiting sequence
// is admitted when all tokens it has now fit beside what begun prompts still
// need, with some blocks to spare. When a decoding sequence finds no block, the
// running sequence that ranks last is preempted: it waits again, with all its
// tokens, and its rows are computed anew. The one that ranks first is never
// preempted, so there is always one that ends.
//
// Rank: priority, then (while waiting) the service its client has had, then
// arrival. A sequence older than `agingSeconds` ranks with the best priority
// present, so no priority starves it; fairness between clients still holds.
#pragma once

#include "runtime/schedule/StepCost.h"
#include "runtime/schedule/StepPlan.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ingot {

struct SequenceState {
  std::uint64_t id = 0;
  // Known tokens, prompt and generated, and after them `numDrafts` guesses
  // that are to be verified; guesses are left out where room is short.
  std::span<const std::int32_t> tokens;
  std::int32_t numDrafts = 0;
  std::int32_t numComputed = 0;  // of the known, already in the cache
  std::int32_t firstLogit = 0;   // rows from this position on want logits
  bool isRunning = false;        // admitted by an earlier step
  bool sharesLastBlock = false;  // its next row needs a copied block
  std::int32_t copies = 1;       // sequences that it becomes after its prompt
  std::int32_t priority = 0;     // lower first
  double ageSeconds = 0;         // since it was submitted
  std::int32_t client = 0;       // index into the clients' service
  std::int32_t rotaryLength = 0; // as StepSequence has it

  std::int32_t numKnown() const {
    return std::int32_t(tokens.size()) - numDrafts;
  }
};

struct GroupCapacity {
  std::int32_t numBlocks = 0;
  std::int32_t blockTokens = 32;
  std::int32_t window = 0;
  std::int32_t available = 0; // blocks that can be had now
};

inline constexpr std::int32_t kLeastPromptRows = 2;

struct ScheduleCapacity {
  std::int32_t maxStepTokens = 0;
  std::int32_t maxSequences = 0;
  std::int32_t maxLogitRows = 0;
  // The most prompt rows that one sequence gets in a step; 0: no limit.
  std::int32_t chunkTokens = 0;
  // What prompts may cost the others in a step that also decodes: the most rows
  // of all sequences (0: no limit), and the most that they cost together; in any
  // case one of them goes on by kLeastPromptRows.
  std::int32_t mixedPromptTokens = 0;
  std::optional<PromptBudget> mixedPromptBudget;
  std::vector<GroupCapacity> groups;
};

enum class QueueOrder {
  Priority,  // lower numbers first, then as FirstCome
  FirstCome, // arrival alone
};

struct SchedulePolicy {
  QueueOrder order = QueueOrder::Priority;
  bool fairClients = true;  // least served client first
  double agingSeconds = 30; // 0: priorities are absolute
  // Of each group's blocks, this share stays unpromised at an admission.
  double watermark = 1.0 / 64;
};

// What policy asks of the cache.
struct PrefixOffer {
  std::int32_t tokens = 0;            // need not be computed
  std::vector<std::int32_t> reusable; // blocks of it, a group, not held now
};
class CacheView {
public:
  virtual ~CacheView() = default;
  // For a waiting sequence.
  virtual PrefixOffer offer(std::uint64_t id) const = 0;
  // Blocks, a group, that would be available without a running sequence.
  virtual std::vector<std::int32_t> releasable(std::uint64_t id) const = 0;
};

struct Admission {
  std::uint64_t id = 0;
  std::int32_t cachedTokens = 0; // where its rows begin
  bool operator==(const Admission &) const = default;
};

struct ScheduleResult {
  StepPlan plan;
  std::vector<Admission> admitted;      // run from this step on
  std::vector<std::uint64_t> preempted; // give their blocks back before it
};

// `states` in order of arrival; `service` by client. A sequence is in the plan
// at most once. An empty plan with preemptions asks to be called again with
// the cache as it is then.
ScheduleResult scheduleStep(std::span<const SequenceState> states,
                            std::span<const double> service,
                            const ScheduleCapacity &capacity,
                            const SchedulePolicy &policy,
                            const CacheView &cache);

// The longest sequence that can run to its end, alone.
std::int64_t longestSequence(const ScheduleCapacity &capacity);

} // namespace ingot
