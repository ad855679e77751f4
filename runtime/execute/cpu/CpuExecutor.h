// Runs the "cpu" target of a plan: one launch after another on the worker
// pool. Everything is bound and taken at creation; a step writes its arrays,
// sets row counts and launches.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/execute/cpu/BindLaunch.h"
#include "runtime/execute/cpu/WorkerPool.h"
#include "runtime/memory/HostMemory.h"
#include "runtime/memory/MemoryContract.h"

#include <functional>
#include <memory>

namespace ingot {

// A launch that has just run, for whoever observes a step.
struct TappedLaunch {
  const fbs::Launch &launch;
  const fbs::Kernel &kernel; // that ran
  std::int32_t rows = 0;     // of the launch's domain
  const StepPlan &step;
};
using LaunchTap = std::function<void(const TappedLaunch &)>;

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
  // The hidden state of a row of the latest step, which ended at a cut; valid
  // until the next.
  std::span<const float> hidden(std::int32_t row) const;
  // From now on these are the kept states behind segment `end`, [rows, width of
  // the cut there]: a step may begin there with states that it did not run to.
  Status setHidden(std::int32_t end, std::span<const float> states);
  double attentionSeconds() const override { return attentionSeconds_; }
  void setProfiling(bool enabled) override;
  std::vector<LaunchProfile> profile() const override;

  // Called after each launch of a step, before the next one runs; null: nobody
  // observes. What the observer reads with `bufferRow` is valid during its call
  // alone: buffers share memory.
  void setTap(LaunchTap tap) { tap_ = std::move(tap); }
  // Row `row` of a buffer of the target: its row_bytes, by its dtype.
  std::span<const std::uint8_t> bufferRow(std::int32_t buffer,
                                          std::int32_t row) const;

  // Called before each launch, when what it reads is complete, with the rows of
  // the step that it works on. For tools that look at a plan while it runs; an
  // empty function ends it.
  using InputObserver = std::function<void(const BoundLaunch &, std::int32_t)>;
  void observeInputs(InputObserver observer) {
    inputObserver_ = std::move(observer);
  }

  double weightBytesPerStep() const override;
  double weightBytesToExit(std::int32_t exit) const override;
  double weightBytesOfHead(std::int32_t exit) const; // of it, the head alone
  double weightBytesOfFill(std::int32_t exit) const;

  std::vector<VariantUse> variantUses() const override;

private:
  CpuExecutor() = default;
  Status fillArrays(const StepPlan &plan, const KvCache &cache);
  void runSegment(std::vector<BoundLaunch> &launches, const StepPlan &plan);
  Status checkHidden(const StepPlan &plan) const;
  void keepHidden(std::int32_t end, std::int32_t rows);
  void restoreHidden(const StepPlan &plan);
  void runLaunch(BoundLaunch &launch, std::int32_t rows,
                 std::int32_t numSequences);
  // Calls `visit` with each launch of the program, then of each exit.
  template <typename Self, typename Visit>
  static void forEachLaunch(Self &self, Visit &&visit) {
    for (auto *segments : {&self.segments_, &self.heads_, &self.fills_})
      for (auto &launches : *segments)
        for (auto &launch : launches)
          visit(launch);
  }

  const fbs::Target *target_ = nullptr;
  const KvCache *cache_ = nullptr;
  WorkerPool *pool_ = nullptr;
  std::vector<abi::KernelFn> functions_;
  BindContext context_;
  LaunchTap tap_;
  HostMemory tokenArena_;
  HostMemory logitArena_;
  StepArrays arrays_;
  StepLimits limits_;
  std::vector<std::vector<BoundLaunch>> segments_;
  std::vector<std::vector<BoundLaunch>> heads_; // of each exit
  std::vector<std::vector<BoundLaunch>> fills_; // of each exit; may be empty
  const float *logits_ = nullptr;
  std::uint64_t logitStride_ = 0;
  std::size_t logitColumns_ = 0;
  bool isEncoder_ = false;
  std::int32_t logitCount_ = 0;
  // The cut that each segment ends at; null: it ends at none.
  struct Cut {
    float *rows = nullptr;
    std::int64_t width = 0;
  };
  std::vector<Cut> cuts_;
  HostMemory hidden_; // rows kept at the cut behind segment keptEnd_
  std::int32_t keptEnd_ = 0;
  std::int32_t keptRows_ = 0;
  std::int32_t latestEnd_ = 0; // segments behind which the latest step ended
  std::int32_t latestRows_ = 0;
  double positions_ = 0; // cached positions that the step's queries see
  double attentionSeconds_ = 0;
  bool profiling_ = false;
  InputObserver inputObserver_;
};

} // namespace ingot
