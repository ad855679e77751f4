// Guesses by the model itself, from one of its early exits: the layers before
// the exit, then the exit's head. There is no second model and no second cache.
// The rows of a draft lie in blocks that are reserved behind what the sequence
// has committed:
//
//   layers before the exit   write keys and values of the guesses there; the
//                            step that checks them computes the same rows again,
//                            with the same bits for what stands
//   layers behind it         are neither read nor written
//
// and the blocks are given back before the draft leaves here. So whatever comes
// of a guess, nothing of it stays.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/plan/RotaryChoice.h"
#include "runtime/sample/Sampler.h"
#include "runtime/speculate/Drafter.h"

#include <utility>
#include <vector>

namespace ingot {

class ExitDrafter final : public Drafter {
public:
  // Both are those of the model that checks, and outlive the drafter. `exit` is
  // one of the executor's, `rotary` the plan's.
  ExitDrafter(Executor &executor, KvCache &cache, std::int32_t exit,
              RotaryChoice rotary = {})
      : executor_(executor), cache_(cache), exit_(exit),
        rotary_(std::move(rotary)), sampler_(executor.limits().vocab) {}

  const char *name() const override { return "exit"; }
  // A sequence for whose draft the cache has no room gets none.
  Status propose(std::span<const DraftRequest> requests,
                 std::span<Draft> drafts) override;
  // Nothing is kept from one draft to the next.
  void settle(SequenceId, std::int32_t) override {}
  void forget(SequenceId) override {}

  // Launch sequences up to the exit.
  std::uint64_t numSteps() const { return numSteps_; }

private:
  Status extendAll(std::span<const DraftRequest> requests,
                   std::span<Draft> drafts, std::vector<std::size_t> &active);

  Executor &executor_;
  KvCache &cache_;
  std::int32_t exit_;
  RotaryChoice rotary_;
  Sampler sampler_;
  std::uint64_t numSteps_ = 0;
};

} // namespace ingot
