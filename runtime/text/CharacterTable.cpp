#include "runtime/text/CharacterTable.h"

#include <algorithm>
#include <string>

namespace ingot {

Status CharacterTable::verify(size_t limit) const {
  auto bad = [](const std::string &what) {
    return Status::invalid("character table: " + what);
  };
  if (blocks.size() != NumBlocks)
    return bad(std::to_string(blocks.size()) + " blocks, expected " +
               std::to_string(NumBlocks));
  if (entries.empty() || entries.size() % 256 != 0)
    return bad(std::to_string(entries.size()) +
               " entries, expected a multiple of 256");
  uint16_t block = *std::max_element(blocks.begin(), blocks.end());
  if (block >= entries.size() / 256)
    return bad("block " + std::to_string(block) + " of " +
               std::to_string(entries.size() / 256));
  uint16_t entry = *std::max_element(entries.begin(), entries.end());
  if (entry >= limit)
    return bad("entry " + std::to_string(entry) + ", expected less than " +
               std::to_string(limit));
  return Status::ok();
}

} // namespace ingot
