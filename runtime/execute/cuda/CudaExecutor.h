// Runs the "cuda" target of a plan on one device, in the order of its one stream.
// Everything is loaded, taken and bound at creation: a step writes its arrays, copies
// them, launches, and copies its logits back. Steps of few rows are CUDA graphs: one
// for each bucket of row counts and of parts of a sequence, captured when it is first
// needed, whose surplus rows are padding. Of a model with exits each part that a step
// may be has its own graphs.
#pragma once

#include "runtime/execute/Executor.h"
#include "runtime/execute/TokenChooser.h"
#include "runtime/execute/cuda/CudaCode.h"
#include "runtime/execute/cuda/ExitStates.h"
#include "runtime/execute/cuda/LibraryGemm.h"
#include "runtime/execute/cuda/SampleLaunch.h"
#include "runtime/execute/cuda/StepStaging.h"
#include "runtime/memory/MemoryContract.h"

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

namespace ingot::cuda {

struct CudaExecutorOptions {
  bool useGraphs = true;
  bool choosesTokens = true; // where the target has a kernel for it
  // For targets that leave products to a library (LibraryUse.h).
  std::shared_ptr<const CublasLt> library = nullptr;
};

// What of a contract the device must have free before anything is read, beside the
// cache: OutOfMemory with both numbers where it has less.
Status checkDeviceMemory(const Device &device, const MemoryContract &contract);

// Blocks of a cache in memory of the device.
Result<std::unique_ptr<StateMemory>> makeDeviceState(const Device &device,
                                                     std::uint64_t sizeBytes,
                                                     const std::string &what);

class CudaExecutor final : public Executor, public TokenChooser {
public:
  // `plan` and `target` have been verified and, like `device`, `weights` (the
  // artifact's segment) and `cache`, outlive the executor.
  static Result<std::unique_ptr<CudaExecutor>>
  create(const fbs::Plan &plan, const fbs::Target &target, const Device &device,
         CudaCode code, std::span<const std::uint8_t> weights,
         const MemoryContract &contract, const KvCache &cache,
         const CudaExecutorOptions &options = {});
  ~CudaExecutor() override;

  const StepLimits &limits() const override { return limits_; }
  Status run(const StepPlan &plan, const KvCache &cache) override;
  std::span<const float> logits(std::int32_t row) const override;
  TokenChooser *chooser() override { return sample_ ? this : nullptr; }
  Status runAndChoose(const StepPlan &plan, const KvCache &cache,
                      std::span<const RowChoice> choices) override;
  std::span<const std::int32_t> tokens() const override {
    return sample_->tokens();
  }
  void setProfiling(bool enabled) override;
  std::vector<LaunchProfile> profile() const override;
  double weightBytesPerStep() const override;
  double weightBytesToExit(std::int32_t exit) const override;
  std::vector<VariantUse> variantUses() const override;

  // Called behind each launch of a step, when it has run: steps then have no graphs.
  // What `read` copies from the launch's pointers is valid during the call.
  using LaunchObserver =
      std::function<Status(const CudaLaunch &, std::int32_t rows)>;
  void observeLaunches(LaunchObserver observer) {
    launchObserver_ = std::move(observer);
  }
  Status read(const void *onDevice, std::span<std::uint8_t> to) const;

  // Steps that were launched as a graph, and the graphs that there are.
  std::uint64_t numGraphSteps() const { return numGraphSteps_; }
  std::size_t numGraphs() const { return graphs_.size(); }
  // Steps that gave tokens in place of logits.
  std::uint64_t numChosenSteps() const { return numChosenSteps_; }

private:
  explicit CudaExecutor(const Device &device, CudaCode code)
      : device_(device), code_(std::move(code)) {}

  // A step's sizes, or those that a graph stands for.
  struct StepSize {
    std::int32_t rows = 0;
    std::int32_t logitRows = 0;
    std::int32_t sequences = 0;
    std::int32_t splits = 0; // of a graph: of any sequence; 0: no graph
  };
  Status uploadWeights(const fbs::Plan &plan, const fbs::Target &target,
                       std::span<const std::uint8_t> weights,
                       std::vector<DevicePointer> &addresses);
  Status checkExits(const StepPlan &plan) const;
  std::int32_t endOf(const StepPlan &plan) const; // of its segments
  // Calls `visit` with each launch of the step, until one fails: those that the
  // rows of a step need again which goes on from kept ones, segments, head or fill.
  template <typename Visit>
  Status forEachOfStep(const StepPlan &plan, Visit &&visit);
  // The bucket that the step fits, or the step itself where it fits none.
  StepSize sizeOf(const StepPlan &plan) const;
  // Puts the step into the stream: all but what is copied back.
  Result<StepSize> enqueue(const StepPlan &plan, const KvCache &cache);
  Status copyLogits(const StepPlan &plan);
  Status settled(Status status);
  Status launchAll(const StepPlan &plan, const StepSize &size);
  Status launchGraph(const StepPlan &plan, const StepSize &size);
  std::int32_t rowsOf(fbs::Domain domain, const StepSize &size) const;
  Status launchOne(CudaLaunch &launch, const StepSize &size);
  Status launchAttention(CudaLaunch &launch, BoundKernel wide,
                         std::int32_t rows, const StepSize &size);
  Status launchVariant(CudaLaunch &launch, const BoundKernel &kernel,
                       std::int32_t rows, const StepSize &size);
  Status launchKernel(const BoundKernel &kernel, abi::KernelGrid grid,
                      void *params);
  void countUses(const StepSize &size, const StepPlan &plan);
  Status addProfile();
  // Calls `visit` with each launch of the program, then of each exit.
  template <typename Self, typename Visit>
  static void forEachLaunch(Self &self, Visit &&visit) {
    for (auto *segments : {&self.segments_, &self.heads_, &self.fills_})
      for (auto &launches : *segments)
        for (auto &launch : launches)
          visit(launch);
  }

  const Device &device_;
  CudaCode code_;
  const fbs::Target *target_ = nullptr;
  const KvCache *cache_ = nullptr;
  CudaExecutorOptions options_;
  StepLimits limits_;
  DeviceMemory weights_;
  DeviceMemory tokenArena_, logitArena_, partials_;
  PinnedMemory hostLogits_;
  std::unique_ptr<StepStaging> staging_;
  std::vector<std::vector<CudaLaunch>> segments_;
  std::vector<std::vector<CudaLaunch>> heads_; // of each exit
  std::vector<std::vector<CudaLaunch>> fills_; // of each exit; may be empty
  std::optional<ExitStates> exits_;            // of a target that has any
  DevicePointer deviceLogits_ = 0;
  std::uint64_t logitRowBytes_ = 0;
  std::int32_t logitCount_ = 0;

  // Rows, parts of a sequence, and which part of the program: first and last
  // segment, head, fill, and whether states are kept.
  using GraphKey = std::tuple<std::int32_t, std::int32_t, std::int32_t,
                              std::int32_t, std::int32_t, std::int32_t, bool>;
  std::map<GraphKey, GraphExecHandle> graphs_;
  std::uint64_t numGraphSteps_ = 0;
  std::optional<SampleLaunch> sample_;
  std::unique_ptr<LibraryGemm> library_; // null: no variant needs one
  std::uint64_t numChosenSteps_ = 0;
  LaunchObserver launchObserver_;

  bool profiling_ = false;
  // Events around each launch of a profiled step, and what they time.
  struct Timed {
    Event begin, end;
    CudaLaunch *launch = nullptr;
    double bytes = 0;
  };
  std::vector<Timed> timed_;
  std::size_t numTimed_ = 0;
};

} // namespace ingot::cuda
