// The tiny artifact with fake kernels, ready to run: what the tests of the
// executor and of the engine share.
#pragma once

#include "runtime/execute/cpu/CpuExecutor.h"
#include "test/runtime/execute/cpu/FakeKernels.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace ingot::test {

struct TinyRunner {
  TinyArtifact tiny;
  std::vector<std::uint8_t> planBytes;
  const fbs::Plan *plan = nullptr;
  MemoryContract contract;
  std::unique_ptr<WorkerPool> pool;
  std::optional<KvCache> cache;
  std::unique_ptr<CpuExecutor> executor;

  TinyRunner(const ContractOptions &options, const KvCacheOptions &cacheOptions,
             std::uint32_t window = 0) {
    tiny = TinyArtifact::make();
    if (window) {
      tiny.plan.states[0]->window = window;
      for (auto &launch : tiny.plan.targets[0]->segments[0]->launches)
        if (auto *attention = launch->params.AsAttention())
          attention->window = window;
    }
    planBytes = tiny.planBytes();
    plan = fbs::GetPlan(planBytes.data());
    const fbs::Target &target = *plan->targets()->Get(0);
    auto computed = computeContract(*plan, target, options);
    EXPECT_TRUE(computed.isOk()) << computed.status().message();
    contract = *computed;
    pool = std::move(WorkerPool::create(
                         {options.workers, contract.scratchBytesPerWorker, {}})
                         .value());
    std::vector<std::int32_t> blocks = {contract.states[0].blocks};
    cache.emplace(KvCache::create({GroupGeometry::of(*plan->states()->Get(0))},
                                  blocks, cacheOptions)
                      .value());
    auto made = CpuExecutor::create(*plan, target, tiny.weights.data(),
                                    fakeKernels(), contract, *cache, *pool);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    executor = std::move(made).value();
  }
};

} // namespace ingot::test
