// A fixed set of workers for launches of some microseconds. A launch is a row
// of items; workers and the caller claim runs of `grain` items from one atomic
// word until none is left, so a worker that the system has put aside delays
// nobody but itself. Between launches workers spin briefly, then sleep.
//
// The word holds (epoch, next item). An odd epoch is open: claiming is one
// compare-and-swap, and its success proves that the launch read before it is
// still the current one. An even epoch is closed: only then does the caller
// write the next launch.
#pragma once

#include "runtime/memory/HostMemory.h"
#include "runtime/plan/KernelAbi.h"
#include "runtime/support/Status.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace ingot {

struct PoolOptions {
  int numWorkers = 1;                      // the caller is worker 0
  std::uint64_t scratchBytesPerWorker = 0; // given to each call of a kernel
  std::vector<int> pinTo; // processor of each worker but the caller; empty: no
};

class WorkerPool {
public:
  static Result<std::unique_ptr<WorkerPool>> create(const PoolOptions &options);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  int numWorkers() const { return int(threads_.size()) + 1; }

  // Calls `kernel` for [0, numItems) in slices of at most max(grain, 1) items,
  // or in one slice where that is all, and returns when all are done. One
  // thread at a time may launch.
  void launch(abi::KernelFn kernel, const void *params, std::int32_t numItems,
              std::int32_t grain);

private:
  WorkerPool() = default;
  void workerLoop(std::int32_t worker);
  bool claimAndRun(std::int32_t worker);
  bool hasWork() const;
  void callKernel(abi::KernelFn kernel, const void *params, std::int32_t begin,
                  std::int32_t end, std::int32_t worker);

  std::vector<std::thread> threads_;
  HostMemory scratch_;
  std::uint64_t scratchBytes_ = 0;

  alignas(64) std::atomic<std::uint64_t> state_{0}; // epoch << 32 | next item
  // The launch of the open epoch.
  alignas(64) std::atomic<abi::KernelFn> kernel_{nullptr};
  std::atomic<const void *> params_{nullptr};
  std::atomic<std::int32_t> numItems_{0};
  std::atomic<std::int32_t> grain_{1};

  alignas(64) std::atomic<std::int32_t> done_{0}; // items finished; a futex
  std::atomic<bool> callerSleeps_{false};
  alignas(64) std::atomic<std::uint32_t> ticket_{0}; // launches so far; a futex
  std::atomic<std::int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
};

} // namespace ingot
