#include "runtime/memory/HostMemory.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace ingot {

Result<HostMemory> HostMemory::allocate(std::uint64_t sizeBytes,
                                        const std::string &what) {
  HostMemory memory;
  if (sizeBytes == 0)
    return memory;
  void *data = MAP_FAILED;
  if (sizeBytes < (std::uint64_t(1) << 46))
    data = ::mmap(nullptr, sizeBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  else
    errno = ENOMEM;
  if (data == MAP_FAILED)
    return Status::outOfMemory(what + ": cannot take " +
                               std::to_string(sizeBytes) +
                               " bytes: " + std::strerror(errno));
  // Advice only: where the system has no huge pages, small ones serve.
  (void)::madvise(data, sizeBytes, MADV_HUGEPAGE);
  memory.data_ = static_cast<std::uint8_t *>(data);
  memory.sizeBytes_ = sizeBytes;
  return memory;
}

HostMemory::HostMemory(HostMemory &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      sizeBytes_(std::exchange(other.sizeBytes_, 0)) {}

HostMemory &HostMemory::operator=(HostMemory &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(sizeBytes_, other.sizeBytes_);
  return *this;
}

HostMemory::~HostMemory() {
  if (data_)
    ::munmap(data_, sizeBytes_);
}

} // namespace ingot
