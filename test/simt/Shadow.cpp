// Shadow memory: for every byte of shared memory and of writable device memory,
// who wrote and who read it last, and when.
//
// Two accesses of different threads of a block are ordered when a barrier lies
// between them (another epoch) or, in one warp, when a __syncwarp does (clocks).
// Accesses of different blocks of one launch are never ordered. An unordered pair
// of which one writes is a race, unless both are atomic. Whatever was not written
// in the block (shared) or by anyone (device) is uninitialised.
#include "test/simt/Block.h"
#include "test/simt/Tracer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ingot::simt {
namespace {

void *reserve(std::size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    std::abort();
  return memory;
}

const char *nameOf(Mode mode, bool isWrite) {
  switch (mode) {
  case Mode::AsyncIssue:
  case Mode::AsyncLand:
    return isWrite ? "asynchronous copy" : "read of an asynchronous copy";
  case Mode::Atomic:
    return "atomic operation";
  case Mode::Plain:
    break;
  }
  return isWrite ? "write" : "read";
}

// Judges and records accesses of the current thread to a run of cells.
class Checker {
public:
  Checker(Block &block, bool isWrite, bool isShared, const void *pc, Mode mode)
      : block_(block), context_(block.current->context),
        warp_(block.warps[context_.warp]),
        clock_(warp_.clocks[context_.lane][context_.lane]), isWrite_(isWrite),
        isShared_(isShared), pc_(pc), mode_(mode) {}

  void run(Cell *cells, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      if (!visit(cells[i]))
        return; // one report an access
  }

private:
  bool isOrdered(std::uint16_t thread, std::uint32_t clock) const {
    if (thread == context_.linear)
      return true;
    return thread / kWarpLanes == context_.warp &&
           warp_.clocks[context_.lane][thread % kWarpLanes] >= clock;
  }
  bool isOtherBlock(std::uint32_t epoch) const {
    return epoch >= block_.launchEpoch && epoch < block_.blockEpoch;
  }

  bool race(const char *other, int thread) {
    char text[160];
    if (thread < 0)
      std::snprintf(text, sizeof text,
                    "%s memory: %s by thread %d against a %s of another block",
                    isShared_ ? "shared" : "device", nameOf(mode_, isWrite_),
                    context_.linear, other);
    else
      std::snprintf(text, sizeof text,
                    "%s memory: %s by thread %d against the %s of thread %d",
                    isShared_ ? "shared" : "device", nameOf(mode_, isWrite_),
                    context_.linear, other, thread);
    fault(FaultKind::Race, pc_, text);
    return false;
  }

  bool visit(Cell &cell) {
    if (cell.inFlight && mode_ != Mode::AsyncLand)
      return race("asynchronous copy that may be in flight", cell.writer);
    const bool bothAtomic = mode_ == Mode::Atomic && cell.isAtomic;
    if (!bothAtomic && mode_ != Mode::AsyncLand) {
      if (!isShared_ && isOtherBlock(cell.writeEpoch))
        return race(cell.isAtomic ? "atomic operation" : "write", -1);
      if (cell.writeEpoch == block_.epoch &&
          !isOrdered(cell.writer, cell.writeClock)) {
        const int other = cell.writer;
        cell.writer = std::uint16_t(context_.linear);
        return race(cell.isAtomic ? "atomic operation" : "write", other);
      }
    }
    if (isWrite_) {
      if (mode_ != Mode::AsyncLand) {
        if (!isShared_ && (isOtherBlock(cell.readEpoch) ||
                           cell.foreignRead == block_.launchEpoch))
          return race("read", -1);
        if (cell.readEpoch == block_.epoch)
          for (int i = 0; i < 2; ++i)
            if (!isOrdered(cell.readers[i], cell.readClock[i])) {
              const int other = cell.readers[i];
              cell.readEpoch = 0;
              return race("read", other);
            }
      }
      if (mode_ == Mode::Atomic && !isInitialised(cell))
        return uninitialised();
      cell.writeEpoch = block_.epoch;
      cell.writer = std::uint16_t(context_.linear);
      cell.writeClock = clock_;
      cell.isAtomic = mode_ == Mode::Atomic;
      return true;
    }
    if (!isInitialised(cell))
      return uninitialised();
    recordRead(cell);
    return true;
  }

  bool isInitialised(const Cell &cell) const {
    return cell.writeEpoch >= (isShared_ ? block_.blockEpoch : 1);
  }
  bool uninitialised() {
    char text[96];
    std::snprintf(text, sizeof text,
                  "%s memory: thread %d reads what nobody wrote",
                  isShared_ ? "shared" : "device", context_.linear);
    fault(FaultKind::Uninitialised, pc_, text);
    return false;
  }
  // Two readers are kept: the first of an epoch and the latest other one.
  void recordRead(Cell &cell) {
    if (!isShared_ && isOtherBlock(cell.readEpoch))
      cell.foreignRead = block_.launchEpoch;
    const auto thread = std::uint16_t(context_.linear);
    if (cell.readEpoch != block_.epoch) {
      cell.readEpoch = block_.epoch;
      cell.readers[0] = cell.readers[1] = thread;
      cell.readClock[0] = cell.readClock[1] = clock_;
    } else if (cell.readers[0] == thread) {
      cell.readClock[0] = clock_;
    } else {
      cell.readers[1] = thread;
      cell.readClock[1] = clock_;
    }
  }

  Block &block_;
  const ThreadContext &context_;
  const Warp &warp_;
  const std::uint32_t clock_;
  const bool isWrite_, isShared_;
  const void *pc_;
  const Mode mode_;
};

void outOfBounds(const char *space, std::size_t bytes, bool isWrite,
                 const void *pc) {
  char text[128];
  std::snprintf(text, sizeof text,
                "%s memory: thread %d %s %zu bytes outside every allocation",
                space, currentThread->linear, isWrite ? "writes" : "reads",
                bytes);
  fault(FaultKind::OutOfBounds, pc, text);
}

} // namespace

Heap &heap() {
  static Heap *instance = [] {
    auto *created = new Heap;
    created->base = static_cast<char *>(reserve(kHeapBytes));
    created->cells = static_cast<Cell *>(reserve(kHeapBytes * sizeof(Cell)));
    return created;
  }();
  return *instance;
}

const Extent *findAllocation(std::uintptr_t address, std::size_t bytes) {
  const auto &extents = heap().extents;
  auto after = std::upper_bound(extents.begin(), extents.end(), address,
                                [](std::uintptr_t at, const Extent &extent) {
                                  return at < extent.begin;
                                });
  if (after == extents.begin() || !(after - 1)->contains(address, bytes))
    return nullptr;
  return &*(after - 1);
}

void setInFlight(const void *address, std::size_t bytes, bool inFlight) {
  Block &block = *running;
  std::size_t at =
      std::size_t(static_cast<const unsigned char *>(address) - block.arena);
  if (!block.options.check || at + bytes > kArenaBytes)
    return;
  for (std::size_t i = 0; i < bytes; ++i)
    block.arenaCells[at + i].inFlight = inFlight;
}

void access(const void *pointer, std::size_t bytes, bool isWrite,
            const void *pc, Mode mode) {
  Block *block = running;
  if (!block || !currentThread || block->isBusy)
    return;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::size_t inArena =
      address - reinterpret_cast<std::uintptr_t>(block->arena);
  const std::size_t inHeap =
      address - reinterpret_cast<std::uintptr_t>(heap().base);
  block->isBusy = true;
  if (inArena < kArenaBytes) {
    bool isInside = false;
    for (const Extent &extent : block->extents)
      isInside = isInside || extent.contains(address, bytes);
    if (!isInside) {
      outOfBounds("shared", bytes, isWrite, pc);
    } else {
      if (block->options.check)
        Checker(*block, isWrite, true, pc, mode)
            .run(&block->arenaCells[inArena], bytes);
      if (block->tracer && mode != Mode::AsyncLand)
        block->tracer->note(address, bytes, isWrite, nullptr, pc);
    }
  } else if (inHeap < kHeapBytes) {
    const Extent *allocation = findAllocation(address, bytes);
    if (!allocation) {
      outOfBounds("device", bytes, isWrite, pc);
    } else {
      if (allocation->isReadOnly && isWrite)
        misuse("a kernel writes into read-only memory", pc);
      if (block->options.check && allocation->hasShadow)
        Checker(*block, isWrite, false, pc, mode)
            .run(&heap().cells[inHeap], bytes);
      if (block->tracer && mode != Mode::AsyncLand)
        block->tracer->note(address, bytes, isWrite, allocation, pc);
    }
  } else {
    block->isBusy = false;
    return;
  }
  block->isBusy = false;
  if (block->options.switchOdds && mode != Mode::AsyncLand &&
      block->random() % block->options.switchOdds == 0)
    giveWay();
}

void noteAccess(const void *address, std::size_t bytes, bool isWrite,
                const void *pc) {
  access(address, bytes, isWrite, pc);
}

void *accessAddress(const void *address, std::size_t bytes, const void *pc) {
  auto *at = static_cast<unsigned char *>(const_cast<void *>(address));
  if (std::size_t(at - running->arena) < kArenaBytes &&
      isPlanted(Plant::ShiftShared, pc))
    return at + bytes;
  return at;
}

void noteAtomic(const void *address, std::size_t bytes, const void *pc) {
  access(address, bytes, true, pc, Mode::Atomic);
}

void *carveShared(std::size_t bytes, std::size_t align) {
  Block &block = *running;
  Fiber &fiber = *block.current;
  const unsigned index = fiber.numCarved++;
  if (index < block.extents.size()) {
    const Extent &extent = block.extents[index];
    if (extent.end - extent.begin != bytes)
      misuse("threads of a block carve different pieces of shared memory",
             nullptr);
    return reinterpret_cast<void *>(extent.begin);
  }
  block.carved = (block.carved + align - 1) / align * align + bytes;
  if (block.carved > block.sharedBytes)
    misuse("the pieces of shared memory exceed what the launch asked for",
           nullptr);
  const std::size_t begin = (block.arenaTop + 127) / 128 * 128;
  block.arenaTop = begin + bytes + kRedZone;
  if (block.arenaTop > kArenaBytes)
    std::abort();
  std::memset(block.arena + begin, 0xff, bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(block.arena) + begin;
  if (block.options.check)
    std::fill_n(block.arenaCells.begin() + long(begin), bytes, Cell());
  block.extents.push_back({address, address + bytes});
  return reinterpret_cast<void *>(address);
}

// ---- device memory ----
void *allocate(std::size_t bytes, Access mode) {
  constexpr std::size_t kZone = 256;
  Heap &heap = simt::heap();
  // First fit between the allocations that live.
  std::size_t begin = kZone;
  std::size_t at = 0;
  for (; at < heap.extents.size(); ++at) {
    const std::size_t used =
        heap.extents[at].begin - reinterpret_cast<std::uintptr_t>(heap.base);
    if (begin + bytes + kZone <= used)
      break;
    begin = (heap.extents[at].end -
             reinterpret_cast<std::uintptr_t>(heap.base) + 2 * kZone - 1) /
            kZone * kZone;
  }
  if (begin + bytes + kZone > kHeapBytes)
    std::abort();
  const auto address = reinterpret_cast<std::uintptr_t>(heap.base) + begin;
  heap.extents.insert(heap.extents.begin() + long(at),
                      {address, address + bytes, mode == Access::ReadOnly,
                       mode == Access::ReadWrite});
  std::memset(heap.base + begin, 0xff, bytes);
  if (mode == Access::ReadWrite)
    std::fill_n(heap.cells + begin, bytes, Cell());
  return reinterpret_cast<void *>(address);
}

void release(void *memory) {
  auto &extents = heap().extents;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto found =
      std::find_if(extents.begin(), extents.end(), [&](const Extent &extent) {
        return extent.begin == address;
      });
  if (found == extents.end())
    std::abort();
  extents.erase(found);
}

void markInitialised(const void *memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const Extent *allocation = findAllocation(address, bytes);
  if (!allocation)
    std::abort();
  if (!allocation->hasShadow)
    return;
  Cell *cells =
      heap().cells + (address - reinterpret_cast<std::uintptr_t>(heap().base));
  for (std::size_t i = 0; i < bytes; ++i) {
    cells[i] = Cell();
    cells[i].writeEpoch = 1;
  }
}

} // namespace ingot::simt
