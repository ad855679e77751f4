#include "runtime/memory/AvailableMemory.h"

#include "runtime/support/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace ingot {
namespace {

std::optional<std::uint64_t> numberIn(const std::string &path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (!(file >> value)) // missing, or "max"
    return std::nullopt;
  return value;
}

// The limit less what is held and cannot be dropped; page cache can.
void keepSmaller(std::optional<std::uint64_t> &best, const std::string &folder,
                 const char *limitFile, const char *usageFile) {
  auto limit = numberIn(folder + limitFile);
  auto usage = numberIn(folder + usageFile);
  if (!limit || !usage)
    return;
  std::uint64_t cache = 0;
  std::ifstream statistics(folder + "/memory.stat");
  std::string name;
  for (std::uint64_t value; statistics >> name >> value;)
    if (name == "inactive_file" || name == "active_file")
      cache += value;
  std::uint64_t held = *usage - std::min(*usage, cache);
  std::uint64_t left = *limit - std::min(*limit, held);
  best = best ? std::min(*best, left) : left;
}

} // namespace

std::optional<std::uint64_t> availableMemoryBytes(const std::string &root) {
  std::optional<std::uint64_t> best;
  std::ifstream memory(root + "/proc/meminfo");
  for (std::string line; std::getline(memory, line);) {
    std::istringstream fields(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    if (fields >> name >> kibibytes && name == "MemAvailable:")
      best = kibibytes * 1024;
  }
  forEachControlGroup(
      root, "memory", [&](const std::string &folder, bool isVersion2) {
        keepSmaller(best, folder,
                    isVersion2 ? "/memory.max" : "/memory.limit_in_bytes",
                    isVersion2 ? "/memory.current" : "/memory.usage_in_bytes");
      });
  return best;
}

} // namespace ingot
