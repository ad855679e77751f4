// What an engine has done and holds, as plain numbers at one moment: counts
// grow from the start and never fall, the others are of now.
#pragma once

#include <cstdint>
#include <vector>

namespace ingot {

struct EngineMetrics {
  // Now.
  std::int64_t running = 0; // sequences; each copy of a request is one
  std::int64_t waiting = 0; // likewise, among them the preempted
  // Cache blocks of all groups; the rest is free.
  std::int64_t kvBlocks = 0;
  std::int64_t kvBlocksUsed = 0;     // held by sequences
  std::int64_t kvBlocksReusable = 0; // kept for a later request's prefix

  // Since the start.
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;           // by a full queue
  std::uint64_t steps = 0;             // launch sequences of the model
  std::uint64_t promptTokens = 0;      // of prompts that are done, once each
  std::uint64_t generatedTokens = 0;   // that are part of an output
  std::uint64_t prefixQueryTokens = 0; // prompt tokens looked up
  std::uint64_t prefixHitTokens = 0;   // of them, found
  std::uint64_t preemptions = 0;
  std::uint64_t draftedTokens = 0; // guesses that a step has checked
  // Of them, those that stood and were gone on from: each saved a sequence
  // one step.
  std::uint64_t acceptedTokens = 0;
  // Rows of requests that may leave early, by the exit they left at; the last
  // are those that ran all layers. Empty for a model without exits.
  std::vector<std::uint64_t> exitDepths;
};

} // namespace ingot
