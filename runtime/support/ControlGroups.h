// The control groups that bind this process, of version 1 and 2: where a
// container's limits on processors and memory are written.
#pragma once

#include <functional>
#include <string>

namespace ingot {

// Calls `visit` with each folder that may hold a limit of `controller` ("cpu",
// "memory"): the process's own group, and every group above it, whose limits
// bind as well. Folders need not exist. `root` stands before /proc and /sys.
void forEachControlGroup(const std::string &root, const std::string &controller,
                         const std::function<void(const std::string &folder,
                                                  bool isVersion2)> &visit);

} // namespace ingot
