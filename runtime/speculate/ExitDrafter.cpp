#include "runtime/speculate/ExitDrafter.h"

#include <algorithm>

namespace ingot {

// One guess more for each of `active`, in as few launch sequences as the
// executor's limits allow. Those whose draft ends leave `active`.
Status ExitDrafter::extendAll(std::span<const DraftRequest> requests,
                              std::span<Draft> drafts,
                              std::vector<std::size_t> &active) {
  const StepLimits &limits = executor_.limits();
  auto most =
      std::size_t(std::max(1, std::min({limits.maxSequences, limits.maxTokens,
                                        limits.maxLogitRows})));
  std::vector<std::size_t> goOn;
  for (std::size_t begin = 0; begin < active.size(); begin += most) {
    std::size_t end = std::min(begin + most, active.size());
    StepPlan plan;
    plan.exitHead = exit_;
    plan.endSegment = limits.exitsAfter[std::size_t(exit_)];
    for (std::size_t a = begin; a < end; ++a) {
      const DraftRequest &request = requests[active[a]];
      const Draft &draft = drafts[active[a]];
      auto row = std::int32_t(a - begin);
      plan.sequences.push_back(
          {request.id, row, 1,
           std::int32_t(request.tokens.size() + draft.size()) - 1,
           rotary_.lengthFor(request.promptTokens, request.maxTokens)});
      plan.tokens.push_back(draft.empty() ? request.tokens.back()
                                          : draft.back());
      plan.logitRows.push_back(row);
    }
    INGOT_RETURN_IF_ERROR(executor_.run(plan, cache_));
    ++numSteps_;
    for (std::size_t a = begin; a < end; ++a) {
      const DraftRequest &request = requests[active[a]];
      Draft &draft = drafts[active[a]];
      auto position = std::int64_t(request.tokens.size() + draft.size());
      auto token = sampler_.choose(executor_.logits(std::int32_t(a - begin)),
                                   request.sampler->state(), position);
      if (!token)
        continue;
      draft.push_back(*token);
      if (std::ssize(draft) < request.length &&
          !request.sampler->state().isEnd(*token) &&
          request.sampler->advance(*token).isOk())
        goOn.push_back(active[a]);
    }
  }
  active = std::move(goOn);
  return Status::ok();
}

Status ExitDrafter::propose(std::span<const DraftRequest> requests,
                            std::span<Draft> drafts) {
  std::vector<std::size_t> active;
  std::vector<SequenceId> reserved;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const DraftRequest &request = requests[r];
    // All but the last token are in the cache, through every layer.
    if (!cache_.hasSequence(request.id) ||
        cache_.committedTokens(request.id) + 1 !=
            std::int32_t(request.tokens.size()) ||
        !cache_.reserve(request.id, request.length))
      continue;
    active.push_back(r);
    reserved.push_back(request.id);
  }
  Status status;
  while (status.isOk() && !active.empty())
    status = extendAll(requests, drafts, active);
  for (SequenceId id : reserved)
    cache_.rollback(id);
  return status;
}

} // namespace ingot
