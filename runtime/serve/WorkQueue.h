// A few threads that do what is too long for the I/O thread: reading bodies,
// rendering templates, encoding prompts. Clients take turns, and one thread is
// kept for what is small, so that megabytes of one client hold up nobody else.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ingot::serve {

class WorkQueue {
public:
  // Work of more bytes than this is large: all threads but one may do it.
  static constexpr std::size_t kLargeBytes = 64 * 1024;

  // At least one thread; with only one, large work runs on it too.
  WorkQueue(unsigned numThreads, std::size_t maxWaiting);
  ~WorkQueue(); // what has not begun is dropped

  // False: `maxWaiting` wait already. Work of one client begins in the order in
  // which it came, but for small work that passes large work which has no
  // thread; among clients, one with the least under way is next, each in turn.
  [[nodiscard]] bool add(const std::string &client, std::size_t sizeBytes,
                         std::function<void()> work);

private:
  struct Work {
    bool isLarge = false;
    std::function<void()> run;
  };
  struct Client {
    std::string name;
    std::deque<Work> waiting;
    unsigned running = 0;
  };
  using ClientIterator = std::list<Client>::iterator;

  void run();
  // The client and the place in its queue of what may begin now.
  bool choose(ClientIterator &client, std::size_t &index);

  const unsigned numThreads_;
  const std::size_t maxWaiting_;
  std::mutex mutex_;
  std::condition_variable hasWork_;
  std::list<Client> clients_; // with something; the latest to have a turn last
  std::size_t numWaiting_ = 0;
  unsigned numLargeRunning_ = 0;
  bool isStopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace ingot::serve
