#include "runtime/speculate/NgramDrafter.h"

#include <algorithm>

namespace ingot {

Draft NgramDrafter::lookUp(std::span<const std::int32_t> tokens,
                           std::int32_t length, const NgramOptions &options) {
  auto size = std::ptrdiff_t(tokens.size());
  std::ptrdiff_t most = std::min<std::ptrdiff_t>(options.most, size - 1);
  std::ptrdiff_t bestLength = 0, bestEnd = 0;
  // `end` is where an earlier match ends: its continuation begins there.
  for (std::ptrdiff_t end = size - 1; end > 0 && bestLength < most; --end) {
    std::ptrdiff_t match = 0;
    std::ptrdiff_t longest = std::min(most, end);
    while (match < longest && tokens[std::size_t(end - 1 - match)] ==
                                  tokens[std::size_t(size - 1 - match)])
      ++match;
    if (match > bestLength) {
      bestLength = match;
      bestEnd = end;
    }
  }
  Draft draft;
  if (bestLength < std::max(options.least, std::int32_t(1)))
    return draft;
  std::ptrdiff_t period = size - bestEnd;
  for (std::int32_t i = 0; i < length; ++i)
    draft.push_back(i < period ? tokens[std::size_t(bestEnd + i)]
                               : draft[std::size_t(i - period)]);
  return draft;
}

Status NgramDrafter::propose(std::span<const DraftRequest> requests,
                             std::span<Draft> drafts) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    drafts[i] = lookUp(requests[i].tokens, requests[i].length, options_);
  return Status::ok();
}

} // namespace ingot
