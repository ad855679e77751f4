// Kernels by name: the host builds of the texts that NVRTC compiles, run by the
// emulator. Objects of kernels register themselves when a program starts.
#pragma once

#include <cstddef>

namespace ingot::simt {

struct KernelEntry {
  const char *name;
  void (*run)(const void *params); // of one thread
};

class KernelTable {
public:
  explicit KernelTable(const KernelEntry *entries, std::size_t count);
  // Null where no object of this program holds the kernel.
  static const KernelEntry *find(const char *name);
};

} // namespace ingot::simt
