// cp.async: from issue to wait, the target's bytes belong to the copy. They land
// at the issue (eager), at the wait (lazy), or at any point between (random). To
// the shadow the copy is in flight until its own thread has waited; then it is a
// write of that thread, which others may read after a barrier.
#include "test/simt/Block.h"

#include <cstring>

namespace ingot::simt {
namespace {

void land(AsyncCopy &copy) {
  if (copy.hasLanded)
    return;
  copy.hasLanded = true;
  std::memcpy(copy.target, copy.source, std::size_t(copy.sourceBytes));
  std::memset(static_cast<char *>(copy.target) + copy.sourceBytes, 0,
              std::size_t(copy.bytes - copy.sourceBytes));
}

} // namespace

void landRandomCopies(Block &block) {
  if (block.options.async != AsyncMode::Random)
    return;
  Fiber &fiber = *block.current;
  for (auto &group : fiber.groups)
    for (AsyncCopy &copy : group)
      if (block.random() & 1)
        land(copy);
  for (AsyncCopy &copy : fiber.open)
    if (block.random() & 1)
      land(copy);
}

void asyncCopy(void *target, const void *source, int bytes, int sourceBytes,
               const void *pc) {
  Block &block = *running;
  target = accessAddress(target, std::size_t(bytes), pc);
  if ((reinterpret_cast<std::uintptr_t>(target) |
       reinterpret_cast<std::uintptr_t>(source)) &
      std::uintptr_t(bytes - 1))
    misuse("an asynchronous copy whose addresses are not aligned to its size",
           pc);
  if (sourceBytes < 0 || sourceBytes > bytes)
    misuse("an asynchronous copy of more source bytes than its size", pc);
  ++block.report->asyncCopies;
  if (sourceBytes)
    access(source, std::size_t(sourceBytes), false, pc, Mode::AsyncIssue);
  const std::size_t faults = block.report->faults.size();
  access(target, std::size_t(bytes), true, pc, Mode::AsyncIssue);
  if (block.report->faults.size() != faults)
    return; // out of bounds: nothing may be written
  setInFlight(target, std::size_t(bytes), true);
  AsyncCopy copy{target, source, bytes, sourceBytes, false, pc};
  if (block.options.async == AsyncMode::Eager ||
      (block.options.async == AsyncMode::Random && (block.random() & 1)))
    land(copy);
  block.current->open.push_back(copy);
}

void commitAsyncCopies() {
  Fiber &fiber = *running->current;
  fiber.groups.push_back(std::move(fiber.open));
  fiber.open.clear();
  landRandomCopies(*running);
}

void waitAsyncCopies(int pending, const void *pc) {
  if (isPlanted(Plant::WaitTooFew, pc))
    ++pending;
  Fiber &fiber = *running->current;
  while (int(fiber.groups.size()) > pending) {
    for (AsyncCopy &copy : fiber.groups.front()) {
      land(copy);
      setInFlight(copy.target, std::size_t(copy.bytes), false);
      access(copy.target, std::size_t(copy.bytes), true, copy.pc,
             Mode::AsyncLand);
    }
    fiber.groups.erase(fiber.groups.begin());
  }
}

} // namespace ingot::simt
