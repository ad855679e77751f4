// A folder for files that vanish with it, beside what is being made. One that a
// killed process left is known by its lock, which went with the process, and is
// removed by the next that makes one in the same place.
#pragma once

#include <string>

namespace ingot::package {

class ScratchFolder {
public:
  // Makes PATH.scratch-PID-N, for its owner only, after folders of that form
  // beside it that nobody holds are removed. Where it cannot be made, writing
  // to its files says so.
  explicit ScratchFolder(const std::string &path);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder &) = delete;
  ScratchFolder &operator=(const ScratchFolder &) = delete;

  std::string file(const std::string &name) const {
    return folder_ + "/" + name;
  }

private:
  std::string folder_;
  bool isMade_ = false;
  int lock_ =
      -1; // the folder, open and locked; -1: the system locks no folders
};

// For a program, before it has another thread: SIGHUP, SIGINT and SIGTERM end
// it as they do anyway, after its scratch folders are removed. A signal that the
// program was started to ignore stays ignored.
void removeScratchOnSignals();

} // namespace ingot::package
