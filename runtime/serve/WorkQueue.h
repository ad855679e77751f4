// One thread that does what is too long for the I/O thread: reading bodies,
// rendering templates, encoding prompts. Each connection has at most one
// request under way, so the queue is as bounded as they are.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ingot::serve {

class WorkQueue {
public:
  WorkQueue();
  ~WorkQueue(); // what has not begun is dropped

  void add(std::function<void()> work);

private:
  void run();

  std::mutex mutex_;
  std::condition_variable hasWork_;
  std::deque<std::function<void()>> work_;
  bool isStopping_ = false;
  std::thread thread_;
};

} // namespace ingot::serve
