// A model of traffic (runtime/execute/cuda/cost) against the trace of a launch.
#pragma once

#include "runtime/execute/cuda/cost/KernelTraffic.h"
#include "test/compiler/kernels/cuda/CudaFixtures.h"

#include <algorithm>
#include <string>

namespace ingot::test {

inline simt::LaunchOptions traced() {
  simt::LaunchOptions options;
  options.trace = true;
  options.check = false;
  return options;
}

// Everything but conflicts within `part` of what was traced.
inline void expectTraced(const cuda::LaunchTraffic &made,
                         const simt::Trace &trace, const std::string &what,
                         double part = 0.03) {
  cuda::Stream seen;
  for (const simt::AllocationTrace &one : trace.allocations) {
    seen.bytesRead += 32.0 * double(one.uniqueRead);
    seen.bytesWritten += 32.0 * double(one.uniqueWritten);
    seen.sectorsRead += double(one.sectorsRead);
    seen.sectorsWritten += double(one.sectorsWritten);
  }
  double conflict = 1;
  for (const simt::SiteTrace &site : trace.sites) {
    if (site.isShared)
      conflict = std::max(conflict, site.conflict());
    else
      (site.isWrite ? seen.idealWritten : seen.idealRead) +=
          double(site.idealSectors);
  }
  cuda::Stream all = made.weights;
  all += made.cache;
  all += made.activations;
  all += made.arrays;
  const std::string where = what + "\n" + trace.text();
  // A sector or two of positions and tokens beside them.
  auto near = [&](double got, double want, const char *name, double least) {
    EXPECT_NEAR(got, want, std::max(part * want, least))
        << name << " of " << where;
  };
  near(all.bytesRead + all.bytesReadBack, seen.bytesRead, "bytes read", 64);
  near(all.bytesWritten, seen.bytesWritten, "bytes written", 32);
  near(all.sectorsRead, seen.sectorsRead, "sectors read", 2);
  near(all.sectorsWritten, seen.sectorsWritten, "sectors written", 1);
  near(all.idealRead, seen.idealRead, "ideal reads", 2);
  near(all.idealWritten, seen.idealWritten, "ideal writes", 1);
  EXPECT_NEAR(made.conflict, conflict, 0.03 * conflict) << where;
}

} // namespace ingot::test
