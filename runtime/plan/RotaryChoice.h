// Which rotary frequencies a sequence gets, where that depends on its length
// (docs/numerics.md, "Rotary"). The choice is made once, when the sequence is
// admitted, so that chunks, batches and recomputation cannot change it; keys
// that were cached under another choice are of no use to it, so a prefix key
// must hold `variantOf`.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <algorithm>
#include <cstdint>

namespace ingot {

struct RotaryChoice {
  fbs::RopeScaling scaling = fbs::RopeScaling::fixed;
  std::int32_t original = 0; // up to this length all choices are one

  // Of a target's launches; a plan has one kind of choice at most.
  static RotaryChoice of(const fbs::Target &target);

  // What StepSequence::rotaryLength is to be, for as long as the sequence
  // lives. `maxTokens` is the longest that it may become.
  std::int32_t lengthFor(std::int32_t promptTokens,
                         std::int32_t maxTokens) const {
    switch (scaling) {
    case fbs::RopeScaling::dynamic:
      return promptTokens;
    case fbs::RopeScaling::listed:
      return maxTokens;
    default:
      return 0;
    }
  }

  // Equal for two sequences that rotate equal positions alike.
  std::int32_t variantOf(std::int32_t rotaryLength) const {
    switch (scaling) {
    case fbs::RopeScaling::dynamic:
      return std::max(rotaryLength, original);
    case fbs::RopeScaling::listed:
      return rotaryLength > original;
    default:
      return 0;
    }
  }
};

} // namespace ingot
