// A deployed model that is run on windows of a text, one at a time and each from
// an empty cache: from cut to cut where the plan has cuts, with an eye on its
// launches where one is wanted.
#pragma once

#include "compiler/calibrate/ConfidenceCurve.h"
#include "runtime/engine/Engine.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ingot {

class WindowRunner {
public:
  static Result<WindowRunner> open(const std::string &path,
                                   std::int32_t windowTokens, unsigned threads);

  Engine &engine() { return *engine_; }
  CpuExecutor &executor() { return *engine_->cpuExecutor(); }

  // The windows of a text, in which nothing is a control token: each begins
  // with what the tokenizer puts before a text, then has the next tokens, `size`
  // together. What is left at the end is left out. Of the text, `maxTokens` are
  // used.
  Result<std::vector<std::vector<std::int32_t>>>
  windowsOf(const std::string &text, std::int32_t size,
            std::int64_t maxTokens) const;

  // Starts over with a window of at most the size it was opened for.
  Status begin(std::span<const std::int32_t> tokens);
  // The same behind the first `segments` segments, which are not run: they have
  // made `states` [tokens, width of the cut there].
  Status beginBehind(std::span<const std::int32_t> tokens,
                     std::int32_t segments, std::span<const float> states);
  // On to behind segment `end`; -1: to the end, with the logits of all rows
  // where `wantsLogits`. With the head of an exit: that head's logits.
  Status runTo(std::int32_t end, std::int32_t exitHead = -1,
               bool wantsLogits = true);
  // The states of all rows at the cut where the latest run ended.
  std::vector<float> states();
  // The first choice of each row.
  std::vector<FirstChoice> choices();

private:
  std::unique_ptr<Engine> engine_;
  StepPlan plan_;
};

} // namespace ingot
