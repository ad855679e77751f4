// A whole file mapped read-only. Pages are shared with the page cache, so a
// mapped model costs no anonymous memory.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ingot {

class MappedFile {
public:
  // Fails with IoError naming the path. An empty file maps to an empty span.
  // Refuses what is not a regular file.
  static Result<MappedFile> open(const std::string &path);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  std::span<const std::uint8_t> bytes() const {
    return {static_cast<const std::uint8_t *>(data_), sizeBytes_};
  }
  const std::string &path() const { return path_; }

private:
  const void *data_ = nullptr;
  std::size_t sizeBytes_ = 0;
  std::string path_;
};

} // namespace ingot
