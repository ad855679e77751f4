#include "runtime/memory/StateMemory.h"

#include "runtime/memory/HostMemory.h"

#include <cstring>

namespace ingot {
namespace {

class HostState final : public StateMemory {
public:
  explicit HostState(HostMemory memory) : memory_(std::move(memory)) {}

  std::uint8_t *data() const override { return memory_.data(); }
  void copy(std::uint64_t to, std::uint64_t from,
            std::uint64_t bytes) override {
    std::memcpy(memory_.data() + to, memory_.data() + from, bytes);
  }
  void fill(std::uint64_t at, std::uint64_t bytes,
            std::uint16_t word) override {
    for (std::uint64_t i = 0; i + 1 < bytes; i += 2)
      std::memcpy(memory_.data() + at + i, &word, sizeof word);
  }

private:
  HostMemory memory_;
};

} // namespace

Result<std::unique_ptr<StateMemory>> makeHostState(std::uint64_t sizeBytes,
                                                   const std::string &what) {
  INGOT_ASSIGN_OR_RETURN(HostMemory memory,
                         HostMemory::allocate(sizeBytes, what));
  return std::unique_ptr<StateMemory>(
      std::make_unique<HostState>(std::move(memory)));
}

} // namespace ingot
