// What a step tells the kernels: tokens, positions, block tables, tiles of attention.
// Written by the host into page-locked memory and copied to the same places of the
// device, whose addresses never change: kernels and graphs are bound to them once.
#pragma once

#include "runtime/execute/cuda/BindCudaLaunch.h"
#include "runtime/execute/cuda/Device.h"
#include "runtime/memory/KvCache.h"
#include "runtime/memory/MemoryContract.h"
#include "runtime/schedule/StepPlan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot::cuda {

class StepStaging {
public:
  // `limits` bounds the steps, `shapes` are those of the plan's attention.
  static Result<StepStaging> create(const Device &device,
                                    const StepLimits &limits,
                                    const MemoryContract &contract,
                                    const KvCache &cache,
                                    std::vector<AttentionShape> shapes);
  // What create() takes of the device.
  static std::uint64_t bytesFor(const StepLimits &limits,
                                const MemoryContract &contract,
                                const KvCache &cache, std::size_t numShapes);

  // Writes the step. Rows from its own on to `rows`, and logits rows to
  // `logitRows`, become padding (CudaAbi.h). Nothing of an earlier step may still be
  // read.
  Status fill(const StepPlan &plan, const KvCache &cache, std::int32_t rows,
              std::int32_t logitRows);
  // Copies what fill() has written, in the order of the stream.
  Status copy(const Device &device);

  const DeviceArrays &arrays() const { return deviceArrays_; }
  const std::vector<AttentionShape> &shapes() const { return shapes_; }
  // Of each shape, in the step that was filled.
  const std::vector<AttentionTiles> &tiles() const { return tiles_; }
  // Positions that the step's queries see, summed.
  double positions() const { return positions_; }

private:
  struct Places;
  template <typename T> struct Array {
    std::uint64_t offset = 0;
    std::span<T> host;
  };
  struct Group {
    Array<std::int32_t> blockTable;
    Array<abi::SequenceSpan> sequences;
    std::size_t usedBlocks = 0;
    std::vector<std::int32_t> offsets; // into the table, of each sequence
  };
  struct Shape {
    Array<abi::AttentionTile> splitTiles, wideTiles;
    Array<abi::TokenSlots> tokenSlots;
  };

  PinnedMemory host_;
  DeviceMemory device_;
  Array<std::int32_t> tokens_, positionsOf_, rotaryLengths_, tokenSequence_,
      logitRows_;
  std::vector<Group> groups_;
  std::vector<Shape> shapeArrays_;
  std::vector<AttentionShape> shapes_;
  std::vector<AttentionTiles> tiles_;
  DeviceArrays deviceArrays_;
  std::int32_t maxSlots_ = 0;
  std::uint64_t fixedBytes_ = 0; // of all arrays but the block tables
  double positions_ = 0;
};

} // namespace ingot::cuda
