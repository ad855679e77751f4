// Runs the blocks of a grid one after another and the threads of a block as
// fibres: a thread runs until it must wait (barrier, collective, or a switch that
// the options ask for), then the schedule chooses the next.
//
// A thread waits in one of two ways: at the barrier of the block, or at a
// rendezvous of the lanes of one mask. Whoever arrives last releases all. When no
// thread is ready and some are left, the block is dead.
#include "test/simt/Block.h"
#include "test/simt/Tracer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ingot::simt {

Block *running = nullptr;
const ThreadContext *currentThread = nullptr;

Block::Block()
    : arena(
          static_cast<unsigned char *>(std::aligned_alloc(4096, kArenaBytes))),
      arenaCells(kArenaBytes), stacks(kMaxThreads) {
  if (!arena)
    std::abort();
}

namespace {

unsigned lowest(unsigned mask) { return unsigned(__builtin_ctz(mask)); }
unsigned highest(unsigned mask) { return 31u - unsigned(__builtin_clz(mask)); }

Fiber *fiberOf(Block &block, int warp, unsigned lane) {
  return &block.fibers[warp * kWarpLanes + lane];
}

// The next thread by the schedule, or null where none is ready.
Fiber *nextFiber(Block &block) {
  const int numWarps = int(block.warps.size());
  const int warp = block.current->context.warp;
  const int lane = block.current->context.lane;
  switch (block.options.schedule) {
  case Schedule::RoundRobin: {
    unsigned later =
        block.warps[warp].ready & (lane == 31 ? 0u : ~0u << (lane + 1));
    if (later)
      return fiberOf(block, warp, lowest(later));
    for (int i = 1; i <= numWarps; ++i)
      if (unsigned ready = block.warps[(warp + i) % numWarps].ready)
        return fiberOf(block, (warp + i) % numWarps, lowest(ready));
    return nullptr;
  }
  case Schedule::Reverse: {
    unsigned earlier = block.warps[warp].ready & ((1u << lane) - 1);
    if (earlier)
      return fiberOf(block, warp, highest(earlier));
    for (int i = 1; i <= numWarps; ++i) {
      int other = (warp - i + numWarps) % numWarps;
      if (unsigned ready = block.warps[other].ready)
        return fiberOf(block, other, highest(ready));
    }
    return nullptr;
  }
  case Schedule::Random: {
    int first = int(block.random() % unsigned(numWarps));
    unsigned turn = block.random() & 31;
    for (int i = 0; i < numWarps; ++i) {
      int other = (first + i) % numWarps;
      if (unsigned ready = block.warps[other].ready) {
        unsigned upper = ready & (~0u << turn);
        return fiberOf(block, other, lowest(upper ? upper : ready));
      }
    }
    return nullptr;
  }
  case Schedule::WarpFirst:
    for (int other : block.warpOrder)
      if (unsigned ready = block.warps[other].ready)
        return fiberOf(block, other, lowest(ready));
    return nullptr;
  }
  return nullptr;
}

// Gives the processor to the next ready thread; the caller may be it.
void yieldFrom(Block &block) {
  Fiber *from = block.current;
  Fiber *to = nextFiber(block);
  if (to == from)
    return;
  if (!to) {
    if (block.numLive) {
      char text[96];
      std::snprintf(text, sizeof text,
                    "%d threads wait, %d of them at a barrier", block.numLive,
                    block.numAtBarrier);
      fault(FaultKind::Deadlock, nullptr, text);
      block.isDead = true;
    }
    currentThread = nullptr;
    ingotSimtSwitch(&from->stack, block.mainStack);
    return;
  }
  block.current = to;
  currentThread = &to->context;
  ingotSimtSwitch(&from->stack, to->stack);
}

void shuffleWarps(Block &block) {
  for (std::size_t i = block.warpOrder.size(); i > 1; --i)
    std::swap(block.warpOrder[i - 1], block.warpOrder[block.random() % i]);
}

void releaseBarrier(Block &block) {
  for (Warp &warp : block.warps) {
    warp.ready |= warp.atBarrier;
    warp.atBarrier = 0;
  }
  block.numAtBarrier = 0;
  block.barrierPc = nullptr;
  ++block.epoch;
  ++block.report->barriers;
  block.reduced[0] = block.reduceOr;
  block.reduced[1] = block.reduceAnd;
  block.reduced[2] = block.reduceCount;
  block.reduceOr = block.reduceCount = 0;
  block.reduceAnd = 1;
  if (block.tracer)
    block.tracer->flush();
  if (block.options.schedule == Schedule::WarpFirst)
    shuffleWarps(block);
}

void completeMeeting(Block &block, Warp &warp, Rendezvous &meeting,
                     CollectiveFn fn) {
  const unsigned lanes = meeting.arrived;
  if (fn)
    fn(meeting.arguments, lanes);
  if (meeting.kind == Collective::SyncWarp) {
    // Each lane now knows what any of them knew; later accesses are newer.
    std::uint32_t joined[kWarpLanes] = {};
    for (unsigned rest = lanes; rest; rest &= rest - 1)
      for (int k = 0; k < kWarpLanes; ++k)
        joined[k] = std::max(joined[k], warp.clocks[lowest(rest)][k]);
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
      unsigned lane = lowest(rest);
      std::memcpy(warp.clocks[lane], joined, sizeof joined);
      ++warp.clocks[lane][lane];
    }
  }
  ++block.report->collectives;
  meeting.arrived = 0;
  warp.ready |= lanes;
}

void threadMain() {
  Block &block = *running;
  (*block.body)();
  Fiber &fiber = *block.current;
  Warp &warp = block.warps[fiber.context.warp];
  const unsigned bit = 1u << fiber.context.lane;
  for (auto &group : fiber.groups)
    for (AsyncCopy &copy : group)
      setInFlight(copy.target, std::size_t(copy.bytes), false);
  for (AsyncCopy &copy : fiber.open)
    setInFlight(copy.target, std::size_t(copy.bytes), false);
  warp.ready &= ~bit;
  warp.existing &= ~bit;
  --block.numLive;
  for (Rendezvous &meeting : warp.meetings)
    if (meeting.mask & bit && meeting.arrived)
      misuse(
          "a thread ends while lanes of its warp wait for it in a collective",
          nullptr);
  if (block.numAtBarrier) {
    misuse("threads end while others of the block wait at a barrier",
           block.barrierPc);
    if (block.numAtBarrier == block.numLive)
      releaseBarrier(block);
  }
  yieldFrom(block);
  std::abort(); // a thread that has ended was chosen
}

void startBlock(Block &block, Dim3 grid, Dim3 dim, Dim3 index) {
  block.numThreads = block.numLive = int(dim.count());
  const int numWarps = (block.numThreads + kWarpLanes - 1) / kWarpLanes;
  block.fibers.resize(block.numThreads);
  block.warps.resize(numWarps);
  block.numAtBarrier = 0;
  block.barrierPc = nullptr;
  block.reduceOr = block.reduceCount = 0;
  block.reduceAnd = 1;
  block.isDead = false;
  block.carved = 0;
  block.arenaTop = kRedZone;
  block.extents.clear();
  block.blockEpoch = ++block.epoch;
  block.randomState =
      block.options.seed * 0x9e3779b97f4a7c15u +
      (index.x + 977ull * index.y + 31337ull * index.z) * 0xd1b54a32d192ed03u +
      1;
  for (int i = 0; i < 8; ++i)
    block.random();
  block.warpOrder.resize(numWarps);
  for (int i = 0; i < numWarps; ++i)
    block.warpOrder[i] = i;
  shuffleWarps(block);
  for (int i = 0; i < numWarps; ++i) {
    Warp &warp = block.warps[i];
    const int lanes = std::min(kWarpLanes, block.numThreads - i * kWarpLanes);
    warp.existing = warp.ready = lanes == kWarpLanes ? ~0u : (1u << lanes) - 1;
    warp.atBarrier = 0;
    for (Rendezvous &meeting : warp.meetings)
      meeting.arrived = 0;
    std::memset(warp.clocks, 0, sizeof warp.clocks);
    for (int lane = 0; lane < kWarpLanes; ++lane)
      warp.clocks[lane][lane] = 1;
  }
  for (int i = 0; i < block.numThreads; ++i) {
    Fiber &fiber = block.fibers[i];
    const auto t = unsigned(i);
    fiber.context = {{t % dim.x, t / dim.x % dim.y, t / (dim.x * dim.y)},
                     {index.x, index.y, index.z},
                     {dim.x, dim.y, dim.z},
                     {grid.x, grid.y, grid.z},
                     i,
                     i % kWarpLanes,
                     i / kWarpLanes};
    fiber.numCarved = 0;
    fiber.open.clear();
    fiber.groups.clear();
    fiber.stack = block.stacks.prepare(i, threadMain);
  }
}

void runBlock(Block &block) {
  std::size_t first = 0;
  if (block.options.schedule == Schedule::Reverse)
    first = block.fibers.size() - 1;
  else if (block.options.schedule == Schedule::Random)
    first = block.random() % block.fibers.size();
  else if (block.options.schedule == Schedule::WarpFirst)
    first = std::size_t(block.warpOrder[0]) * kWarpLanes;
  block.current = &block.fibers[first];
  currentThread = &block.current->context;
  ingotSimtSwitch(&block.mainStack, block.current->stack);
  currentThread = nullptr;
  if (block.tracer)
    block.tracer->flush();
}

} // namespace

void giveWay() { yieldFrom(*running); }

void blockBarrier(const void *pc) {
  Block &block = *running;
  if (isPlanted(Plant::SkipBarrier, pc))
    return;
  Fiber &fiber = *block.current;
  Warp &warp = block.warps[fiber.context.warp];
  const unsigned bit = 1u << fiber.context.lane;
  if (block.numLive < block.numThreads)
    misuse("a barrier that threads which have ended never reach", pc);
  if (block.numAtBarrier && block.barrierPc != pc)
    misuse("threads of a block meet at different barriers", pc);
  block.barrierPc = pc;
  warp.ready &= ~bit;
  warp.atBarrier |= bit;
  landRandomCopies(block);
  if (++block.numAtBarrier == block.numLive)
    releaseBarrier(block);
  yieldFrom(block);
}

int blockBarrierReduce(int predicate, BarrierReduce operation, const void *pc) {
  Block &block = *running;
  block.reduceOr |= predicate != 0;
  block.reduceAnd &= predicate != 0;
  block.reduceCount += predicate != 0;
  blockBarrier(pc);
  int result = block.reduced[int(operation)];
  blockBarrier(pc); // all have read before the next one begins
  return result;
}

void collective(Collective kind, unsigned mask, void *argument,
                CollectiveFn fn) {
  Block &block = *running;
  Fiber &fiber = *block.current;
  Warp &warp = block.warps[fiber.context.warp];
  const unsigned bit = 1u << fiber.context.lane;
  if (!(mask & bit))
    misuse("a lane calls a collective whose mask leaves it out", nullptr);
  if (mask & ~warp.existing)
    misuse(
        "the mask of a collective names lanes that do not exist or have ended",
        nullptr);
  Rendezvous *meeting = nullptr;
  for (Rendezvous &other : warp.meetings) {
    if (other.mask == mask)
      meeting = &other;
    else if (other.arrived && other.mask & mask)
      misuse("lanes of one warp wait in collectives of overlapping masks",
             nullptr);
  }
  if (!meeting)
    meeting = &warp.meetings.emplace_back(Rendezvous{mask, 0, kind, false, {}});
  if (!meeting->arrived)
    meeting->isMixed = false;
  if (meeting->arrived && meeting->kind != kind) {
    misuse("lanes of one mask meet in different collectives", nullptr);
    meeting->isMixed = true; // their arguments are not alike: nothing is done
  }
  meeting->kind = kind;
  meeting->arguments[fiber.context.lane] = argument;
  meeting->arrived |= bit;
  if (meeting->arrived == (mask & warp.existing)) {
    completeMeeting(block, warp, *meeting, meeting->isMixed ? nullptr : fn);
    std::memset(static_cast<void *>(meeting->arguments), 0,
                sizeof meeting->arguments);
    return;
  }
  warp.ready &= ~bit;
  yieldFrom(block);
}

LaunchReport launch(Dim3 grid, Dim3 dim, std::size_t sharedBytes,
                    const std::function<void()> &body,
                    const LaunchOptions &options) {
  static Block *block = new Block; // its stacks and arena serve every launch
  LaunchReport report;
  block->options = options;
  block->report = &report;
  block->body = &body;
  block->faultIndex.clear();
  block->sites.clear();
  block->sharedBytes = sharedBytes;
  block->launchEpoch = ++block->epoch;
  std::unique_ptr<Tracer> tracer;
  if (options.trace)
    tracer = std::make_unique<Tracer>();
  block->tracer = tracer.get();
  running = block;
  if (!dim.count() || dim.count() > kMaxThreads || !grid.count()) {
    misuse("an empty grid, or a block of no or more than 1024 threads",
           nullptr);
  } else {
    for (std::uint64_t i = 0; i < grid.count(); ++i) {
      // Blocks may run in any order.
      std::uint64_t at =
          options.schedule == Schedule::Reverse ? grid.count() - 1 - i : i;
      startBlock(*block, grid, dim,
                 {unsigned(at % grid.x), unsigned(at / grid.x % grid.y),
                  unsigned(at / (std::uint64_t(grid.x) * grid.y))});
      runBlock(*block);
    }
  }
  if (tracer)
    report.trace = tracer->finish();
  report.sites.assign(block->sites.begin(), block->sites.end());
  running = nullptr;
  block->report = nullptr;
  return report;
}

} // namespace ingot::simt
