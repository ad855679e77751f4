// The states at early exits: rows at a cut that are kept from one step to the next,
// and brought back as the rows of another step. All of it lies on the device; a graph
// may hold both directions.
#pragma once

#include "runtime/execute/cuda/BindCudaLaunch.h"
#include "runtime/execute/cuda/Device.h"
#include "runtime/memory/MemoryContract.h"
#include "runtime/schedule/StepPlan.h"

#include <cstdint>
#include <vector>

namespace ingot::cuda {

class ExitStates {
public:
  // Of a target with exits, which has been verified. `context` has its buffers;
  // InvalidInput where it has no kernel that gathers rows.
  static Result<ExitStates> create(const Device &device,
                                   const CudaBindContext &context,
                                   const MemoryContract &contract);

  // Whether the step may go on from what is kept; Internal says why not.
  Status check(const StepPlan &plan, const StepLimits &limits) const;

  // Tells the device which kept rows a step goes on from; those from its own on to
  // `rows` are padding. Nothing of an earlier step may still be read.
  Status stage(const StepPlan &plan, std::int32_t rows);

  // Each in the order of the stream, rows of the size that is launched.
  Status restore(std::int32_t firstSegment, std::int32_t rows);
  Status keep(std::int32_t endSegment, std::int32_t rows) const;

  // The states that are kept from now on: those behind `endSegment`.
  void setKept(std::int32_t endSegment, std::int32_t rows) {
    keptEnd_ = endSegment;
    keptRows_ = rows;
  }

private:
  struct Cut {
    DevicePointer rows = 0; // [stepTokens, width] float32; 0: no cut
    std::int32_t width = 0;
  };

  const Device *device_ = nullptr;
  std::vector<Cut> cuts_; // that each segment ends at
  BoundKernel gather_;
  DeviceMemory kept_;    // [stepTokens, width of the cut] float32
  DeviceMemory indices_; // [stepTokens], of a row among the kept
  PinnedMemory hostIndices_;
  std::int32_t keptEnd_ = -1; // segments behind which the kept rows lie
  std::int32_t keptRows_ = 0;
};

} // namespace ingot::cuda
