#include "runtime/memory/CacheInvariants.h"

#include <algorithm>

namespace ingot {
namespace {

std::string str(std::int64_t value) { return std::to_string(value); }

Status checkLists(const CacheSnapshot::Group &group) {
  std::vector<const char *> list(group.references.size(), nullptr);
  auto enter = [&](const std::vector<BlockId> &blocks,
                   const char *name) -> Status {
    for (BlockId block : blocks) {
      if (block < 0 || std::size_t(block) >= list.size())
        return Status::internal(std::string(name) + " list names block " +
                                str(block) + " of " +
                                str(std::int64_t(list.size())));
      if (list[block])
        return Status::internal("block " + str(block) + " is in the " +
                                list[block] + " list and in the " + name +
                                " list");
      list[block] = name;
    }
    return Status::ok();
  };
  INGOT_RETURN_IF_ERROR(enter(group.free, "free"));
  INGOT_RETURN_IF_ERROR(enter(group.reusable, "reusable"));
  for (std::size_t b = 0; b < list.size(); ++b)
    if (group.references[b] < 0 ||
        (group.references[b] == 0) != (list[b] != nullptr))
      return Status::internal(
          "block " + str(std::int64_t(b)) + " has " + str(group.references[b]) +
          " references and is in " + (list[b] ? list[b] : "no") + " list");
  for (BlockId block : group.free)
    if (group.published[block])
      return Status::internal("free block " + str(block) + " is published");
  for (BlockId block : group.reusable)
    if (!group.published[block])
      return Status::internal("reusable block " + str(block) +
                              " is not published");
  return Status::ok();
}

Status checkTable(const CacheSnapshot::Group &group, std::int32_t committed,
                  const std::vector<BlockId> &table,
                  std::vector<std::int32_t> &holders) {
  std::int64_t room = std::int64_t(table.size()) * group.blockTokens;
  if (committed > room)
    return Status::internal("has " + str(committed) + " tokens in blocks for " +
                            str(room));
  std::int32_t oldest =
      group.window > 0 ? std::max(0, committed - group.window + 1) : 0;
  for (std::size_t b = 0; b < table.size(); ++b) {
    if (table[b] >= 0)
      ++holders[table[b]];
    else if (std::int64_t(b + 1) * group.blockTokens > oldest)
      return Status::internal("lacks the block of position " +
                              str(std::int64_t(b) * group.blockTokens) +
                              " of " + str(committed));
  }
  return Status::ok();
}

} // namespace

Status checkInvariants(const CacheSnapshot &snapshot) {
  for (std::size_t g = 0; g < snapshot.groups.size(); ++g) {
    const CacheSnapshot::Group &group = snapshot.groups[g];
    std::string where = "KV group \"" + group.name + "\"";
    INGOT_RETURN_IF_ERROR(checkLists(group).withContext(where));
    std::vector<std::int32_t> holders(group.references.size(), 0);
    for (const CacheSnapshot::Sequence &sequence : snapshot.sequences)
      INGOT_RETURN_IF_ERROR(
          checkTable(group, sequence.committed, sequence.tables[g], holders)
              .withContext(where + ": sequence " +
                           std::to_string(sequence.id)));
    for (std::size_t b = 0; b < holders.size(); ++b)
      if (holders[b] != group.references[b])
        return Status::internal(
            where + ": block " + str(std::int64_t(b)) + " is held " +
            str(holders[b]) + " times and counted " + str(group.references[b]));
  }
  return Status::ok();
}

} // namespace ingot
