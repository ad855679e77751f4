// Puts the accesses of single threads back together into the requests of warps,
// and counts what each costs. The n-th execution of one instruction by each lane of
// a warp since the last barrier is one request.
#pragma once

#include "test/simt/Block.h"

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ingot::simt {

class Tracer {
public:
  // An access of the current thread. `allocation` is null for shared memory.
  void note(std::uintptr_t address, std::size_t bytes, bool isWrite,
            const Extent *allocation, const void *pc);
  // At barriers and ends of blocks: what is pending is complete.
  void flush();
  Trace finish();

private:
  struct Request {
    unsigned lanes = 0;
    std::uintptr_t addresses[kWarpLanes];
  };
  // Of one instruction in one warp.
  struct Pending {
    std::uint32_t executed[kWarpLanes] = {};
    std::uint32_t firstOpen = 0;
    std::size_t bytes = 0;
    std::uintptr_t allocation = 0;
    std::vector<Request> requests;
  };
  struct Key {
    const void *pc;
    int warp;
    bool isWrite;
    bool operator==(const Key &) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key &key) const {
      return (reinterpret_cast<std::uintptr_t>(key.pc) * 64 +
              std::size_t(key.warp) * 2 + key.isWrite) *
             0x9e3779b97f4a7c15u;
    }
  };
  struct Sectors {
    AllocationTrace counts;
    std::vector<bool> read, written;
  };

  void account(const Key &key, const Pending &pending, const Request &request);

  std::unordered_map<Key, Pending, KeyHash> pending_;
  std::map<std::pair<const void *, bool>, SiteTrace> sites_;
  std::map<std::uintptr_t, Sectors> allocations_;
};

} // namespace ingot::simt
