#include "runtime/speculate/Speculator.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace ingot {

// Rows share what a step costs: with many sequences one more row costs nearly
// as much as a sequence's share of the step, so guessing pays less.
static double costOfGuess(const SpeculatorOptions &options,
                          std::size_t numSequences) {
  double row = options.rowCost;
  double share =
      row + (1 - row) / double(std::max<std::size_t>(numSequences, 1));
  return (options.draftCost + row) / share;
}

std::vector<std::int32_t>
Speculator::lengths(std::span<const DraftInput> inputs) {
  double cost = costOfGuess(options_, inputs.size());
  std::vector<std::int32_t> lengths;
  for (const DraftInput &input : inputs)
    lengths.push_back(lengths_[input.id].next(
        std::min(input.room, options_.maxLength), cost));
  // Over the limit the longest give way first; then the last.
  auto sum = [&] {
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t(0));
  };
  for (std::int32_t most = options_.maxLength;
       most > 1 && sum() > options_.maxStepTokens; --most)
    for (std::int32_t &length : lengths)
      length = std::min(length, most - 1);
  std::int64_t left = options_.maxStepTokens;
  for (std::int32_t &length : lengths) {
    length = std::int32_t(std::min<std::int64_t>(length, left));
    left -= length;
  }
  return lengths;
}

void Speculator::cut(const DraftInput &input, std::int32_t length,
                     Draft &draft) const {
  if (std::ssize(draft) > length)
    draft.resize(std::size_t(length));
  SamplerBranch branch(*input.sampler);
  for (std::size_t i = 0; i < draft.size(); ++i) {
    std::int32_t token = draft[i];
    bool isChecked = token >= 0 && token < options_.vocab;
    if (isChecked && input.sampler->isEnd(token)) {
      // Nothing follows an end.
      bool isAllowed =
          branch.state().mayEnd() &&
          (!branch.state().mask() || branch.state().mask()->isAllowed(token));
      draft.resize(isAllowed ? i + 1 : i);
      return;
    }
    if (!isChecked || !branch.advance(token)) {
      draft.resize(i);
      return;
    }
  }
}

std::vector<Draft> Speculator::propose(std::span<const DraftInput> inputs) {
  std::vector<Draft> drafts(inputs.size());
  std::vector<std::int32_t> wanted = lengths(inputs);
  std::vector<DraftRequest> requests;
  std::vector<std::size_t> inputOf;
  {
    std::deque<SamplerBranch> branches;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (wanted[i] < 1)
        continue;
      requests.push_back({inputs[i].id, inputs[i].tokens,
                          &branches.emplace_back(*inputs[i].sampler), wanted[i],
                          inputs[i].promptTokens, inputs[i].maxTokens});
      inputOf.push_back(i);
    }
    if (requests.empty())
      return drafts;
    std::vector<Draft> proposed(requests.size());
    if (Status status = drafter_->propose(requests, proposed); !status) {
      ++numFailures_;
      latestFailure_ = status;
      return drafts;
    }
    for (std::size_t r = 0; r < requests.size(); ++r)
      drafts[inputOf[r]] = std::move(proposed[r]);
  }
  for (std::size_t i : inputOf)
    cut(inputs[i], wanted[i], drafts[i]);
  return drafts;
}

void Speculator::settle(SequenceId id, std::int32_t proposed,
                        std::int32_t accepted) {
  lengths_[id].observe(proposed, accepted);
  drafter_->settle(id, accepted);
}

void Speculator::forget(SequenceId id) {
  lengths_.erase(id);
  drafter_->forget(id);
}

} // namespace ingot
