// One Knuth-Morris-Pratt automaton a stop string, all fed byte by byte; what
// the longest of them has matched is what must be held back.
#include "runtime/text/StopMatcher.h"

#include <algorithm>

namespace ingot {

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  StopMatcher matcher;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty())
      return Status::invalid("stop[" + std::to_string(i) +
                             "]: expected a string that is not empty");
    Stop stop{std::move(stops[i]), {}, 0};
    stop.failure.assign(stop.text.size() + 1, 0);
    for (size_t k = 1, length = 0; k < stop.text.size(); ++k) {
      while (length > 0 && stop.text[k] != stop.text[length])
        length = stop.failure[length];
      length += stop.text[k] == stop.text[length];
      stop.failure[k + 1] = length;
    }
    matcher.stops_.push_back(std::move(stop));
  }
  return matcher;
}

StopMatcher::Output StopMatcher::push(std::string_view text) {
  Output output;
  if (stopped()) {
    output.stopped = true;
    return output;
  }
  for (char c : text) {
    held_.push_back(c);
    for (size_t i = 0; i < stops_.size(); ++i) {
      Stop &stop = stops_[i];
      while (stop.matched > 0 && stop.text[stop.matched] != c)
        stop.matched = stop.failure[stop.matched];
      stop.matched += stop.text[stop.matched] == c;
      if (stop.matched == stop.text.size() &&
          (!stopped() || stops_[stoppedBy_].text.size() < stop.text.size()))
        stoppedBy_ = i;
    }
    if (stopped()) {
      held_.resize(held_.size() - stops_[stoppedBy_].text.size());
      output.text = std::move(held_);
      held_.clear();
      output.stopped = true;
      return output;
    }
  }
  size_t keep = 0;
  for (const Stop &stop : stops_)
    keep = std::max(keep, stop.matched);
  output.text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return output;
}

std::string StopMatcher::flush() {
  std::string text = std::move(held_);
  held_.clear();
  for (Stop &stop : stops_)
    stop.matched = 0;
  return text;
}

} // namespace ingot
