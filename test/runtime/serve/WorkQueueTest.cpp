// Threads that prepare requests: who is next, what passes what, what is refused.
#include "runtime/serve/WorkQueue.h"

#include <gmock/gmock.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <string>
#include <vector>

using namespace ingot::serve;
using ::testing::ElementsAre;

namespace {

constexpr std::size_t kSmall = 10, kLarge = WorkQueue::kLargeBytes + 1;

// Notes the names of what has run, in order.
struct Journal {
  std::mutex mutex;
  std::vector<std::string> names;
  std::function<void()> note(std::string name, std::latch *done = nullptr) {
    return [this, name = std::move(name), done] {
      {
        std::lock_guard lock(mutex);
        names.push_back(name);
      }
      if (done)
        done->count_down();
    };
  }
};

TEST(WorkQueueTest, clientsTakeTurns) {
  Journal journal;
  std::latch begun(1), gate(1), done(6);
  WorkQueue queue(1, 100);
  ASSERT_TRUE(queue.add("a", kSmall, [&] {
    begun.count_down();
    gate.wait();
  }));
  begun.wait();
  for (auto [client, name] : {std::pair("a", "a1"),
                              {"a", "a2"},
                              {"a", "a3"},
                              {"b", "b1"},
                              {"b", "b2"},
                              {"c", "c1"}})
    ASSERT_TRUE(queue.add(client, kSmall, journal.note(name, &done)));
  gate.count_down();
  done.wait();
  EXPECT_THAT(journal.names, ElementsAre("a1", "b1", "c1", "a2", "b2", "a3"));
}

// With two threads one is kept for small work, of the same client too; large
// work goes on when its thread is free.
TEST(WorkQueueTest, smallWorkPassesLarge) {
  Journal journal;
  std::latch begun(1), gate(1), small(1), large(2);
  WorkQueue queue(2, 100);
  ASSERT_TRUE(queue.add("a", kLarge, [&] {
    begun.count_down();
    gate.wait();
  }));
  begun.wait();
  ASSERT_TRUE(queue.add("a", kLarge, journal.note("large1", &large)));
  ASSERT_TRUE(queue.add("a", kLarge, journal.note("large2", &large)));
  ASSERT_TRUE(queue.add("a", kSmall, journal.note("small", &small)));
  small.wait();
  gate.count_down();
  large.wait();
  EXPECT_THAT(journal.names, ElementsAre("small", "large1", "large2"));
}

TEST(WorkQueueTest, whatWaitsIsBounded) {
  std::latch begun(1), gate(1);
  std::atomic<int> ran = 0;
  WorkQueue queue(1, 2);
  ASSERT_TRUE(queue.add("a", kSmall, [&] {
    begun.count_down();
    gate.wait();
  }));
  begun.wait();
  EXPECT_TRUE(queue.add("a", kSmall, [&] { ++ran; }));
  EXPECT_TRUE(queue.add("b", kSmall, [&] { ++ran; }));
  EXPECT_FALSE(queue.add("b", kSmall, [&] { ran += 100; }));
  gate.count_down();
  while (ran < 2)
    std::this_thread::yield();
  EXPECT_TRUE(queue.add("b", kSmall, [&] { ++ran; }));
  while (ran < 3)
    std::this_thread::yield();
}

} // namespace
