// How far to guess, from how a request's guesses have fared. A draft of d
// tokens, each of which stands with probability a, gives 1 + a + ... + a^d
// tokens for the price of 1 + d * cost steps; the length with the most tokens
// for its price is taken. Guesses that do not pay are left off, and tried
// again now and then.
//
// A function of the request's own outcomes and the given cost alone: no clock,
// so a run can be repeated with the same steps.
#pragma once

#include <cstdint>

namespace ingot {

class DraftLength {
public:
  // The length for the next draft, at most `most`; 0: none. `cost` is what one
  // more guess adds to a step, in steps.
  std::int32_t next(std::int32_t most, double cost);

  // Of `proposed` tokens the first `accepted` stood.
  void observe(std::int32_t proposed, std::int32_t accepted);

  // How likely a guess is to stand, by the recent ones.
  double acceptance() const;

private:
  // Recent guesses that stood and drafts that broke off; older ones fade.
  double stood_ = 0;
  double broke_ = 0;
  std::int32_t skipped_ = 0; // steps without a draft, since the latest
};

} // namespace ingot
