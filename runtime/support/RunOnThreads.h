// One piece of work on several threads at once. The work itself hands out what
// is left to do (an atomic counter), so any number of threads finishes it: where
// the system refuses another thread, those that run do all of it.
#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace ingot {

// Calls `work` on the caller's thread and on up to `numThreads` - 1 others;
// returns when all calls have.
template <typename Work> void runOnThreads(unsigned numThreads, Work &&work) {
  std::vector<std::jthread> helpers; // joined on every way out
  try {
    for (unsigned i = 1; i < numThreads; ++i)
      helpers.emplace_back(std::ref(work));
  } catch (const std::system_error &) {
    // At the limit of the process or the machine.
  }
  work();
}

} // namespace ingot
