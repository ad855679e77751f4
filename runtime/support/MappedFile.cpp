#include "runtime/support/MappedFile.h"

#include "runtime/support/MappedFiles.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace ingot {

Result<MappedFile> MappedFile::open(const std::string &path) {
  // A named pipe without a writer would block without O_NONBLOCK.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
    return Status::notFound(path + ": cannot open: " + std::strerror(errno));
  if (fd < 0)
    return Status::io(path + ": cannot open: " + std::strerror(errno));
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    Status status = Status::io(path + ": cannot stat: " + std::strerror(errno));
    ::close(fd);
    return status;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return Status::invalid(path + ": expected a regular file");
  }
  MappedFile file;
  file.path_ = path;
  file.sizeBytes_ = static_cast<std::size_t>(info.st_size);
  if (file.sizeBytes_ > 0) {
    void *data =
        ::mmap(nullptr, file.sizeBytes_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      Status status =
          Status::io(path + ": cannot map: " + std::strerror(errno));
      file.sizeBytes_ = 0;
      ::close(fd);
      return status;
    }
    file.data_ = data;
    noteMapping(data, file.sizeBytes_, path, info);
  }
  ::close(fd);
  return file;
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      sizeBytes_(std::exchange(other.sizeBytes_, 0)),
      path_(std::move(other.path_)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(sizeBytes_, other.sizeBytes_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!data_)
    return;
  forgetMapping(data_);
  ::munmap(const_cast<void *>(data_), sizeBytes_);
}

} // namespace ingot
