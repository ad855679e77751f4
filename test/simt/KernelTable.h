// Kernels by name: the host builds of the texts that NVRTC compiles, run by the
// emulator. Objects of kernels register themselves when a program starts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::simt {

struct KernelEntry {
  const char *name;
  std::uint64_t textHash; // of the very text that NVRTC compiles
  std::size_t paramsBytes;
  void (*run)(const void *params); // of one thread
};

class KernelTable {
public:
  explicit KernelTable(const KernelEntry *entries, std::size_t count);
  // Null where no object of this program holds the kernel.
  static const KernelEntry *find(const char *name);
  // The same, of that very text.
  static const KernelEntry *find(const char *name, std::uint64_t textHash);
};

} // namespace ingot::simt
