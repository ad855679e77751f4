// Texts to vectors over tokens. A step takes whole texts, as many as fit; each
// has blocks of the cache for the step alone, so nothing outlives it. Knows
// neither files nor text, so that tests drive it with an executor of their own.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/memory/KvCache.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

using Embedding = std::vector<float>; // [hidden]

class EncoderCore {
public:
  // Both outlive the core. `context`: the longest text.
  EncoderCore(Executor &executor, KvCache &cache, std::int32_t context);

  // The longest text that can be taken, in tokens: the context's, or what a step
  // holds where that is less.
  std::int32_t longestText() const { return longest_; }

  // Refuses, naming the numbers, a text that can never run.
  Status check(std::span<const std::int32_t> tokens) const;

  // Runs one step over the first of `texts`, at least one, and appends what came
  // of each that it took, in order: its vector, or why it has none (a number that
  // is not finite). Returns how many. On failure nothing is appended, and nothing
  // is held.
  Result<std::size_t> step(std::span<const std::vector<std::int32_t>> texts,
                           std::vector<Result<Embedding>> &embeddings);
  // All of them, in as many steps as that takes; fails with the first that does.
  Result<std::vector<Embedding>>
  embed(std::span<const std::vector<std::int32_t>> texts);

private:
  std::size_t reserve(std::span<const std::vector<std::int32_t>> texts,
                      StepPlan &plan);
  void release(const StepPlan &plan);

  Executor &executor_;
  KvCache &cache_;
  std::int32_t longest_ = 0;
};

} // namespace ingot
