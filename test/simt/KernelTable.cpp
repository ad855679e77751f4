// Filled before main by the objects that hold kernels.
#include "test/simt/KernelTable.h"

#include <map>
#include <string>

namespace ingot::simt {
namespace {

std::map<std::string, const KernelEntry *> &table() {
  static std::map<std::string, const KernelEntry *> entries;
  return entries;
}

} // namespace

KernelTable::KernelTable(const KernelEntry *entries, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    table()[entries[i].name] = &entries[i];
}

const KernelEntry *KernelTable::find(const char *name) {
  auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

const KernelEntry *KernelTable::find(const char *name, std::uint64_t textHash) {
  const KernelEntry *entry = find(name);
  return entry && entry->textHash == textHash ? entry : nullptr;
}

} // namespace ingot::simt
