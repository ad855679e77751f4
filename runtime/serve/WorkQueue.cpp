#include "runtime/serve/WorkQueue.h"

namespace ingot::serve {

WorkQueue::WorkQueue() : thread_([this] { run(); }) {}

WorkQueue::~WorkQueue() {
  {
    std::lock_guard lock(mutex_);
    isStopping_ = true;
  }
  hasWork_.notify_one();
  thread_.join();
}

void WorkQueue::add(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  hasWork_.notify_one();
}

void WorkQueue::run() {
  for (;;) {
    std::function<void()> next;
    {
      std::unique_lock lock(mutex_);
      hasWork_.wait(lock, [&] { return isStopping_ || !work_.empty(); });
      if (isStopping_)
        return;
      next = std::move(work_.front());
      work_.pop_front();
    }
    next();
  }
}

} // namespace ingot::serve
