// Bytes under a path, for readers that open files: an anonymous file in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace ingot::fuzz {

class MemoryFile {
public:
  MemoryFile(const uint8_t *data, size_t size)
      : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    for (size_t done = 0; descriptor_ >= 0 && done < size;) {
      ssize_t written = write(descriptor_, data + done, size - done);
      if (written <= 0)
        std::abort(); // of the machine, not of the reader
      done += static_cast<size_t>(written);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  std::string path() const {
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

private:
  int descriptor_;
};

} // namespace ingot::fuzz
