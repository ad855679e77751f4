#include "runtime/support/ControlGroups.h"

#include <fstream>
#include <sstream>

namespace ingot {
namespace {

bool holds(const std::string &list, const std::string &controller) {
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');)
    if (name == controller)
      return true;
  return false;
}

} // namespace

void forEachControlGroup(const std::string &root, const std::string &controller,
                         const std::function<void(const std::string &folder,
                                                  bool isVersion2)> &visit) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1)
    auto first = line.find(':');
    auto second =
        first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (!group.empty() && group[0] != '/')
      continue;
    bool isVersion2 = controllers.empty();
    if (!isVersion2 && !holds(controllers, controller))
      continue;
    const std::string mounts = root + "/sys/fs/cgroup";
    auto visitUp = [&](const std::string &mount) {
      for (std::string at = group;; at.erase(at.rfind('/'))) {
        visit(mount + at, isVersion2);
        if (at.empty() || at == "/")
          return;
      }
    };
    if (isVersion2) {
      visitUp(mounts);
      continue;
    }
    visitUp(mounts + "/" + controller);
    if (controllers != controller)
      visitUp(mounts + "/" + controllers);
  }
}

} // namespace ingot
