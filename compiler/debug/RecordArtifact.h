// Runs an artifact on tokens, on its own kernels, and records what every launch
// wrote.
#pragma once

#include "compiler/debug/Recording.h"
#include "runtime/engine/Engine.h"

#include <functional>
#include <span>
#include <string>

namespace ingot::debug {

struct ArtifactRunOptions : RecordOptions {
  std::int32_t chunkTokens = 0; // tokens of a step; 0: all in one
  int threads = 0;              // 0: from affinity and control group
  std::string level;            // of code; empty: the best that runs here
  // Called before each step but the first: tests change the cache here.
  std::function<void(Engine &engine)> betweenSteps;
};

// One sequence from position 0; logits of every row, and the heads of all exits
// where they stand. Refuses tokens outside the vocabulary and more of them
// than the model's context.
Result<Recording> recordArtifact(const std::string &path,
                                 std::span<const std::int32_t> tokens,
                                 const ArtifactRunOptions &options = {});

} // namespace ingot::debug
