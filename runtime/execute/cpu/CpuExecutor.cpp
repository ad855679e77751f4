#include "runtime/execute/cpu/CpuExecutor.h"

#include "runtime/execute/cpu/FloatMode.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace ingot {

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::create(
    const fbs::Plan &plan, const fbs::Target &target,
    const std::uint8_t *weights, std::vector<abi::KernelFn> functions,
    const MemoryContract &contract, const KvCache &cache, WorkerPool &pool) {
  if (functions.size() != target.kernels()->size())
    return Status::internal(
        std::to_string(functions.size()) + " functions for " +
        std::to_string(target.kernels()->size()) + " kernels");
  std::unique_ptr<CpuExecutor> self(new CpuExecutor());
  self->target_ = &target;
  self->cache_ = &cache;
  self->pool_ = &pool;
  self->functions_ = std::move(functions);
  INGOT_ASSIGN_OR_RETURN(
      self->tokenArena_,
      HostMemory::allocate(contract.tokenArenaBytes, "token arena"));
  INGOT_ASSIGN_OR_RETURN(
      self->logitArena_,
      HostMemory::allocate(contract.logitArenaBytes, "logit arena"));

  // Rounding up gives capacity, not permission: limits are what was asked.
  std::int32_t tokens = contract.stepTokens, rows = contract.logitRows;
  self->limits_ = {tokens, rows, std::max(contract.sequences, 1),
                   std::int32_t(plan.model()->vocab()),
                   std::int32_t(target.segments()->size())};
  StepArrays &arrays = self->arrays_;
  arrays.tokens.resize(tokens);
  arrays.positions.resize(tokens);
  arrays.rotaryLengths.resize(tokens);
  arrays.tokenSequence.resize(tokens);
  arrays.logitRows.resize(rows);
  for (std::size_t g = 0; g < cache.numGroups(); ++g) {
    StepArrays::Group group;
    std::int64_t perSequence =
        std::int64_t(contract.context) / cache.geometry(g).blockTokens + 1;
    group.blockTable.resize(perSequence * self->limits_.maxSequences);
    group.sequences.resize(self->limits_.maxSequences);
    arrays.groups.push_back(std::move(group));
  }

  BindContext &context = self->context_;
  context.plan = &plan;
  context.target = &target;
  context.weights = weights;
  context.functions = &self->functions_;
  context.tokenArena = self->tokenArena_.data();
  context.logitArena = self->logitArena_.data();
  context.tokenCapacity = tokens;
  context.logitCapacity = rows;
  context.cache = &cache;
  context.arrays = &arrays;
  auto bind = [&](const fbs::ProgramSegment &segment) {
    std::vector<BoundLaunch> launches;
    for (const fbs::Launch *launch : *segment.launches())
      launches.push_back(bindLaunch(*launch, context));
    return launches;
  };
  for (const fbs::ProgramSegment *segment : *target.segments())
    self->segments_.push_back(bind(*segment));
  for (const fbs::ProgramSegment *segment : *target.segments()) {
    Cut cut;
    if (segment->output() >= 0) {
      const fbs::Buffer &rows = *target.buffers()->Get(segment->output());
      if (rows.domain() != fbs::Domain::token)
        return Status::invalid("segment \"" + segment->name()->str() +
                               "\" does not end with a row for each token");
      cut = {reinterpret_cast<float *>(context.bufferData(segment->output())),
             std::int64_t(rows.row_bytes() / sizeof(float))};
    }
    self->cuts_.push_back(cut);
  }
  if (target.exits())
    for (const fbs::Exit *exit : *target.exits()) {
      self->limits_.exitsAfter.push_back(std::int32_t(exit->after()));
      self->heads_.push_back(bind(*exit->head()));
      self->fills_.emplace_back();
      if (exit->fill())
        self->fills_.back() = bind(*exit->fill());
    }
  INGOT_ASSIGN_OR_RETURN(self->hidden_,
                         HostMemory::allocate(contract.hiddenBytes, "exits"));
  const fbs::Buffer &logits = *target.buffers()->Get(target.logits());
  self->logits_ =
      reinterpret_cast<const float *>(context.bufferData(target.logits()));
  self->logitStride_ = logits.row_bytes() / sizeof(float);
  self->logitColumns_ = logits.columns();
  self->isEncoder_ = plan.model()->embedding() != nullptr;
  return self;
}

Status CpuExecutor::fillArrays(const StepPlan &plan, const KvCache &cache) {
  std::copy(plan.tokens.begin(), plan.tokens.end(), arrays_.tokens.begin());
  std::copy(plan.logitRows.begin(), plan.logitRows.end(),
            arrays_.logitRows.begin());
  positions_ = 0;
  for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
    const StepSequence &sequence = plan.sequences[s];
    for (std::int32_t r = 0; r < sequence.numRows; ++r) {
      arrays_.positions[sequence.firstRow + r] = sequence.firstPosition + r;
      arrays_.rotaryLengths[sequence.firstRow + r] = sequence.rotaryLength;
      arrays_.tokenSequence[sequence.firstRow + r] = std::int32_t(s);
    }
    positions_ += sequence.firstPosition + sequence.numRows;
  }
  for (std::size_t g = 0; g < arrays_.groups.size(); ++g) {
    StepArrays::Group &group = arrays_.groups[g];
    std::size_t offset = 0;
    for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
      const StepSequence &sequence = plan.sequences[s];
      auto table = cache.blockTable(sequence.id, g);
      std::int32_t blockTokens = cache.geometry(g).blockTokens;
      std::size_t needed = (std::size_t(sequence.firstPosition) +
                            sequence.numRows + blockTokens - 1) /
                           blockTokens;
      if (table.size() < needed || offset + needed > group.blockTable.size())
        return Status::internal("sequence " + std::to_string(sequence.id) +
                                ": " + std::to_string(table.size()) +
                                " blocks reserved, the step needs " +
                                std::to_string(needed));
      group.sequences[s] = {sequence.firstRow, sequence.numRows,
                            sequence.firstPosition, std::int32_t(offset)};
      // Blocks behind the window are never read; block 0 stands for them.
      for (std::size_t b = 0; b < needed; ++b)
        group.blockTable[offset + b] = std::max(table[b], 0);
      offset += needed;
    }
  }
  return Status::ok();
}

Status CpuExecutor::run(const StepPlan &plan, const KvCache &cache) {
  if (&cache != cache_)
    return Status::internal("the executor is bound to another cache");
  INGOT_RETURN_IF_ERROR(checkStepPlan(plan, limits_));
  INGOT_RETURN_IF_ERROR(checkHidden(plan));
  if (isEncoder_)
    for (const StepSequence &sequence : plan.sequences)
      if (sequence.firstPosition != 0)
        return Status::internal("sequence " + std::to_string(sequence.id) +
                                " begins at position " +
                                std::to_string(sequence.firstPosition) +
                                "; an encoder takes whole texts");
  INGOT_RETURN_IF_ERROR(fillArrays(plan, cache));
  std::int32_t end =
      plan.endSegment == -1 ? limits_.numSegments : plan.endSegment;
  FloatModeScope mode;
  if (!plan.hiddenRows.empty())
    restoreHidden(plan);
  for (std::int32_t s = plan.firstSegment; s < end; ++s)
    runSegment(segments_[s], plan);
  if (plan.keepsHidden)
    keepHidden(end, plan.numRows());
  if (plan.exitHead != -1)
    runSegment(heads_[plan.exitHead], plan);
  if (plan.exitFill != -1)
    runSegment(fills_[plan.exitFill], plan);
  logitCount_ = std::int32_t(plan.logitRows.size());
  latestEnd_ = end;
  latestRows_ = plan.numRows();
  return Status::ok();
}

std::span<const float> CpuExecutor::hidden(std::int32_t row) const {
  if (latestEnd_ < 1 || row < 0 || row >= latestRows_)
    return {};
  const Cut &cut = cuts_[std::size_t(latestEnd_ - 1)];
  if (!cut.rows)
    return {};
  return {cut.rows + cut.width * row, std::size_t(cut.width)};
}

Status CpuExecutor::setHidden(std::int32_t end, std::span<const float> states) {
  if (end < 1 || end > limits_.numSegments || !cuts_[std::size_t(end - 1)].rows)
    return Status::internal("behind segment " + std::to_string(end) +
                            " is no cut to set states at");
  std::int64_t width = cuts_[std::size_t(end - 1)].width;
  if (std::ssize(states) % width != 0 ||
      states.size_bytes() > hidden_.sizeBytes())
    return Status::internal(std::to_string(states.size()) +
                            " numbers are no rows of " + std::to_string(width) +
                            ", or more than the states that are kept");
  std::memcpy(hidden_.data(), states.data(), states.size_bytes());
  keptEnd_ = end;
  keptRows_ = std::int32_t(std::ssize(states) / width);
  return Status::ok();
}

Status CpuExecutor::checkHidden(const StepPlan &plan) const {
  bool isExit = std::find(limits_.exitsAfter.begin(), limits_.exitsAfter.end(),
                          plan.endSegment) != limits_.exitsAfter.end();
  if (plan.keepsHidden && !isExit)
    return Status::internal("states are kept behind segment " +
                            std::to_string(plan.endSegment) +
                            ", where no exit is");
  if (plan.exitFill != -1 && fills_[std::size_t(plan.exitFill)].empty())
    return Status::internal("exit " + std::to_string(plan.exitFill) +
                            " has no fill");
  for (std::int32_t row : plan.hiddenRows)
    if (row < 0 || row >= keptRows_ || plan.firstSegment != keptEnd_)
      return Status::internal(
          "row " + std::to_string(row) + " behind segment " +
          std::to_string(plan.firstSegment) + ": " + std::to_string(keptRows_) +
          " rows behind segment " + std::to_string(keptEnd_) + " are kept");
  return Status::ok();
}

void CpuExecutor::keepHidden(std::int32_t end, std::int32_t rows) {
  const Cut &cut = cuts_[std::size_t(end - 1)];
  std::memcpy(hidden_.data(), cut.rows,
              std::size_t(cut.width) * std::size_t(rows) * sizeof(float));
  keptEnd_ = end;
  keptRows_ = rows;
}

// The rows are others than those of the step before: their states come from
// the kept ones, their rotation tables from their positions.
void CpuExecutor::restoreHidden(const StepPlan &plan) {
  const Cut &cut = cuts_[std::size_t(plan.firstSegment - 1)];
  auto *kept = reinterpret_cast<const float *>(hidden_.data());
  for (std::int32_t row = 0; row < plan.numRows(); ++row)
    std::memcpy(cut.rows + cut.width * row,
                kept + cut.width * plan.hiddenRows[std::size_t(row)],
                std::size_t(cut.width) * sizeof(float));
  for (std::int32_t s = 0; s < plan.firstSegment; ++s)
    for (BoundLaunch &launch : segments_[std::size_t(s)])
      if (launch.op == fbs::Params::RopeTable)
        runLaunch(launch, plan.numRows(), std::int32_t(plan.sequences.size()));
}

void CpuExecutor::runSegment(std::vector<BoundLaunch> &launches,
                             const StepPlan &plan) {
  auto numLogits = std::int32_t(plan.logitRows.size());
  for (BoundLaunch &launch : launches) {
    std::int32_t rows =
        launch.domain == fbs::Domain::logit_row ? numLogits : plan.numRows();
    if (launch.domain == fbs::Domain::slot)
      rows *= std::int32_t(target_->slots());
    if (rows <= 0)
      continue;
    runLaunch(launch, rows, std::int32_t(plan.sequences.size()));
    if (tap_)
      tap_({*launch.planned, *target_->kernels()->Get(launch.latestKernel),
            rows, plan});
  }
}

std::span<const std::uint8_t> CpuExecutor::bufferRow(std::int32_t buffer,
                                                     std::int32_t row) const {
  const fbs::Buffer &rows = *target_->buffers()->Get(std::uint32_t(buffer));
  return {context_.bufferData(buffer) + rows.row_bytes() * std::uint64_t(row),
          rows.row_bytes()};
}

void CpuExecutor::runLaunch(BoundLaunch &launch, std::int32_t rows,
                            std::int32_t numSequences) {
  BoundVariant &variant = launch.variantFor(rows);
  ++variant.uses;
  launch.latestKernel = variant.kernel;
  launch.setRows(rows, numSequences);
  if (inputObserver_)
    inputObserver_(launch, rows);
  std::int32_t grain = launch.grain(rows, positions_, pool_->numWorkers());
  bool readsCache = launch.bytesPerPosition > 0;
  if (!profiling_ && !readsCache) {
    pool_->launch(variant.function, &launch.params, launch.numItems(rows),
                  grain);
    return;
  }
  auto start = std::chrono::steady_clock::now();
  pool_->launch(variant.function, &launch.params, launch.numItems(rows), grain);
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  if (readsCache)
    attentionSeconds_ += taken.count();
  if (!profiling_)
    return;
  launch.seconds += taken.count();
  launch.bytes += launch.fixedBytes + launch.bytesPerRow * rows +
                  launch.bytesPerPosition * positions_;
  ++launch.calls;
}

std::span<const float> CpuExecutor::logits(std::int32_t row) const {
  if (row < 0 || row >= logitCount_)
    return {};
  return {logits_ + logitStride_ * std::uint64_t(row), logitColumns_};
}

void CpuExecutor::setProfiling(bool enabled) {
  profiling_ = enabled;
  forEachLaunch(*this, [](BoundLaunch &launch) {
    launch.seconds = launch.bytes = 0;
    launch.calls = 0;
  });
}

std::vector<LaunchProfile> CpuExecutor::profile() const {
  std::vector<LaunchProfile> entries;
  forEachLaunch(*this, [&](const BoundLaunch &launch) {
    const fbs::Kernel &kernel = *target_->kernels()->Get(launch.latestKernel);
    entries.push_back({launch.name, kernel.op()->str(), kernel.name()->str(),
                       launch.layer, launch.calls, launch.seconds,
                       launch.bytes});
  });
  return entries;
}

namespace {

double weightBytesOf(const std::vector<BoundLaunch> &launches) {
  double sum = 0;
  for (const BoundLaunch &launch : launches)
    sum += launch.fixedBytes;
  return sum;
}

} // namespace

double CpuExecutor::weightBytesPerStep() const {
  double sum = 0;
  for (const auto &segment : segments_)
    sum += weightBytesOf(segment);
  return sum;
}

double CpuExecutor::weightBytesToExit(std::int32_t exit) const {
  double sum = weightBytesOfHead(exit);
  for (std::int32_t s = 0; s < limits_.exitsAfter[std::size_t(exit)]; ++s)
    sum += weightBytesOf(segments_[std::size_t(s)]);
  return sum;
}

double CpuExecutor::weightBytesOfHead(std::int32_t exit) const {
  return weightBytesOf(heads_[std::size_t(exit)]);
}

double CpuExecutor::weightBytesOfFill(std::int32_t exit) const {
  return weightBytesOf(fills_[std::size_t(exit)]);
}

std::vector<VariantUse> CpuExecutor::variantUses() const {
  std::vector<VariantUse> uses;
  forEachLaunch(*this, [&](const BoundLaunch &launch) {
    for (const BoundVariant &variant : launch.variants)
      uses.push_back({launch.name,
                      target_->kernels()->Get(variant.kernel)->name()->str(),
                      variant.uses});
  });
  return uses;
}

} // namespace ingot
