// What the engine asks for drafts: a drafter, how far to guess for each
// sequence, and the checks between a drafter and a step. Whatever the drafter
// returns, a draft that leaves here is short enough, within the vocabulary and
// allowed by the request's mask.
#pragma once

#include "runtime/speculate/DraftLength.h"
#include "runtime/speculate/Drafter.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace ingot {

struct SpeculatorOptions {
  std::int32_t vocab = 0;                 // of the model that checks
  std::int32_t maxLength = 8;             // of one draft
  std::int32_t maxStepTokens = INT32_MAX; // drafted for one step
  // What a guess costs, in steps of one sequence: drafting it, and one more
  // row in the step that checks it. 0: always as far as is allowed.
  double draftCost = 0;
  double rowCost = 0;
};

// A sequence that is about to get its next token.
struct DraftInput {
  SequenceId id = 0;
  std::span<const std::int32_t> tokens; // prompt and output
  SamplerState *sampler = nullptr;      // left as it is
  std::int32_t room = 0;         // guesses that could be of use, by its end
  std::int32_t promptTokens = 0; // as DraftRequest has them
  std::int32_t maxTokens = 0;
};

class Speculator {
public:
  Speculator(std::unique_ptr<Drafter> drafter, const SpeculatorOptions &options)
      : drafter_(std::move(drafter)), options_(options) {}

  // A draft for each input, in order; empty where there is none.
  std::vector<Draft> propose(std::span<const DraftInput> inputs);

  // Of `proposed` tokens that the step has checked, `accepted` stood. Also
  // where the step had less room than the draft, or none.
  void settle(SequenceId id, std::int32_t proposed, std::int32_t accepted);
  void forget(SequenceId id);

  // Times that the drafter gave an error, and the latest.
  std::uint64_t numFailures() const { return numFailures_; }
  const Status &latestFailure() const { return latestFailure_; }
  const Drafter &drafter() const { return *drafter_; }
  const SpeculatorOptions &options() const { return options_; }

private:
  std::vector<std::int32_t> lengths(std::span<const DraftInput> inputs);
  void cut(const DraftInput &input, std::int32_t length, Draft &draft) const;

  std::unique_ptr<Drafter> drafter_;
  SpeculatorOptions options_;
  std::map<SequenceId, DraftLength> lengths_;
  std::uint64_t numFailures_ = 0;
  Status latestFailure_;
};

} // namespace ingot
