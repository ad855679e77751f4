// Stop strings over streamed text. Text goes in as it comes; out goes what can
// no longer be part of a stop string. The match is the stop string that is
// complete first (the longest, if several end together), so the result does not
// depend on how the text was cut.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

class StopMatcher {
public:
  // No stop string may be empty. No stop strings at all is fine.
  static Result<StopMatcher> create(std::vector<std::string> stops);

  struct Output {
    std::string text;     // to be emitted now
    bool stopped = false; // a stop string is complete; its text is gone
  };

  // After a stop, further text is ignored.
  Output push(std::string_view text);

  // The generation ended otherwise: the text held back.
  std::string flush();

  bool stopped() const { return stoppedBy_ != NotStopped; }
  // Which stop string matched; empty if none did.
  std::string_view matched() const {
    return stopped() ? std::string_view(stops_[stoppedBy_].text)
                     : std::string_view();
  }

private:
  static constexpr size_t NotStopped = static_cast<size_t>(-1);

  struct Stop {
    std::string text;
    // failure[k]: the longest proper prefix of text that ends text[0, k).
    std::vector<size_t> failure;
    size_t matched = 0; // bytes of text that end what was pushed so far
  };

  std::vector<Stop> stops_;
  std::string held_;
  size_t stoppedBy_ = NotStopped;
};

} // namespace ingot
