// What the attributes of convolutions, pools and einsums come to: shared by type
// inference and lowering.
#pragma once

#include "dialects/onnx/Inference.h"

namespace ingot::onnx {

// A sliding window over the spatial dimensions. Output position o of a spatial
// dimension reads input positions o * stride - padBefore + k * dilation.
struct WindowPlan {
  Dims kernel, strides, dilations, padsBefore, padsAfter;
  Dims outputDims; // batch, channels, spatial
};

// Of Conv, ConvTranspose, MaxPool, AveragePool or LpPool.
mlir::FailureOr<WindowPlan> planWindows(mlir::Operation *op);

// Letters are numbered; `inputs` has the letter of each dimension.
struct EinsumPlan {
  llvm::SmallVector<llvm::SmallVector<unsigned>> inputs;
  llvm::SmallVector<unsigned> output;
  Dims sizes; // by letter
};
mlir::FailureOr<EinsumPlan> planEinsum(mlir::Operation *op);

} // namespace ingot::onnx
