#include "runtime/execute/cpu/WorkerPool.h"

#include "runtime/execute/cpu/FloatMode.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace ingot {
namespace {

// Some tens of microseconds: longer than the gap between launches of a step,
// shorter than anybody notices.
constexpr int kSpins = 1500;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futexWait(const void *word, std::uint32_t expected) {
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futexWake(const void *word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void pinThisThread(int processor) {
  std::size_t bytes = CPU_ALLOC_SIZE(processor + 1);
  cpu_set_t *mask = CPU_ALLOC(processor + 1);
  CPU_ZERO_S(bytes, mask);
  CPU_SET_S(processor, bytes, mask);
  // A processor may have gone offline since it was listed; unpinned is slower
  // and as correct.
  (void)::sched_setaffinity(0, bytes, mask);
  CPU_FREE(mask);
}

// For who looks at the process from outside.
void nameThisThread(std::int32_t worker) {
  char name[16]; // as much as the system keeps
  std::snprintf(name, sizeof name, "ingot-worker-%d", int(worker));
  (void)::pthread_setname_np(::pthread_self(), name);
}

bool isOpen(std::uint64_t state) { return (state >> 32) & 1; }
std::int32_t nextItem(std::uint64_t state) {
  return std::int32_t(std::uint32_t(state));
}

} // namespace

Result<std::unique_ptr<WorkerPool>>
WorkerPool::create(const PoolOptions &options) {
  if (options.numWorkers < 1 || options.numWorkers > 1024)
    return Status::invalid("threads is " + std::to_string(options.numWorkers) +
                           ", expected 1 to 1024");
  std::unique_ptr<WorkerPool> pool(new WorkerPool());
  pool->scratchBytes_ = (options.scratchBytesPerWorker + 63) / 64 * 64;
  INGOT_ASSIGN_OR_RETURN(
      pool->scratch_,
      HostMemory::allocate(pool->scratchBytes_ *
                               std::uint64_t(options.numWorkers),
                           "scratch of the workers"));
  try {
    for (std::int32_t worker = 1; worker < options.numWorkers; ++worker) {
      int processor =
          options.pinTo.empty()
              ? -1
              : options.pinTo[std::size_t(worker - 1) % options.pinTo.size()];
      pool->threads_.emplace_back([self = pool.get(), worker, processor] {
        nameThisThread(worker);
        if (processor >= 0)
          pinThisThread(processor);
        self->workerLoop(worker);
      });
    }
  } catch (const std::system_error &error) {
    return Status::io(std::string("cannot start a worker thread: ") +
                      error.what());
  }
  return pool;
}

WorkerPool::~WorkerPool() {
  stop_.store(true);
  ticket_.fetch_add(1);
  futexWake(&ticket_);
  for (std::thread &thread : threads_)
    thread.join();
}

void WorkerPool::callKernel(abi::KernelFn kernel, const void *params,
                            std::int32_t begin, std::int32_t end,
                            std::int32_t worker) {
  abi::Slice slice{begin, end, worker, 0,
                   scratch_.data()
                       ? scratch_.data() + scratchBytes_ * std::uint64_t(worker)
                       : nullptr};
  kernel(params, &slice);
}

bool WorkerPool::hasWork() const {
  std::uint64_t state = state_.load(std::memory_order_seq_cst);
  return isOpen(state) &&
         nextItem(state) < numItems_.load(std::memory_order_acquire);
}

bool WorkerPool::claimAndRun(std::int32_t worker) {
  std::uint64_t state = state_.load(std::memory_order_acquire);
  for (;;) {
    if (!isOpen(state))
      return false;
    // Acquire on each: a value of a later launch would make the swap fail.
    auto kernel = kernel_.load(std::memory_order_acquire);
    auto params = params_.load(std::memory_order_acquire);
    std::int32_t numItems = numItems_.load(std::memory_order_acquire);
    std::int32_t grain = grain_.load(std::memory_order_acquire);
    std::int32_t begin = nextItem(state);
    if (begin >= numItems)
      return false;
    std::int32_t end = std::int32_t(
        std::min<std::int64_t>(std::int64_t(begin) + grain, numItems));
    if (!state_.compare_exchange_weak(state, state + std::uint64_t(end - begin),
                                      std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    callKernel(kernel, params, begin, end, worker);
    std::int32_t finished = done_.fetch_add(end - begin) + (end - begin);
    if (finished == numItems && callerSleeps_.load())
      futexWake(&done_);
    return true;
  }
}

void WorkerPool::workerLoop(std::int32_t worker) {
  FloatModeScope mode;
  int spins = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (claimAndRun(worker)) {
      spins = 0;
      continue;
    }
    if (++spins < kSpins) {
      relax();
      continue;
    }
    sleepers_.fetch_add(1);
    std::uint32_t ticket = ticket_.load();
    if (!stop_.load() && !hasWork())
      futexWait(&ticket_, ticket);
    sleepers_.fetch_sub(1);
    spins = 0;
  }
}

void WorkerPool::launch(abi::KernelFn kernel, const void *params,
                        std::int32_t numItems, std::int32_t grain) {
  if (numItems <= 0)
    return;
  grain = std::max(grain, 1);
  if (threads_.empty() || numItems <= grain) {
    callKernel(kernel, params, 0, numItems, 0);
    return;
  }
  kernel_.store(kernel, std::memory_order_release);
  params_.store(params, std::memory_order_release);
  numItems_.store(numItems, std::memory_order_release);
  grain_.store(grain, std::memory_order_release);
  done_.store(0, std::memory_order_release);
  std::uint64_t epoch = (state_.load(std::memory_order_relaxed) >> 32) + 1;
  state_.store(epoch << 32);
  ticket_.fetch_add(1);
  if (sleepers_.load() > 0)
    futexWake(&ticket_);

  while (claimAndRun(0)) {
  }
  int spins = 0;
  for (;;) {
    std::int32_t finished = done_.load();
    if (finished == numItems)
      break;
    if (++spins < kSpins) {
      relax();
      continue;
    }
    callerSleeps_.store(true);
    finished = done_.load();
    if (finished != numItems)
      futexWait(&done_, std::uint32_t(finished));
    callerSleeps_.store(false);
  }
  state_.store(((epoch + 1) & 0xffffffffu) << 32);
}

} // namespace ingot
