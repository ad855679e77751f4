// A file that appears under its name complete or not at all: written without a
// name in the folder of its destination, at any offset and from any thread, then
// renamed into place. A process that is killed leaves nothing behind, except on
// file systems without O_TMPFILE, where the file has a hidden name meanwhile.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ingot::package {

class OutputFile {
public:
  // Reserves `sizeBytes` of zeros in the folder of `path`.
  static Result<OutputFile> create(const std::string &path, uint64_t sizeBytes);

  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  // Removes the file unless it was committed.
  ~OutputFile();

  // Thread-safe.
  Status write(uint64_t offset, std::span<const uint8_t> bytes) const;
  // XXH3-64 of a range as it stands in the file.
  Result<uint64_t> checksum(uint64_t offset, uint64_t sizeBytes) const;
  Status commit();

private:
  OutputFile() = default;
  int descriptor_ = -1;
  // Gives a file without a name one beside its destination.
  Status link();

  std::string path_;
  std::string temporaryPath_; // empty: the file has no name
};

// A whole file at once, in place of what `path` or the link there names. What is
// there and is no regular file (a pipe, a device) is written as it is.
Status writeOutputFile(const std::string &path, std::string_view bytes);

// XXH3-64 of `bytes`.
uint64_t xxh3(std::span<const uint8_t> bytes);
// As 16 lower-case hexadecimal digits.
std::string xxh3Text(std::span<const uint8_t> bytes);

} // namespace ingot::package
