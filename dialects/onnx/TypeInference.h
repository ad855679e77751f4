// Which types the results of an onnx operator have: the one place that knows,
// used by the importer, by specialisation to given input shapes, and by the
// verifier. Dimensions may be unknown; values of shape inputs are taken from
// where they are known (ShapeValues).
#pragma once

#include "dialects/onnx/OnnxDialect.h"

#include "mlir/IR/Operation.h"

namespace ingot::onnx {

// No tensor has more elements than this.
inline constexpr std::int64_t kMaxElements = std::int64_t(1) << 48;

// The types of all results by operands and attributes alone, whatever types the
// results have now. Reports why there are none.
mlir::FailureOr<llvm::SmallVector<mlir::Type>>
inferResultTypes(mlir::Operation *op);

// Whether a value of either type may be one of the other: same elements, no
// dimension that contradicts.
bool areCompatible(mlir::Type a, mlir::Type b);

// What both types know together. They are compatible.
mlir::Type meet(mlir::Type a, mlir::Type b);

} // namespace ingot::onnx
