// 1. Collect the lanes of a request. 2. Shared: passes of the 32 banks, in phases
// of as many lanes as carry 128 bytes. Device: sectors of 32 bytes.
#include "test/simt/Tracer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <set>

namespace ingot::simt {

void Tracer::note(std::uintptr_t address, std::size_t bytes, bool isWrite,
                  const Extent *allocation, const void *pc) {
  const ThreadContext &context = *currentThread;
  const Key key{pc, context.warp, isWrite};
  Pending &pending = pending_[key];
  pending.bytes = bytes;
  pending.allocation = allocation ? allocation->begin : 0;
  if (allocation) {
    Sectors &sectors = allocations_[allocation->begin];
    if (!sectors.counts.base) {
      sectors.counts.base = reinterpret_cast<const void *>(allocation->begin);
      sectors.counts.bytes = allocation->end - allocation->begin;
      const std::size_t number = sectors.counts.bytes / 32 + 2;
      sectors.read.resize(number);
      sectors.written.resize(number);
    }
  }
  const std::uint32_t index =
      pending.executed[context.lane]++ - pending.firstOpen;
  if (index >= pending.requests.size())
    pending.requests.resize(index + 1);
  Request &request = pending.requests[index];
  request.addresses[context.lane] = address;
  request.lanes |= 1u << context.lane;
  if (request.lanes == ~0u && index == 0) {
    account(key, pending, request);
    pending.requests.erase(pending.requests.begin());
    ++pending.firstOpen;
  }
}

void Tracer::flush() {
  for (auto &[key, pending] : pending_)
    for (Request &request : pending.requests)
      if (request.lanes)
        account(key, pending, request);
  pending_.clear();
}

void Tracer::account(const Key &key, const Pending &pending,
                     const Request &request) {
  SiteTrace &site = sites_[{key.pc, key.isWrite}];
  site.pc = key.pc;
  site.isWrite = key.isWrite;
  site.isShared = pending.allocation == 0;
  ++site.requests;
  const auto lanes = unsigned(__builtin_popcount(request.lanes));
  site.bytes += lanes * pending.bytes;
  if (site.isShared) {
    const int phase = pending.bytes <= 4 ? 32 : pending.bytes <= 8 ? 16 : 8;
    for (int first = 0; first < kWarpLanes; first += phase) {
      std::set<std::uintptr_t> words;
      unsigned banks[32] = {};
      unsigned most = 0;
      for (int lane = first; lane < first + phase; ++lane) {
        if (!(request.lanes >> lane & 1))
          continue;
        const std::uintptr_t begin = request.addresses[lane] / 4;
        const std::uintptr_t end =
            (request.addresses[lane] + pending.bytes + 3) / 4;
        for (std::uintptr_t word = begin; word < end; ++word)
          if (words.insert(word).second)
            most = std::max(most, ++banks[word % 32]);
      }
      site.wavefronts += most;
      site.idealWavefronts += most != 0;
    }
    return;
  }
  Sectors &sectors = allocations_[pending.allocation];
  std::set<std::uintptr_t> touched;
  for (int lane = 0; lane < kWarpLanes; ++lane)
    if (request.lanes >> lane & 1)
      for (std::uintptr_t at = request.addresses[lane] / 32;
           at <= (request.addresses[lane] + pending.bytes - 1) / 32; ++at)
        touched.insert(at);
  site.sectors += touched.size();
  site.idealSectors += (lanes * pending.bytes + 31) / 32;
  (key.isWrite ? sectors.counts.sectorsWritten : sectors.counts.sectorsRead) +=
      touched.size();
  auto &seen = key.isWrite ? sectors.written : sectors.read;
  for (std::uintptr_t at : touched) {
    const std::size_t index = at - pending.allocation / 32;
    if (!seen[index]) {
      seen[index] = true;
      ++(key.isWrite ? sectors.counts.uniqueWritten
                     : sectors.counts.uniqueRead);
    }
  }
}

Trace Tracer::finish() {
  flush();
  Trace trace;
  for (auto &[key, site] : sites_)
    trace.sites.push_back(site);
  for (auto &[base, sectors] : allocations_)
    trace.allocations.push_back(sectors.counts);
  return trace;
}

const AllocationTrace &Trace::of(const void *base) const {
  static const AllocationTrace none;
  for (const AllocationTrace &allocation : allocations)
    if (allocation.base == base)
      return allocation;
  return none;
}

std::uint64_t Trace::uniqueBytesRead() const {
  std::uint64_t sectors = 0;
  for (const AllocationTrace &allocation : allocations)
    sectors += allocation.uniqueRead;
  return sectors * 32;
}

std::uint64_t Trace::uniqueBytesWritten() const {
  std::uint64_t sectors = 0;
  for (const AllocationTrace &allocation : allocations)
    sectors += allocation.uniqueWritten;
  return sectors * 32;
}

std::string Trace::text() const {
  std::string out;
  char line[256];
  for (const SiteTrace &site : sites) {
    if (site.isShared)
      std::snprintf(line, sizeof line,
                    "shared %-5s %-28s %8" PRIu64 " requests, x%.2f passes\n",
                    site.isWrite ? "write" : "read",
                    sourceLine(site.pc).c_str(), site.requests,
                    site.conflict());
    else
      std::snprintf(line, sizeof line,
                    "device %-5s %-28s %8" PRIu64
                    " requests, %.2f sectors each, ideal %.2f\n",
                    site.isWrite ? "write" : "read",
                    sourceLine(site.pc).c_str(), site.requests,
                    double(site.sectors) / double(site.requests),
                    double(site.idealSectors) / double(site.requests));
    out += line;
  }
  for (const AllocationTrace &allocation : allocations) {
    std::snprintf(line, sizeof line,
                  "allocation of %" PRIu64 " bytes: reads %" PRIu64
                  " (different %" PRIu64 "), writes %" PRIu64
                  " (different %" PRIu64 ") bytes\n",
                  allocation.bytes, allocation.sectorsRead * 32,
                  allocation.uniqueRead * 32, allocation.sectorsWritten * 32,
                  allocation.uniqueWritten * 32);
    out += line;
  }
  return out;
}

} // namespace ingot::simt
