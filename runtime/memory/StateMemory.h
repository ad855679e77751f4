// Where the blocks of a cache lie: in memory of the host, or of a device. The cache
// only copies and fills whole ranges; what is in them is the executor's business.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ingot {

class StateMemory {
public:
  virtual ~StateMemory() = default;
  // Of the first byte: an address of the host, or one of the device's that only
  // its executor can follow.
  virtual std::uint8_t *data() const = 0;
  // `bytes` from `from` on to `to`, offsets into the memory. Ordered like the steps
  // of the executor; what fails on a device fails its next step.
  virtual void copy(std::uint64_t to, std::uint64_t from,
                    std::uint64_t bytes) = 0;
  // Each pair of bytes from `at` on becomes `word`; `bytes` is even.
  virtual void fill(std::uint64_t at, std::uint64_t bytes,
                    std::uint16_t word) = 0;
};

// Takes `sizeBytes`; `what` names the use in the error.
using StateMemoryMaker = std::function<Result<std::unique_ptr<StateMemory>>(
    std::uint64_t sizeBytes, const std::string &what)>;

// Memory of the host.
Result<std::unique_ptr<StateMemory>> makeHostState(std::uint64_t sizeBytes,
                                                   const std::string &what);

} // namespace ingot
