// Memory taken from the system in one piece: page-aligned, zeroed, with huge
// pages asked for. Everything the runtime uses while serving comes from a few
// of these, taken at the start.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ingot {

class HostMemory {
public:
  // `what` names the use in the error ("KV cache").
  static Result<HostMemory> allocate(std::uint64_t sizeBytes,
                                     const std::string &what);

  HostMemory() = default;
  HostMemory(HostMemory &&other) noexcept;
  HostMemory &operator=(HostMemory &&other) noexcept;
  HostMemory(const HostMemory &) = delete;
  HostMemory &operator=(const HostMemory &) = delete;
  ~HostMemory();

  std::uint8_t *data() const { return data_; }
  std::uint64_t sizeBytes() const { return sizeBytes_; }

private:
  std::uint8_t *data_ = nullptr;
  std::uint64_t sizeBytes_ = 0;
};

} // namespace ingot
