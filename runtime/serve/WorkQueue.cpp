#include "runtime/serve/WorkQueue.h"

#include <algorithm>

namespace ingot::serve {

WorkQueue::WorkQueue(unsigned numThreads, std::size_t maxWaiting)
    : numThreads_(std::max(numThreads, 1u)), maxWaiting_(maxWaiting) {
  threads_.reserve(numThreads_);
  for (unsigned i = 0; i < numThreads_; ++i)
    threads_.emplace_back([this] { run(); });
}

WorkQueue::~WorkQueue() {
  {
    std::lock_guard lock(mutex_);
    isStopping_ = true;
  }
  hasWork_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
}

bool WorkQueue::add(const std::string &client, std::size_t sizeBytes,
                    std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (numWaiting_ >= maxWaiting_)
      return false;
    auto found =
        std::find_if(clients_.begin(), clients_.end(),
                     [&](const Client &each) { return each.name == client; });
    if (found == clients_.end())
      found = clients_.insert(clients_.end(), Client{client, {}, 0});
    found->waiting.push_back({sizeBytes > kLargeBytes, std::move(work)});
    ++numWaiting_;
  }
  hasWork_.notify_one();
  return true;
}

bool WorkQueue::choose(ClientIterator &client, std::size_t &index) {
  bool hasRoomForLarge = numThreads_ == 1 || numLargeRunning_ + 1 < numThreads_;
  bool isFound = false;
  for (auto each = clients_.begin(); each != clients_.end(); ++each) {
    if (isFound && each->running >= client->running)
      continue;
    auto work = std::find_if(
        each->waiting.begin(), each->waiting.end(),
        [&](const Work &one) { return hasRoomForLarge || !one.isLarge; });
    if (work == each->waiting.end())
      continue;
    isFound = true;
    client = each;
    index = std::size_t(work - each->waiting.begin());
  }
  return isFound;
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ClientIterator client;
    std::size_t index = 0;
    hasWork_.wait(lock, [&] { return isStopping_ || choose(client, index); });
    if (isStopping_)
      return;
    auto place = client->waiting.begin() + std::ptrdiff_t(index);
    Work next = std::move(*place);
    client->waiting.erase(place);
    --numWaiting_;
    ++client->running;
    numLargeRunning_ += next.isLarge;
    clients_.splice(clients_.end(), clients_, client);
    lock.unlock();
    next.run();
    next.run = nullptr; // what it holds goes before the lock is taken
    lock.lock();
    numLargeRunning_ -= next.isLarge;
    if (--client->running == 0 && client->waiting.empty())
      clients_.erase(client);
    // Large work that had no thread may have one now.
    if (next.isLarge)
      hasWork_.notify_one();
  }
}

} // namespace ingot::serve
