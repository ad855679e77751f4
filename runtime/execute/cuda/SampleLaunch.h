// The kernel that chooses tokens from the logits of a step, where they are: its
// arrays, page-locked on the host and on the device, and its launch.
#pragma once

#include "runtime/execute/TokenChooser.h"
#include "runtime/execute/cuda/BindCudaLaunch.h"
#include "runtime/execute/cuda/Device.h"

#include <cstdint>
#include <span>

namespace ingot::cuda {

class SampleLaunch {
public:
  // `logits` is [maxRows, vocab] of float32 on the device.
  static Result<SampleLaunch> create(const Device &device, BoundKernel kernel,
                                     DevicePointer logits, std::int32_t maxRows,
                                     std::int32_t vocab);

  // Puts the launch for so many rows behind what the stream has, with the copies of
  // `choices` to it and of the tokens from it.
  Status enqueue(std::span<const RowChoice> choices);
  // Once the stream has been waited for.
  std::span<const std::int32_t> tokens() const;

private:
  const Device *device_ = nullptr;
  BoundKernel kernel_;
  abi::CudaSampleParams params_ = {};
  PinnedMemory hostRows_, hostTokens_;
  DeviceMemory rows_, tokens_;
  std::size_t numTokens_ = 0;
};

} // namespace ingot::cuda
