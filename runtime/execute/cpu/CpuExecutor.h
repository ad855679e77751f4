// Runs the "cpu" target of a plan: one launch after another on the worker
// pool. Everything is bound and taken at creation; a step writes its arrays,
// sets row counts and launches.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/execute/cpu/BindLaunch.h"
#include "runtime/execute/cpu/WorkerPool.h"
#include "runtime/memory/MemoryContract.h"

#include <memory>

namespace ingot {

class CpuExecutor final : public Executor {
public:
  // `plan` and `target` have been verified and, like `weights`, `cache` and
  // `pool`, outlive the executor. `functions` has one entry a kernel.
  static Result<std::unique_ptr<CpuExecutor>>
  create(const fbs::Plan &plan, const fbs::Target &target,
         const std::uint8_t *weights, std::vector<abi::KernelFn> functions,
         const MemoryContract &contract, const KvCache &cache,
         WorkerPool &pool);

  const StepLimits &limits() const override { return limits_; }
  Status run(const StepPlan &plan, const KvCache &cache) override;
  std::span<const float> logits(std::int32_t row) const override;
  void setProfiling(bool enabled) override;
  std::vector<LaunchProfile> profile() const override;

  // Bytes of weight matrices that one step reads, each once.
  double weightBytesPerStep() const;

  // How often each variant of each launch has run: (launch, kernel, uses).
  struct VariantUse {
    std::string launch;
    std::string kernel;
    std::uint64_t uses = 0;
  };
  std::vector<VariantUse> variantUses() const;

private:
  CpuExecutor() = default;
  Status fillArrays(const StepPlan &plan, const KvCache &cache);
  void runLaunch(BoundLaunch &launch, std::int32_t rows,
                 std::int32_t numSequences);

  const fbs::Target *target_ = nullptr;
  const KvCache *cache_ = nullptr;
  WorkerPool *pool_ = nullptr;
  std::vector<abi::KernelFn> functions_;
  HostMemory tokenArena_;
  HostMemory logitArena_;
  StepArrays arrays_;
  StepLimits limits_;
  std::vector<std::vector<BoundLaunch>> segments_;
  const float *logits_ = nullptr;
  std::uint64_t logitStride_ = 0;
  std::int32_t logitCount_ = 0;
  double positions_ = 0; // cached positions that the step's queries see
  bool profiling_ = false;
};

} // namespace ingot
