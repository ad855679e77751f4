#include "runtime/execute/cpu/HostCpus.h"

#include "runtime/support/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <thread>

namespace ingot {
namespace {

std::optional<std::string> firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  if (!file || !std::getline(file, line))
    return std::nullopt;
  return line;
}

std::optional<double> ratio(const std::string &quota,
                            const std::string &period) {
  std::istringstream quotaText(quota), periodText(period);
  double q = 0, p = 0;
  if (!(quotaText >> q) || !(periodText >> p) || q <= 0 || p <= 0)
    return std::nullopt;
  return q / p;
}

void keepSmaller(std::optional<double> &best, std::optional<double> value) {
  if (value && (!best || *value < *best))
    best = value;
}

} // namespace

std::optional<double> cgroupCpuQuota(const std::string &root) {
  std::optional<double> best;
  forEachControlGroup(root, "cpu",
                      [&](const std::string &folder, bool isVersion2) {
                        if (isVersion2) {
                          std::istringstream fields(
                              firstLine(folder + "/cpu.max").value_or(""));
                          std::string quota, period;
                          fields >> quota >> period;
                          keepSmaller(best, ratio(quota, period));
                          return;
                        }
                        auto quota = firstLine(folder + "/cpu.cfs_quota_us");
                        auto period = firstLine(folder + "/cpu.cfs_period_us");
                        if (quota && period)
                          keepSmaller(best, ratio(*quota, *period));
                      });
  return best;
}

HostCpus detectHostCpus(const std::string &root) {
  HostCpus cpus;
  // The mask is as long as the kernel's, which may pass CPU_SETSIZE.
  for (int size = CPU_SETSIZE; size <= (1 << 20); size *= 2) {
    cpu_set_t *mask = CPU_ALLOC(size);
    std::size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, mask);
    bool read = ::sched_getaffinity(0, bytes, mask) == 0;
    if (read)
      for (int i = 0; i < size; ++i)
        if (CPU_ISSET_S(i, bytes, mask))
          cpus.allowed.push_back(i);
    CPU_FREE(mask);
    if (read)
      break;
  }
  cpus.quota = cgroupCpuQuota(root == "/" ? "" : root);
  return cpus;
}

int HostCpus::threads() const {
  int count = allowed.empty() ? int(std::thread::hardware_concurrency())
                              : int(allowed.size());
  if (quota)
    count = std::min(count, int(*quota));
  return std::max(count, 1);
}

bool HostCpus::shouldPin(int threads) const {
  return threads == int(allowed.size()) &&
         (!quota || *quota >= double(threads));
}

} // namespace ingot
