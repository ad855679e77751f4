#include "runtime/support/MappedFiles.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <sys/stat.h>
#include <unistd.h>

namespace ingot {
namespace {

// Of fixed size and without pointers, so that a signal handler may read it
// whatever the other threads are doing.
struct Region {
  std::atomic<std::uintptr_t> begin{0}, end{0}; // 0: free
  struct stat info{};
  char path[1024] = {};
};
constexpr std::size_t kMostRegions = 128;
Region regions[kMostRegions];
std::mutex regionsMutex; // of who changes them

Region *regionAt(const void *address) {
  auto at = reinterpret_cast<std::uintptr_t>(address);
  for (Region &region : regions) {
    std::uintptr_t begin = region.begin;
    if (begin != 0 && at >= begin && at < region.end)
      return &region;
  }
  return nullptr;
}

const char *busProgram = "";
int busExitCode = 0;

void say(const char *text) { (void)!::write(2, text, std::strlen(text)); }

void onBusError(int signal, siginfo_t *info, void *) {
  if (const Region *region = regionAt(info->si_addr)) {
    say(busProgram);
    say(": ");
    say(region->path);
    say(": was cut short while it was in use, or cannot be read any more (bus "
        "error)\n");
    ::_exit(busExitCode);
  }
  // The instruction runs again, and ends as if nobody had asked.
  ::signal(signal, SIG_DFL);
}

} // namespace

void noteMapping(const void *begin, std::size_t sizeBytes,
                 const std::string &path, const struct stat &info) {
  std::lock_guard lock(regionsMutex);
  for (Region &region : regions) {
    if (region.begin != 0 || path.size() >= sizeof region.path)
      continue;
    std::memcpy(region.path, path.c_str(), path.size() + 1);
    region.info = info;
    auto at = reinterpret_cast<std::uintptr_t>(begin);
    region.end = at + sizeBytes;
    region.begin = at;
    return;
  }
}

void forgetMapping(const void *begin) {
  std::lock_guard lock(regionsMutex);
  for (Region &region : regions)
    if (region.begin == reinterpret_cast<std::uintptr_t>(begin))
      region.begin = 0;
}

Status checkMappingUnchanged(const void *address) {
  std::lock_guard lock(regionsMutex);
  const Region *region = regionAt(address);
  struct stat now;
  if (!region || ::stat(region->path, &now) != 0 ||
      now.st_ino != region->info.st_ino || now.st_dev != region->info.st_dev)
    return Status::ok();
  const struct stat &then = region->info;
  if (now.st_size == then.st_size &&
      now.st_mtim.tv_sec == then.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == then.st_mtim.tv_nsec)
    return Status::ok();
  return Status::io(std::string(region->path) +
                    ": was written to after it was opened (" +
                    std::to_string(then.st_size) + " bytes then, " +
                    std::to_string(now.st_size) +
                    " now), so what it says is no longer what was verified; "
                    "start anew, and replace files by rename");
}

void exitOnBusErrors(const char *program, int exitCode) {
  busProgram = program;
  busExitCode = exitCode;
  struct sigaction action{};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace ingot
