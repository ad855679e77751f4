#include "runtime/execute/cpu/MachineBandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace ingot {
namespace {

constexpr std::uint64_t kBufferBytes = std::uint64_t(256) << 20;
constexpr std::uint64_t kItemBytes = std::uint64_t(1) << 18;
constexpr int kRounds = 6;

struct ReadParams {
  const std::uint8_t *data;
  std::atomic<std::uint64_t> *sum;
};

void readKernel(const void *raw, const abi::Slice *slice) {
  const auto &params = *static_cast<const ReadParams *>(raw);
  auto *words = reinterpret_cast<const std::uint64_t *>(
      params.data + std::uint64_t(slice->begin) * kItemBytes);
  std::uint64_t count =
      std::uint64_t(slice->end - slice->begin) * kItemBytes / 8;
  std::uint64_t sums[8] = {};
  for (std::uint64_t i = 0; i < count; i += 8)
    for (int j = 0; j < 8; ++j)
      sums[j] += words[i + j];
  std::uint64_t total = 0;
  for (std::uint64_t sum : sums)
    total += sum;
  params.sum->fetch_add(total, std::memory_order_relaxed);
}

void fillKernel(const void *raw, const abi::Slice *slice) {
  auto *data =
      const_cast<std::uint8_t *>(static_cast<const ReadParams *>(raw)->data);
  std::fill(data + std::uint64_t(slice->begin) * kItemBytes,
            data + std::uint64_t(slice->end) * kItemBytes, std::uint8_t(1));
}

} // namespace

Result<double> measureReadBandwidth(WorkerPool &pool) {
  INGOT_ASSIGN_OR_RETURN(
      HostMemory memory,
      HostMemory::allocate(kBufferBytes, "buffer to measure the memory with"));
  std::atomic<std::uint64_t> sum{0};
  ReadParams params{memory.data(), &sum};
  auto items = std::int32_t(kBufferBytes / kItemBytes);
  pool.launch(fillKernel, &params, items, 4);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto start = std::chrono::steady_clock::now();
    pool.launch(readKernel, &params, items, 4);
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    best = std::max(best, double(kBufferBytes) / taken.count());
  }
  if (sum.load() == 0)
    return Status::internal("the bandwidth measurement read nothing");
  return best;
}

} // namespace ingot
