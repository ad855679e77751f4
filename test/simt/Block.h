// The state of the block that is running: threads, warps, shared memory, shadow
// and pending copies. Internal to the emulator.
#pragma once

#include "test/simt/Fiber.h"
#include "test/simt/Simt.h"
#include "test/simt/ThreadContext.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace ingot::simt {

constexpr int kWarpLanes = 32;
constexpr int kMaxThreads = 1024;
constexpr std::size_t kArenaBytes = 512 << 10;
constexpr std::size_t kRedZone = 128;
constexpr std::size_t kHeapBytes = std::size_t(1) << 30;

// A pending asynchronous copy of one thread.
struct AsyncCopy {
  void *target;
  const void *source;
  int bytes;
  int sourceBytes; // the rest is zero
  bool hasLanded;
  const void *pc;
};

struct Fiber {
  ThreadContext context;
  void *stack = nullptr;
  unsigned numCarved = 0;
  std::vector<AsyncCopy> open;                // not committed
  std::vector<std::vector<AsyncCopy>> groups; // committed, oldest first
};

// Lanes of one mask on their way to a collective.
struct Rendezvous {
  unsigned mask = 0;
  unsigned arrived = 0;
  Collective kind{};
  bool isMixed = false;
  void *arguments[kWarpLanes] = {};
};

struct Warp {
  unsigned existing = 0;
  unsigned ready = 0;
  unsigned atBarrier = 0;
  std::vector<Rendezvous> meetings;
  // clocks[a][b]: what lane a knows of lane b, by __syncwarp.
  std::uint32_t clocks[kWarpLanes][kWarpLanes] = {};
};

struct Extent {
  std::uintptr_t begin, end;
  bool isReadOnly = false;
  bool hasShadow = true;
  bool contains(std::uintptr_t address, std::size_t bytes) const {
    return address >= begin && address + bytes <= end;
  }
};

// Who touched a byte last. Epochs count barriers and starts of blocks over all
// launches: two accesses of one block in different epochs are ordered.
struct Cell {
  std::uint32_t writeEpoch = 0; // 0: never written; 1: by the host
  std::uint32_t writeClock = 0;
  std::uint32_t readEpoch = 0;
  std::uint32_t readClock[2] = {};
  std::uint32_t foreignRead = 0; // launch in which another block read it
  std::uint16_t writer = 0;
  std::uint16_t readers[2] = {};
  std::uint8_t inFlight = 0; // an asynchronous copy has not landed
  std::uint8_t isAtomic = 0; // the last write was an atomic operation
};
static_assert(sizeof(Cell) == 32);

class Tracer;

struct Block {
  Block();

  // of the launch
  LaunchOptions options;
  LaunchReport *report = nullptr;
  const std::function<void()> *body = nullptr;
  std::map<std::pair<int, const void *>, std::size_t> faultIndex;
  Tracer *tracer = nullptr;
  std::set<PlantSite> sites;
  std::uint32_t launchEpoch = 0;

  // of the block
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  int numThreads = 0;
  int numLive = 0;
  int numAtBarrier = 0;
  const void *barrierPc = nullptr;
  int reduceOr = 0, reduceAnd = 1, reduceCount = 0;
  int reduced[3] = {};
  Fiber *current = nullptr;
  void *mainStack = nullptr;
  bool isDead = false;
  bool isBusy = false; // inside the emulator: hooks are silent
  std::uint64_t randomState = 1;
  std::vector<int> warpOrder;
  std::uint32_t epoch = 1;
  std::uint32_t blockEpoch = 1;
  std::size_t sharedBytes = 0; // that the launch asked for
  std::size_t carved = 0;      // of them, by the device's own arithmetic
  std::size_t arenaTop = 0;
  std::vector<Extent> extents; // carved shared allocations

  unsigned char *arena = nullptr;
  std::vector<Cell> arenaCells;
  FiberStacks stacks;

  std::uint32_t random() {
    randomState ^= randomState << 13;
    randomState ^= randomState >> 7;
    randomState ^= randomState << 17;
    return std::uint32_t(randomState >> 16);
  }
};

// The block that runs now, or null.
extern Block *running;

// Whether the fault of this kind is planted at this place; remembers the place.
bool isPlanted(Plant kind, const void *pc);

void fault(FaultKind kind, const void *pc, const std::string &message);

// Shadow.cpp
struct Heap {
  char *base = nullptr;
  Cell *cells = nullptr;
  std::size_t top = 0;
  std::vector<Extent> extents; // ordered by address
};
Heap &heap();
// The allocation that holds the bytes, or null.
const Extent *findAllocation(std::uintptr_t address, std::size_t bytes);
enum class Mode { Plain, Atomic, AsyncIssue, AsyncLand };
// One access of the current thread, to memory of the device or to any other.
void access(const void *address, std::size_t bytes, bool isWrite,
            const void *pc, Mode mode = Mode::Plain);
void setInFlight(const void *address, std::size_t bytes, bool inFlight);

// Scheduler.cpp
void giveWay();

// AsyncCopies.cpp
void landRandomCopies(Block &block);

} // namespace ingot::simt
