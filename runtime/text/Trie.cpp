#include "runtime/text/Trie.h"

#include <limits>
#include <string>

namespace ingot {

Status Trie::verify(int64_t limit) const {
  if (nodes_.size() > size_t(std::numeric_limits<int32_t>::max()))
    return Status::invalid("trie: " + std::to_string(nodes_.size()) +
                           " nodes, expected fewer than 2^31");
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].value < -1 || nodes_[i].value >= limit)
      return Status::invalid("trie: node " + std::to_string(i) + ": value " +
                             std::to_string(nodes_[i].value) +
                             ", expected -1 to " + std::to_string(limit - 1));
  return Status::ok();
}

} // namespace ingot
