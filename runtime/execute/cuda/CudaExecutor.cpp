// create: 1. memory of the device in its pieces; 2. weights, each used one once;
//         3. bind every launch.
// run:    1. write and copy the step's arrays; 2. launch, as a graph where the step
//         fits a bucket; 3. copy the logits back, or the tokens that the device has
//         chosen from them, and wait.
#include "runtime/execute/cuda/CudaExecutor.h"

#include "runtime/plan/Container.h"
#include "runtime/plan/TargetWeights.h"

#include <algorithm>
#include <bit>

namespace ingot::cuda {
namespace {

// Rows of the largest bucket of graphs: what one tile of a linear kernel takes.
constexpr std::int32_t kMostGraphRows = 64;
constexpr std::uint64_t kWeightAlignment = container::kTensorAlignment;

class DeviceState final : public StateMemory {
public:
  DeviceState(const Device &device, DeviceMemory memory)
      : device_(device), memory_(std::move(memory)) {}

  std::uint8_t *data() const override {
    return reinterpret_cast<std::uint8_t *>(memory_.address());
  }
  // A failure stays with the context, so that the next step finds it.
  void copy(std::uint64_t to, std::uint64_t from,
            std::uint64_t bytes) override {
    if (device_.makeCurrent())
      (void)device_.driver().copyOnDevice(memory_.address() + to,
                                          memory_.address() + from, bytes,
                                          device_.stream());
  }
  void fill(std::uint64_t at, std::uint64_t bytes,
            std::uint16_t word) override {
    if (device_.makeCurrent())
      (void)device_.driver().fillWords16(memory_.address() + at, word,
                                         bytes / 2, device_.stream());
  }

private:
  const Device &device_;
  DeviceMemory memory_;
};

std::int32_t bucketOf(std::int32_t count) {
  return std::int32_t(std::bit_ceil(std::uint32_t(std::max(count, 1))));
}

} // namespace

Result<std::unique_ptr<StateMemory>> makeDeviceState(const Device &device,
                                                     std::uint64_t sizeBytes,
                                                     const std::string &what) {
  INGOT_ASSIGN_OR_RETURN(DeviceMemory memory,
                         DeviceMemory::allocate(device, sizeBytes, what));
  auto state = std::make_unique<DeviceState>(device, std::move(memory));
  // Zeros, as memory of the host is: what was there before is nobody's business.
  state->fill(0, sizeBytes / 2 * 2, 0);
  return std::unique_ptr<StateMemory>(std::move(state));
}

Status checkDeviceMemory(const Device &device, const MemoryContract &contract) {
  INGOT_ASSIGN_OR_RETURN(Device::MemoryInfo memory, device.memoryInfo());
  std::uint64_t needed = contract.weightsBytes + contract.privateBytes();
  if (needed <= memory.freeBytes)
    return Status::ok();
  return Status::outOfMemory(
      "needs " + std::to_string(needed) + " bytes on the device, " +
      device.properties().name + " has " + std::to_string(memory.freeBytes) +
      " of " + std::to_string(memory.totalBytes) +
      " free; ask for a smaller context or fewer sequences\n" +
      contract.describe());
}

Result<std::unique_ptr<CudaExecutor>>
CudaExecutor::create(const fbs::Plan &plan, const fbs::Target &target,
                     const Device &device, CudaCode code,
                     std::span<const std::uint8_t> weights,
                     const MemoryContract &contract, const KvCache &cache,
                     const CudaExecutorOptions &options) {
  std::unique_ptr<CudaExecutor> self(new CudaExecutor(device, std::move(code)));
  self->target_ = &target;
  self->cache_ = &cache;
  self->options_ = options;
  std::int32_t tokens = contract.stepTokens, rows = contract.logitRows;
  self->limits_ = {tokens, rows, std::max(contract.sequences, 1),
                   std::int32_t(plan.model()->vocab()),
                   std::int32_t(target.segments()->size())};
  auto take = [&](DeviceMemory &memory, std::uint64_t bytes,
                  const char *what) -> Status {
    INGOT_ASSIGN_OR_RETURN(memory, DeviceMemory::allocate(device, bytes, what));
    return Status::ok();
  };
  INGOT_RETURN_IF_ERROR(
      take(self->tokenArena_, contract.tokenArenaBytes, "token arena"));
  INGOT_RETURN_IF_ERROR(
      take(self->logitArena_, contract.logitArenaBytes, "logit arena"));
  INGOT_RETURN_IF_ERROR(
      take(self->partials_, contract.partialBytes, "parts of attention"));

  std::vector<AttentionShape> shapes;
  std::int64_t widest = 0; // columns of the values of a slot
  for (const fbs::ProgramSegment *segment : *target.segments())
    for (const fbs::Launch *launch : *segment->launches())
      if (auto *op = launch->params_as_Attention()) {
        AttentionShape shape = shapeOf(*op);
        if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end())
          shapes.push_back(shape);
        widest = std::max(widest, std::int64_t(shape.heads) * shape.headDim);
      }
  INGOT_ASSIGN_OR_RETURN(StepStaging staging,
                         StepStaging::create(device, self->limits_, contract,
                                             cache, std::move(shapes)));
  self->staging_ = std::make_unique<StepStaging>(std::move(staging));

  CudaBindContext context;
  context.plan = &plan;
  context.target = &target;
  context.functions = &self->code_.functions();
  INGOT_RETURN_IF_ERROR(
      self->uploadWeights(plan, target, weights, context.weights));
  context.tokenArena = self->tokenArena_.address();
  context.logitArena = self->logitArena_.address();
  context.tokenCapacity = tokens;
  context.logitCapacity = rows;
  context.cache = &cache;
  context.arrays = &self->staging_->arrays();
  context.shapes = &self->staging_->shapes();
  context.partialValues = self->partials_.address();
  context.partialStats =
      self->partials_.address() +
      std::uint64_t(contract.partialSlots) * std::uint64_t(widest) * 4;
  auto bind = [&](const fbs::ProgramSegment *segment) {
    std::vector<CudaLaunch> launches;
    if (segment)
      for (const fbs::Launch *launch : *segment->launches())
        launches.push_back(bindCudaLaunch(*launch, context));
    return launches;
  };
  for (const fbs::ProgramSegment *segment : *target.segments())
    self->segments_.push_back(bind(segment));
  if (target.exits() && target.exits()->size() != 0) {
    for (const fbs::Exit *exit : *target.exits()) {
      self->limits_.exitsAfter.push_back(std::int32_t(exit->after()));
      self->heads_.push_back(bind(exit->head()));
      self->fills_.push_back(bind(exit->fill()));
    }
    INGOT_ASSIGN_OR_RETURN(self->exits_,
                           ExitStates::create(device, context, contract));
  }
  self->deviceLogits_ = context.bufferAddress(target.logits());
  self->logitRowBytes_ = target.buffers()->Get(target.logits())->row_bytes();
  INGOT_ASSIGN_OR_RETURN(
      self->hostLogits_,
      PinnedMemory::allocate(device, self->logitRowBytes_ * std::uint64_t(rows),
                             "logits"));
  auto chooses = std::find_if(
      target.kernels()->begin(), target.kernels()->end(),
      [](const fbs::Kernel *k) { return k->op()->string_view() == "sample"; });
  if (options.choosesTokens && chooses != target.kernels()->end()) {
    auto index = std::uint32_t(chooses - target.kernels()->begin());
    INGOT_ASSIGN_OR_RETURN(
        self->sample_,
        SampleLaunch::create(device, bindKernel(index, context),
                             self->deviceLogits_, rows, self->limits_.vocab));
  }
  if (LibraryUse use = libraryUseOf(target); use.isUsed()) {
    if (!options.library)
      return Status::internal("the plan leaves products to a library, and "
                              "there is none");
    INGOT_ASSIGN_OR_RETURN(
        self->library_,
        LibraryGemm::create(
            device, options.library, use,
            bindKernel(std::uint32_t(use.finishKernel), context), tokens));
  }
  INGOT_RETURN_IF_ERROR(device.synchronize());
  return self;
}

CudaExecutor::~CudaExecutor() {
  if (!device_.makeCurrent())
    return;
  (void)device_.synchronize();
  for (auto &[size, graph] : graphs_)
    (void)device_.driver().graphExecDestroy(graph);
}

Status CudaExecutor::uploadWeights(const fbs::Plan &plan,
                                   const fbs::Target &target,
                                   std::span<const std::uint8_t> weights,
                                   std::vector<DevicePointer> &addresses) {
  INGOT_ASSIGN_OR_RETURN(
      weights_,
      DeviceMemory::allocate(
          device_, weightBytesOfTarget(plan, target, kWeightAlignment),
          "weights"));
  std::vector<bool> used = weightsOfTarget(plan, target);
  addresses.assign(used.size(), 0);
  INGOT_ASSIGN_OR_RETURN(Uploader uploader, Uploader::create(device_));
  DevicePointer next = weights_.address();
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i])
      continue;
    const fbs::Weight &weight = *plan.weights()->Get(unsigned(i));
    addresses[i] = next;
    INGOT_RETURN_IF_ERROR(
        uploader.add(next, weights.subspan(weight.offset(), weight.size())));
    next += (weight.size() + kWeightAlignment - 1) / kWeightAlignment *
            kWeightAlignment;
  }
  return uploader.finish();
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

// Every row of a graph is its own split tile, so a step fits where no sequence would
// be read by wide tiles and its parts have slots, in a bucket that has slots too.
CudaExecutor::StepSize CudaExecutor::sizeOf(const StepPlan &plan) const {
  StepSize size{plan.numRows(), std::int32_t(plan.logitRows.size()),
                std::int32_t(plan.sequences.size()), 0};
  // A bucket's padding has states only where they are computed or brought back.
  bool hasStates = plan.firstSegment == 0 || !plan.hiddenRows.empty();
  if (!options_.useGraphs || profiling_ || launchObserver_ || !hasStates ||
      size.rows == 0 || size.rows > kMostGraphRows ||
      size.logitRows > size.rows)
    return size;
  std::int32_t rows = bucketOf(size.rows);
  if (rows > limits_.maxTokens || rows > limits_.maxLogitRows)
    return size;
  std::int32_t splits = 1;
  for (const StepSequence &sequence : plan.sequences) {
    if (sequence.numRows > kMostSplitRows)
      return size;
    splits = std::max(
        splits, abi::numSplitsOf(sequence.firstPosition, sequence.numRows, 0));
  }
  return {rows, rows, limits_.maxSequences, bucketOf(splits)};
}

Result<CudaExecutor::StepSize> CudaExecutor::enqueue(const StepPlan &plan,
                                                     const KvCache &cache) {
  if (&cache != cache_)
    return Status::internal("the executor is bound to another cache");
  INGOT_RETURN_IF_ERROR(checkStepPlan(plan, limits_));
  INGOT_RETURN_IF_ERROR(checkExits(plan));
  INGOT_RETURN_IF_ERROR(device_.makeCurrent());
  logitCount_ = 0;
  StepSize size = sizeOf(plan);
  INGOT_RETURN_IF_ERROR(staging_->fill(plan, cache, size.rows, size.logitRows));
  // Slots may have run out, which makes tiles that a graph has no launch for.
  for (const AttentionTiles &tiles : staging_->tiles())
    if (size.splits > 0 &&
        (tiles.numWideTiles > 0 || tiles.maxSplits > size.splits)) {
      size = {plan.numRows(), std::int32_t(plan.logitRows.size()),
              std::int32_t(plan.sequences.size()), 0};
      break;
    }
  INGOT_RETURN_IF_ERROR(staging_->copy(device_));
  if (!plan.hiddenRows.empty())
    INGOT_RETURN_IF_ERROR(exits_->stage(plan, size.rows));
  numTimed_ = 0;
  INGOT_RETURN_IF_ERROR(size.splits > 0 ? launchGraph(plan, size)
                                        : launchAll(plan, size));
  if (plan.keepsHidden)
    exits_->setKept(plan.endSegment, plan.numRows());
  return size;
}

Status CudaExecutor::checkExits(const StepPlan &plan) const {
  if (exits_)
    INGOT_RETURN_IF_ERROR(exits_->check(plan, limits_));
  else if (plan.keepsHidden || !plan.hiddenRows.empty())
    return Status::internal("a step with exits, which this target has none of");
  if (plan.exitFill != -1 && fills_[std::size_t(plan.exitFill)].empty())
    return Status::internal("exit " + std::to_string(plan.exitFill) +
                            " has no fill");
  return Status::ok();
}

// And waits for all that the stream has.
Status CudaExecutor::copyLogits(const StepPlan &plan) {
  std::int32_t numLogits = std::int32_t(plan.logitRows.size());
  if (numLogits > 0)
    INGOT_RETURN_IF_ERROR(device_.driver().copyToHost(
        hostLogits_.data(), deviceLogits_,
        logitRowBytes_ * std::uint64_t(numLogits), device_.stream()));
  INGOT_RETURN_IF_ERROR(device_.synchronize());
  logitCount_ = numLogits;
  return Status::ok();
}

// A step that failed halfway may have left copies on the stream that read what the
// next step writes.
Status CudaExecutor::settled(Status status) {
  if (!status)
    (void)device_.synchronize();
  return status;
}

Status CudaExecutor::run(const StepPlan &plan, const KvCache &cache) {
  Result<StepSize> size = enqueue(plan, cache);
  if (!size)
    return settled(size.status());
  INGOT_RETURN_IF_ERROR(settled(copyLogits(plan)));
  countUses(*size, plan);
  return addProfile();
}

Status CudaExecutor::runAndChoose(const StepPlan &plan, const KvCache &cache,
                                  std::span<const RowChoice> choices) {
  if (choices.size() != plan.logitRows.size() || choices.empty())
    return Status::internal(std::to_string(choices.size()) + " choices for " +
                            std::to_string(plan.logitRows.size()) +
                            " rows of logits");
  Result<StepSize> size = enqueue(plan, cache);
  if (!size)
    return settled(size.status());
  INGOT_RETURN_IF_ERROR(settled(sample_->enqueue(choices)));
  INGOT_RETURN_IF_ERROR(device_.synchronize());
  bool isAny = true;
  for (std::int32_t token : sample_->tokens()) {
    if (token < -1 || token >= limits_.vocab)
      return Status::internal("the kernel sample chose token " +
                              std::to_string(token) + " of a vocabulary of " +
                              std::to_string(limits_.vocab));
    isAny = isAny && token >= 0;
  }
  if (!isAny)
    INGOT_RETURN_IF_ERROR(settled(copyLogits(plan)));
  ++numChosenSteps_;
  countUses(*size, plan);
  return addProfile();
}

Status CudaExecutor::launchGraph(const StepPlan &plan, const StepSize &size) {
  const Driver &driver = device_.driver();
  GraphKey key = {size.rows,     size.splits,   plan.firstSegment, endOf(plan),
                  plan.exitHead, plan.exitFill, plan.keepsHidden};
  auto known = graphs_.find(key);
  if (known == graphs_.end()) {
    INGOT_RETURN_IF_ERROR(
        driver.streamBeginCapture(device_.stream(), kCaptureThreadLocal));
    Status launched = launchAll(plan, size);
    // The capture is ended whatever became of the launches.
    GraphHandle graph = nullptr;
    Status ended = driver.streamEndCapture(device_.stream(), &graph);
    GraphExecHandle exec = nullptr;
    if (launched.isOk() && ended.isOk())
      ended = driver.graphInstantiate(&exec, graph, 0);
    if (graph)
      (void)driver.graphDestroy(graph);
    INGOT_RETURN_IF_ERROR(launched);
    INGOT_RETURN_IF_ERROR(ended);
    known = graphs_.emplace(key, exec).first;
  }
  INGOT_RETURN_IF_ERROR(driver.graphLaunch(known->second, device_.stream()));
  ++numGraphSteps_;
  return Status::ok();
}

std::int32_t CudaExecutor::endOf(const StepPlan &plan) const {
  return plan.endSegment == -1 ? limits_.numSegments : plan.endSegment;
}

// Rows that go on from kept ones are others than those of the step before: their
// rotation tables come from their positions again.
template <typename Visit>
Status CudaExecutor::forEachOfStep(const StepPlan &plan, Visit &&visit) {
  auto visitAll = [&](std::vector<CudaLaunch> &launches) {
    for (CudaLaunch &launch : launches)
      INGOT_RETURN_IF_ERROR(visit(launch));
    return Status::ok();
  };
  std::int32_t end = endOf(plan);
  if (!plan.hiddenRows.empty())
    for (std::int32_t s = 0; s < plan.firstSegment; ++s)
      for (CudaLaunch &launch : segments_[std::size_t(s)])
        if (launch.op == fbs::Params::RopeTable)
          INGOT_RETURN_IF_ERROR(visit(launch));
  for (std::int32_t s = plan.firstSegment; s < end; ++s)
    INGOT_RETURN_IF_ERROR(visitAll(segments_[std::size_t(s)]));
  if (plan.exitHead != -1)
    INGOT_RETURN_IF_ERROR(visitAll(heads_[std::size_t(plan.exitHead)]));
  if (plan.exitFill != -1)
    INGOT_RETURN_IF_ERROR(visitAll(fills_[std::size_t(plan.exitFill)]));
  return Status::ok();
}

std::int32_t CudaExecutor::rowsOf(fbs::Domain domain,
                                  const StepSize &size) const {
  return domain == fbs::Domain::logit_row ? size.logitRows
         : domain == fbs::Domain::slot
             ? size.rows * std::int32_t(target_->slots())
             : size.rows;
}

// The state at a cut outlives its head, so it is kept behind that.
Status CudaExecutor::launchAll(const StepPlan &plan, const StepSize &size) {
  if (!plan.hiddenRows.empty())
    INGOT_RETURN_IF_ERROR(exits_->restore(plan.firstSegment, size.rows));
  INGOT_RETURN_IF_ERROR(forEachOfStep(plan, [&](CudaLaunch &launch) {
    Status status = launchOne(launch, size);
    return status ? status
                  : status.withContext("launch \"" + launch.name + "\"");
  }));
  return plan.keepsHidden ? exits_->keep(plan.endSegment, size.rows)
                          : Status::ok();
}

Status CudaExecutor::launchOne(CudaLaunch &launch, const StepSize &size) {
  std::int32_t rows = rowsOf(launch.domain, size);
  if (rows == 0)
    return Status::ok();
  CudaVariant &variant = launch.variantFor(rows);
  launch.setRows(rows, size.sequences);
  Timed *timed = nullptr;
  if (profiling_) {
    if (numTimed_ == timed_.size()) {
      Timed made;
      INGOT_ASSIGN_OR_RETURN(made.begin, Event::create(device_));
      INGOT_ASSIGN_OR_RETURN(made.end, Event::create(device_));
      timed_.push_back(std::move(made));
    }
    timed = &timed_[numTimed_++];
    timed->launch = &launch;
    timed->bytes = launch.fixedBytes + launch.bytesPerRow * rows +
                   launch.bytesPerPosition * staging_->positions();
    INGOT_RETURN_IF_ERROR(timed->begin.record());
  }
  INGOT_RETURN_IF_ERROR(launchVariant(launch, variant.kernel, rows, size));
  if (launchObserver_) {
    INGOT_RETURN_IF_ERROR(device_.synchronize());
    INGOT_RETURN_IF_ERROR(launchObserver_(launch, rows));
  }
  return timed ? timed->end.record() : Status::ok();
}

Status CudaExecutor::launchVariant(CudaLaunch &launch,
                                   const BoundKernel &kernel, std::int32_t rows,
                                   const StepSize &size) {
  if (launch.op == fbs::Params::Attention)
    return launchAttention(launch, kernel, rows, size);
  if (library_ && target_->kernels()->Get(kernel.kernel)->op()->string_view() ==
                      kLibraryLinear)
    return library_->run(launch.params.linear, kernel);
  return launchKernel(kernel, launch.grid(kernel.geometry, rows),
                      &launch.params);
}

Status CudaExecutor::launchAttention(CudaLaunch &launch, BoundKernel wide,
                                     std::int32_t rows, const StepSize &size) {
  const std::size_t shape = std::size_t(launch.shape);
  const DeviceArrays::Shape &arrays = staging_->arrays().shapes[shape];
  const AttentionTiles &tiles = staging_->tiles()[shape];
  abi::CudaAttentionParams &params = launch.params.attention;
  // A graph has a tile for each of its rows, of as many parts as its bucket says.
  bool isGraph = size.splits > 0;
  std::int32_t splitTiles = isGraph ? rows : tiles.numSplitTiles;
  std::int32_t splits = isGraph ? size.splits : tiles.maxSplits;
  auto use = [&](DevicePointer list, std::int32_t count) {
    params.tiles = reinterpret_cast<const abi::AttentionTile *>(list);
    params.numTiles = count;
  };
  if (splitTiles > 0) {
    use(arrays.splitTiles, splitTiles);
    INGOT_RETURN_IF_ERROR(launchKernel(
        launch.split,
        abi::splitGrid(splitTiles, splits, params.heads, params.kvHeads),
        &params));
  }
  if (!isGraph && tiles.numWideTiles > 0) {
    use(arrays.wideTiles, tiles.numWideTiles);
    INGOT_RETURN_IF_ERROR(launchKernel(
        wide,
        abi::attentionGrid(tiles.numWideTiles, params.heads, params.kvHeads),
        &params));
  }
  return launchKernel(launch.merge, abi::rowGrid(rows), &launch.mergeParams);
}

Status CudaExecutor::launchKernel(const BoundKernel &kernel,
                                  abi::KernelGrid grid, void *params) {
  void *arguments[] = {params};
  return device_.driver().launchKernel(kernel.function, grid.x, grid.y, grid.z,
                                       unsigned(kernel.geometry.blockThreads),
                                       1, 1,
                                       unsigned(kernel.geometry.sharedBytes),
                                       device_.stream(), arguments, nullptr);
}

Status CudaExecutor::read(const void *onDevice,
                          std::span<std::uint8_t> to) const {
  INGOT_RETURN_IF_ERROR(device_.driver().copyToHost(
      to.data(), reinterpret_cast<DevicePointer>(onDevice), to.size(),
      device_.stream()));
  return device_.synchronize();
}

std::span<const float> CudaExecutor::logits(std::int32_t row) const {
  if (row < 0 || row >= logitCount_)
    return {};
  return {reinterpret_cast<const float *>(hostLogits_.data() +
                                          logitRowBytes_ * std::uint64_t(row)),
          std::size_t(limits_.vocab)};
}

//===----------------------------------------------------------------------===//
// What ran
//===----------------------------------------------------------------------===//

void CudaExecutor::countUses(const StepSize &size, const StepPlan &plan) {
  (void)forEachOfStep(plan, [&](CudaLaunch &launch) {
    std::int32_t rows = rowsOf(launch.domain, size);
    if (rows > 0) {
      CudaVariant &variant = launch.variantFor(rows);
      ++variant.uses;
      launch.latestKernel = variant.kernel.kernel;
    }
    return Status::ok();
  });
}

Status CudaExecutor::addProfile() {
  for (std::size_t i = 0; i < numTimed_; ++i) {
    float milliseconds = 0;
    INGOT_RETURN_IF_ERROR(device_.driver().eventElapsedTime(
        &milliseconds, timed_[i].begin.handle(), timed_[i].end.handle()));
    CudaLaunch &launch = *timed_[i].launch;
    launch.seconds += double(milliseconds) / 1e3;
    launch.bytes += timed_[i].bytes;
    ++launch.calls;
  }
  numTimed_ = 0;
  return Status::ok();
}

void CudaExecutor::setProfiling(bool enabled) {
  profiling_ = enabled;
  forEachLaunch(*this, [](CudaLaunch &launch) {
    launch.seconds = launch.bytes = 0;
    launch.calls = 0;
  });
}

std::vector<LaunchProfile> CudaExecutor::profile() const {
  std::vector<LaunchProfile> entries;
  forEachLaunch(*this, [&](const CudaLaunch &launch) {
    const fbs::Kernel &kernel = *target_->kernels()->Get(launch.latestKernel);
    entries.push_back({launch.name, kernel.op()->str(), kernel.name()->str(),
                       launch.layer, launch.calls, launch.seconds,
                       launch.bytes});
  });
  return entries;
}

namespace {

double weightBytesOf(const std::vector<CudaLaunch> &launches) {
  double sum = 0;
  for (const CudaLaunch &launch : launches)
    sum += launch.fixedBytes;
  return sum;
}

} // namespace

double CudaExecutor::weightBytesPerStep() const {
  double sum = 0;
  for (const auto &launches : segments_)
    sum += weightBytesOf(launches);
  return sum;
}

double CudaExecutor::weightBytesToExit(std::int32_t exit) const {
  double sum = weightBytesOf(heads_[std::size_t(exit)]);
  for (std::int32_t s = 0; s < limits_.exitsAfter[std::size_t(exit)]; ++s)
    sum += weightBytesOf(segments_[std::size_t(s)]);
  return sum;
}

std::vector<VariantUse> CudaExecutor::variantUses() const {
  std::vector<VariantUse> uses;
  forEachLaunch(*this, [&](const CudaLaunch &launch) {
    for (const CudaVariant &variant : launch.variants)
      uses.push_back(
          {launch.name,
           target_->kernels()->Get(variant.kernel.kernel)->name()->str(),
           variant.uses});
  });
  return uses;
}

} // namespace ingot::cuda
