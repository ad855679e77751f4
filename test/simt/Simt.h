// CUDA kernels on the CPU, for tests: every thread of a block is a fibre, and the
// order in which fibres run is drawn from a seed. With kernels compiled by
// `clang++ -fsanitize=thread` (and without its runtime) every load and store comes
// through hooks of our own (TsanHooks.cpp), so a launch also finds races, accesses
// out of bounds and reads of what was never written, and can trace bank conflicts
// and sectors. docs/cuda.md says what this proves and what it cannot.
//
// One launch runs at a time, on the calling thread. Device memory is one heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ingot::simt {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t(x) * y * z; }
};

// Which fibre runs next, when one must wait.
enum class Schedule {
  RoundRobin, // lanes, then warps, in ascending order
  Reverse,    // in descending order
  Random,     // any ready thread
  WarpFirst,  // a warp as far as it can go, warps in a random order
};
// When the bytes of an asynchronous copy arrive: the hardware may choose any
// moment between its issue and the wait for its group.
enum class AsyncMode { Eager, Lazy, Random };

// A fault that the emulator puts into a kernel at one place of its code, to show
// that it would be found.
enum class Plant {
  None,
  SkipBarrier,  // a __syncthreads that is not there
  WaitTooFew,   // a wait that lets one more group of copies be under way
  ShiftShared,  // a wide access to shared memory that is off by one
  SwapFragment, // an mma whose registers a1 and a2 have traded places
};
struct PlantSite {
  Plant kind = Plant::None;
  const void *pc = nullptr;
  bool operator<(const PlantSite &other) const {
    return kind != other.kind ? kind < other.kind : pc < other.pc;
  }
};

struct LaunchOptions {
  Schedule schedule = Schedule::RoundRobin;
  AsyncMode async = AsyncMode::Lazy;
  std::uint64_t seed = 1;
  unsigned switchOdds =
      0;              // one in N accesses gives way to another thread; 0: none
  bool check = true;  // races, bounds, uninitialised reads
  PlantSite plant;    // a fault to plant
  bool trace = false; // bank conflicts and sectors
};

enum class FaultKind { Race, OutOfBounds, Uninitialised, Deadlock, Misuse };

// One kind of fault at one place of the code.
struct Fault {
  FaultKind kind;
  const void *pc = nullptr;
  std::string message; // of its first occurrence
  std::uint64_t count = 0;
};

// What one load or store of the code did, over the whole launch. A request is
// what a warp issues together.
struct SiteTrace {
  const void *pc = nullptr;
  bool isShared = false;
  bool isWrite = false;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;      // asked for by the lanes
  std::uint64_t wavefronts = 0; // shared: passes through the banks
  std::uint64_t idealWavefronts = 0;
  std::uint64_t sectors = 0; // global: of 32 bytes
  std::uint64_t idealSectors = 0;
  double conflict() const {
    return idealWavefronts ? double(wavefronts) / double(idealWavefronts) : 1;
  }
};

// What a launch moved from and to one allocation.
struct AllocationTrace {
  const void *base = nullptr;
  std::uint64_t bytes = 0;       // its size
  std::uint64_t sectorsRead = 0; // requested, each request counted
  std::uint64_t uniqueRead = 0;  // different ones: what DRAM must deliver
  std::uint64_t sectorsWritten = 0;
  std::uint64_t uniqueWritten = 0;
};

struct Trace {
  std::vector<SiteTrace> sites;
  std::vector<AllocationTrace> allocations;

  const AllocationTrace &of(const void *base) const;
  std::uint64_t uniqueBytesRead() const;
  std::uint64_t uniqueBytesWritten() const;
  // One line a site and an allocation, with file and line.
  std::string text() const;
};

struct LaunchReport {
  std::vector<Fault> faults;
  Trace trace;
  std::uint64_t barriers = 0;    // that a block completed
  std::uint64_t collectives = 0; // that a warp completed
  std::uint64_t asyncCopies = 0;
  std::vector<PlantSite> sites; // where a fault could be planted

  bool isClean() const { return faults.empty(); }
  std::uint64_t count(FaultKind kind) const;
  // One line a fault, with file and line.
  std::string text() const;
};

// Runs `body` once a thread of the grid. Inside it, the names of CUDA are those of
// test/simt/DeviceOnHost.h.
LaunchReport launch(Dim3 grid, Dim3 block, std::size_t sharedBytes,
                    const std::function<void()> &body,
                    const LaunchOptions &options = {});

// Where a code address comes from: "File.cpp:12", or the address itself.
std::string sourceLine(const void *pc);

// ---- device memory ----
enum class Access { ReadWrite, ReadOnly, Unchecked };

// `bytes` of device memory between red zones, filled with 0xff, which reads as NaN
// and counts as never written. ReadOnly memory may not be written by kernels and
// costs no shadow; Unchecked memory may, and only its bounds are watched.
void *allocate(std::size_t bytes, Access access = Access::ReadWrite);
void release(void *memory);
// After the host has written: the bytes count as initialised.
void markInitialised(const void *memory, std::size_t bytes);

// An array in device memory, which the host reads and writes directly.
template <typename T> class DeviceArray {
public:
  explicit DeviceArray(std::size_t size)
      : data_(static_cast<T *>(allocate(size * sizeof(T)))), size_(size) {}
  explicit DeviceArray(std::span<const T> values,
                       Access access = Access::ReadOnly)
      : data_(static_cast<T *>(allocate(values.size_bytes(), access))),
        size_(values.size()) {
    if (!values.empty())
      std::memcpy(data_, values.data(), values.size_bytes());
    markInitialised(data_, values.size_bytes());
  }
  DeviceArray(const std::vector<T> &values, Access access = Access::ReadOnly)
      : DeviceArray(std::span<const T>(values), access) {}
  ~DeviceArray() {
    if (data_)
      release(data_);
  }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  DeviceArray(DeviceArray &&other) noexcept
      : data_(other.data_), size_(other.size_) {
    other.data_ = nullptr;
    other.size_ = 0;
  }
  DeviceArray &operator=(DeviceArray &&other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T *data() const { return data_; }
  std::size_t size() const { return size_; }
  T &operator[](std::size_t i) const { return data_[i]; }
  std::vector<T> copy() const { return {data_, data_ + size_}; }

private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace ingot::simt
