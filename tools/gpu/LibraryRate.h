// How fast NVIDIA's cuBLASLt multiplies on a device: what our own kernels are measured
// against.
#pragma once

#include "runtime/execute/cuda/CublasLt.h"
#include "runtime/execute/cuda/Device.h"

namespace ingot::cuda {

// Seconds of y = W x, W [size, size] and x [size, size] of float16 with float32 sums and
// results: the best of a few rounds, by the device's events. Every result is checked.
Result<double> measureLibraryProduct(const Device &device,
                                     const CublasLt &library, int size);

} // namespace ingot::cuda
