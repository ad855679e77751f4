#include "compiler/package/ScratchFolder.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ingot::package {
namespace {

namespace fs = std::filesystem;

constexpr const char *kMark = ".scratch-";

// What a signal removes.
std::mutex registryMutex;
std::set<std::string> registry;

// "NAME.scratch-PID-N".
bool isScratchName(const std::string &name) {
  auto mark = name.rfind(kMark);
  if (mark == std::string::npos)
    return false;
  std::string numbers = name.substr(mark + std::string(kMark).size());
  auto dash = numbers.find('-');
  return dash != std::string::npos && dash > 0 && dash + 1 < numbers.size() &&
         numbers.find('-', dash + 1) == std::string::npos &&
         numbers.find_first_not_of("0123456789-") == std::string::npos;
}

// Opens a folder of ours and locks it; -1 where it is none, the system does not
// lock folders, or, which is told apart, another holds or has removed it.
int lockFolder(const std::string &path, bool &isTaken) {
  isTaken = true;
  int folder =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0)
    return -1;
  if (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
    isTaken = errno == EWOULDBLOCK;
    ::close(folder);
    return -1;
  }
  // The name may be another's by now.
  struct stat held, named;
  if (::fstat(folder, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
      held.st_ino == named.st_ino && held.st_dev == named.st_dev &&
      held.st_uid == ::geteuid())
    return folder;
  ::close(folder);
  return -1;
}

void removeStale(const fs::path &parent) {
  std::error_code error;
  for (fs::directory_iterator each(parent, error), end; !error && each != end;
       each.increment(error)) {
    std::string path = each->path().string();
    if (!isScratchName(each->path().filename().string()))
      continue;
    bool isTaken = false;
    int lock = lockFolder(path, isTaken);
    if (lock < 0)
      continue;
    std::error_code ignored;
    fs::remove_all(path, ignored);
    ::close(lock);
  }
}

// While other threads may still write into them.
void removeRegistered() {
  std::lock_guard lock(registryMutex);
  for (const std::string &path : registry)
    for (int attempt = 0; attempt < 5; ++attempt) {
      std::error_code error;
      fs::remove_all(path, error);
      if (!error && !fs::exists(path, error))
        break;
    }
}

} // namespace

ScratchFolder::ScratchFolder(const std::string &path) {
  static std::atomic<unsigned> count{0};
  fs::path parent = fs::path(path).parent_path();
  removeStale(parent.empty() ? "." : parent);
  // Between making and locking, another may take it for left behind.
  for (int attempt = 0; attempt < 100 && !isMade_; ++attempt) {
    folder_ = path + kMark + std::to_string(::getpid()) + "-" +
              std::to_string(count++);
    if (::mkdir(folder_.c_str(), 0700) != 0) {
      if (errno != EEXIST)
        return;
      continue;
    }
    bool isTaken = false;
    lock_ = lockFolder(folder_, isTaken);
    isMade_ = lock_ >= 0 || !isTaken;
  }
  std::lock_guard lock(registryMutex);
  registry.insert(folder_);
}

ScratchFolder::~ScratchFolder() {
  {
    std::lock_guard lock(registryMutex);
    registry.erase(folder_);
  }
  if (!isMade_)
    return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  if (lock_ >= 0)
    ::close(lock_);
}

void removeScratchOnSignals() {
  sigset_t awaited;
  sigemptyset(&awaited);
  for (int which : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction now;
    if (::sigaction(which, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
      sigaddset(&awaited, which);
  }
  // Every later thread inherits the mask, so only the one below is told.
  ::pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
  std::thread([awaited] {
    int which = 0;
    while (::sigwait(&awaited, &which) != 0)
      ;
    removeRegistered();
    ::pthread_sigmask(SIG_UNBLOCK, &awaited, nullptr);
    ::raise(which);
  }).detach();
}

} // namespace ingot::package
