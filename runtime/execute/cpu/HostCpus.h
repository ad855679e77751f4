// How many threads this process may really use: the processors of its affinity
// mask, cut by the quota of its control group (v1 and v2).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ingot {

struct HostCpus {
  std::vector<int> allowed;    // processor numbers of the affinity mask
  std::optional<double> quota; // processors' worth of time, where limited
  // Threads to start: at least 1.
  int threads() const;
  // Pin only where every thread has a processor of its own; under a quota the
  // kernel's choice is better than ours.
  bool shouldPin(int threads) const;
};

// `root` is "/" but in tests.
HostCpus detectHostCpus(const std::string &root = "/");

// Only the quota, from the files of control groups below `root`.
std::optional<double> cgroupCpuQuota(const std::string &root);

} // namespace ingot
