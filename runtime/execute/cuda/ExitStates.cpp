#include "runtime/execute/cuda/ExitStates.h"

#include <algorithm>

namespace ingot::cuda {

Result<ExitStates> ExitStates::create(const Device &device,
                                      const CudaBindContext &context,
                                      const MemoryContract &contract) {
  const fbs::Target &target = *context.target;
  ExitStates made;
  made.device_ = &device;
  for (const fbs::ProgramSegment *segment : *target.segments()) {
    Cut &cut = made.cuts_.emplace_back();
    if (segment->output() < 0)
      continue;
    const fbs::Buffer &rows = *target.buffers()->Get(segment->output());
    if (rows.domain() != fbs::Domain::token)
      return Status::invalid("segment \"" + segment->name()->str() +
                             "\" does not end with a row for each token");
    cut = {context.bufferAddress(segment->output()),
           std::int32_t(rows.row_bytes() / sizeof(float))};
  }
  auto gathers =
      std::find_if(target.kernels()->begin(), target.kernels()->end(),
                   [](const auto *kernel) {
                     return kernel->op()->string_view() == "gather_rows";
                   });
  if (gathers == target.kernels()->end())
    return Status::invalid("a target with exits has no kernel gather_rows, "
                           "which brings the states at them back");
  made.gather_ =
      bindKernel(std::uint32_t(gathers - target.kernels()->begin()), context);
  std::uint64_t indexBytes =
      std::uint64_t(contract.stepTokens) * sizeof(std::int32_t);
  INGOT_ASSIGN_OR_RETURN(
      made.kept_,
      DeviceMemory::allocate(device, contract.hiddenBytes, "states at exits"));
  INGOT_ASSIGN_OR_RETURN(
      made.indices_,
      DeviceMemory::allocate(device, indexBytes, "rows at exits"));
  INGOT_ASSIGN_OR_RETURN(
      made.hostIndices_,
      PinnedMemory::allocate(device, indexBytes, "rows at exits"));
  return made;
}

Status ExitStates::check(const StepPlan &plan, const StepLimits &limits) const {
  bool isExit = std::find(limits.exitsAfter.begin(), limits.exitsAfter.end(),
                          plan.endSegment) != limits.exitsAfter.end();
  if (plan.keepsHidden && !isExit)
    return Status::internal("states are kept behind segment " +
                            std::to_string(plan.endSegment) +
                            ", where no exit is");
  for (std::int32_t row : plan.hiddenRows)
    if (row < 0 || row >= keptRows_ || plan.firstSegment != keptEnd_)
      return Status::internal(
          "row " + std::to_string(row) + " behind segment " +
          std::to_string(plan.firstSegment) + ": " + std::to_string(keptRows_) +
          " rows behind segment " + std::to_string(keptEnd_) + " are kept");
  return Status::ok();
}

Status ExitStates::stage(const StepPlan &plan, std::int32_t rows) {
  auto *indices = reinterpret_cast<std::int32_t *>(hostIndices_.data());
  std::fill(std::copy(plan.hiddenRows.begin(), plan.hiddenRows.end(), indices),
            indices + rows, 0);
  return device_->driver().copyToDevice(
      indices_.address(), indices, std::uint64_t(rows) * sizeof(std::int32_t),
      device_->stream());
}

Status ExitStates::restore(std::int32_t firstSegment, std::int32_t rows) {
  const Cut &cut = cuts_[std::size_t(firstSegment - 1)];
  abi::GatherRowsParams params = {
      reinterpret_cast<const float *>(kept_.address()),
      reinterpret_cast<const std::int32_t *>(indices_.address()),
      reinterpret_cast<float *>(cut.rows), rows, cut.width};
  abi::KernelGrid grid = abi::rowGrid(rows);
  void *arguments[] = {&params};
  return device_->driver()
      .launchKernel(gather_.function, grid.x, grid.y, grid.z,
                    unsigned(gather_.geometry.blockThreads), 1, 1,
                    unsigned(gather_.geometry.sharedBytes), device_->stream(),
                    arguments, nullptr)
      .withContext("states behind segment " + std::to_string(firstSegment));
}

Status ExitStates::keep(std::int32_t endSegment, std::int32_t rows) const {
  const Cut &cut = cuts_[std::size_t(endSegment - 1)];
  return device_->driver().copyOnDevice(
      kept_.address(), cut.rows,
      std::uint64_t(rows) * std::uint64_t(cut.width) * sizeof(float),
      device_->stream());
}

} // namespace ingot::cuda
