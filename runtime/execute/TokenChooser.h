// Of an executor that can choose tokens where its logits are, so that a step gives
// some bytes instead of a row of logits for each token. Only what needs nothing but
// the logits, a temperature and the noise of runtime/sample is chosen there; the tokens
// are those that Sampler::choose() would choose.
#pragma once

#include "runtime/memory/KvCache.h"
#include "runtime/schedule/StepPlan.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>

namespace ingot {

// How the token behind one row of logits is chosen.
struct RowChoice {
  std::uint64_t seed = 0;
  std::int64_t position = 0;     // of the token to choose
  double inverseTemperature = 0; // 0: the most likely one, lowest id on ties
};

class TokenChooser {
public:
  virtual ~TokenChooser() = default;

  // As Executor::run(), but with a token for each row of logits in their place;
  // `choices` has one for each of them.
  virtual Status runAndChoose(const StepPlan &plan, const KvCache &cache,
                              std::span<const RowChoice> choices) = 0;

  // Of the latest such step, one a row of logits; valid until the next step. -1:
  // there is none; then Executor::logits() has the step's rows, which say why.
  virtual std::span<const std::int32_t> tokens() const = 0;
};

} // namespace ingot
