#include "compiler/package/OutputFile.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

namespace ingot::package {
namespace {

Status systemError(const std::string &path, const char *what) {
  return Status::io(path + ": " + what + ": " + std::strerror(errno));
}

// The name that a file has beside its destination, in the form of mkostemp.
constexpr const char *kTemporaryName = ".ingot-XXXXXX";

// With its last slash; empty for a path without one.
std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string descriptorPath(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

} // namespace

uint64_t xxh3(std::span<const uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string xxh3Text(std::span<const uint8_t> bytes) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(xxh3(bytes)));
  return text;
}

Result<OutputFile> OutputFile::create(const std::string &path,
                                      uint64_t sizeBytes) {
  OutputFile file;
  file.path_ = path;
  struct stat existing;
  if (::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
    return Status::io(path + ": exists and is not a regular file");
  const std::string folder = folderOf(path);
  if (path.size() - folder.size() > NAME_MAX) {
    errno = ENAMETOOLONG;
    return systemError(path, "cannot create a file in its folder");
  }
  file.descriptor_ = ::open(folder.empty() ? "." : folder.c_str(),
                            O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  // It gets its name through /proc, which a container may lack.
  if (file.descriptor_ >= 0 &&
      ::access(descriptorPath(file.descriptor_).c_str(), F_OK) != 0) {
    ::close(file.descriptor_);
    file.descriptor_ = -1;
  }
  if (file.descriptor_ < 0) {
    file.temporaryPath_ = folder + kTemporaryName;
    file.descriptor_ = ::mkostemp(file.temporaryPath_.data(), O_CLOEXEC);
  }
  if (file.descriptor_ < 0)
    return systemError(path, "cannot create a file in its folder");
  // Takes the space now, so that a full disk is found before the work.
  if (sizeBytes != 0) {
    int error = ::posix_fallocate(file.descriptor_, 0, off_t(sizeBytes));
    if (error != 0) {
      errno = error;
      return systemError(
          path,
          ("cannot reserve " + std::to_string(sizeBytes) + " bytes").c_str());
    }
  }
  return file;
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : descriptor_(other.descriptor_), path_(std::move(other.path_)),
      temporaryPath_(std::move(other.temporaryPath_)) {
  other.descriptor_ = -1;
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0)
    return;
  ::close(descriptor_);
  if (!temporaryPath_.empty())
    ::unlink(temporaryPath_.c_str());
}

Status OutputFile::write(uint64_t offset,
                         std::span<const uint8_t> bytes) const {
  while (!bytes.empty()) {
    ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), off_t(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return systemError(path_, "cannot write");
    offset += uint64_t(written);
    bytes = bytes.subspan(size_t(written));
  }
  return Status::ok();
}

Result<uint64_t> OutputFile::checksum(uint64_t offset,
                                      uint64_t sizeBytes) const {
  std::vector<uint8_t> buffer(std::min<uint64_t>(sizeBytes, uint64_t(1) << 20));
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), &XXH3_freeState);
  if (!state || XXH3_64bits_reset(state.get()) != XXH_OK)
    return Status::outOfMemory(path_ + ": no memory for a checksum");
  while (sizeBytes != 0) {
    ssize_t count =
        ::pread(descriptor_, buffer.data(),
                std::min<uint64_t>(sizeBytes, buffer.size()), off_t(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return systemError(path_, "cannot read back");
    XXH3_64bits_update(state.get(), buffer.data(), size_t(count));
    offset += uint64_t(count);
    sizeBytes -= uint64_t(count);
  }
  return uint64_t(XXH3_64bits_digest(state.get()));
}

// A link cannot replace what is there, so the name is one of its own, taken for
// the moment until the rename.
Status OutputFile::link() {
  std::string name = folderOf(path_) + kTemporaryName;
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string taken = name;
    int place = ::mkostemp(taken.data(), O_CLOEXEC);
    if (place < 0)
      break;
    ::close(place);
    ::unlink(taken.c_str());
    if (::linkat(AT_FDCWD, descriptorPath(descriptor_).c_str(), AT_FDCWD,
                 taken.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporaryPath_ = std::move(taken);
      return Status::ok();
    }
    if (errno != EEXIST)
      break;
  }
  return systemError(path_, "cannot name the file");
}

Status OutputFile::commit() {
  mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(descriptor_, 0666 & ~mask) != 0 || ::fsync(descriptor_) != 0)
    return systemError(path_, "cannot finish");
  if (temporaryPath_.empty())
    INGOT_RETURN_IF_ERROR(link());
  if (::rename(temporaryPath_.c_str(), path_.c_str()) != 0)
    return systemError(path_, "cannot rename into place");
  ::close(descriptor_);
  descriptor_ = -1;
  return Status::ok();
}

// A device or a pipe has no name to be whole under.
static Status writeThrough(int descriptor, const std::string &path,
                           std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return systemError(path, "cannot write");
    bytes.remove_prefix(size_t(written));
  }
  return Status::ok();
}

Status writeOutputFile(const std::string &path, std::string_view bytes) {
  struct stat existing;
  std::string destination = path;
  if (::stat(path.c_str(), &existing) == 0) {
    // What a shell has opened for the program (/dev/stdout) is not replaced
    // under it.
    for (int stream : {STDOUT_FILENO, STDERR_FILENO})
      if (struct stat open; ::fstat(stream, &open) == 0 &&
                            open.st_ino == existing.st_ino &&
                            open.st_dev == existing.st_dev)
        return writeThrough(stream, path, bytes);
    if (!S_ISREG(existing.st_mode) && !S_ISDIR(existing.st_mode)) {
      int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (descriptor < 0)
        return systemError(path, "cannot open");
      Status status = writeThrough(descriptor, path, bytes);
      ::close(descriptor);
      return status;
    }
    std::unique_ptr<char, decltype(&std::free)> real(
        ::realpath(path.c_str(), nullptr), std::free);
    if (real)
      destination = real.get();
  }
  INGOT_ASSIGN_OR_RETURN(OutputFile file,
                         OutputFile::create(destination, bytes.size()));
  INGOT_RETURN_IF_ERROR(file.write(
      0, {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()}));
  return file.commit();
}

} // namespace ingot::package
