// A cache that offers what a test says and records what it was asked.
#pragma once

#include "runtime/schedule/Scheduler.h"

#include <map>

namespace ingot::test {

class RecordingCache final : public CacheView {
public:
  std::map<std::uint64_t, PrefixOffer> offers;
  std::map<std::uint64_t, std::vector<std::int32_t>> held;
  mutable std::vector<std::uint64_t> asked; // for offers
  mutable std::vector<std::uint64_t> askedReleasable;
  std::size_t groups = 1;

  PrefixOffer offer(std::uint64_t id) const override {
    asked.push_back(id);
    auto found = offers.find(id);
    return found == offers.end()
               ? PrefixOffer{0, std::vector<std::int32_t>(groups, 0)}
               : found->second;
  }
  std::vector<std::int32_t> releasable(std::uint64_t id) const override {
    askedReleasable.push_back(id);
    auto found = held.find(id);
    return found == held.end() ? std::vector<std::int32_t>(groups, 0)
                               : found->second;
  }
};

} // namespace ingot::test
