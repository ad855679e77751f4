// What is known of small integer tensors before anything runs: shapes, axes and
// indices are computed by operators like everything else in ONNX, and type
// inference and lowering need their values.
#pragma once

#include "dialects/onnx/OnnxDialect.h"

#include <optional>

namespace ingot::onnx {

// Elements in row-major order; an element that depends on an unknown dimension
// or on an input of the graph is absent. Booleans are 0 and 1.
struct ShapeValue {
  llvm::SmallVector<std::int64_t> dims;
  llvm::SmallVector<std::optional<std::int64_t>> elements;

  bool isKnown() const;
};

// Evaluates the operators that gave an integer or boolean tensor, as far as they
// are of the kind that shapes are computed with. Empty where they are not, where
// the shape itself is unknown, or where it has more than 65536 elements.
std::optional<ShapeValue> shapeValue(mlir::Value value);

// All elements of a value, if all are known.
std::optional<llvm::SmallVector<std::int64_t>> knownInts(mlir::Value value);

// The elements of a constant integer or boolean attribute.
std::optional<ShapeValue> shapeValue(mlir::ElementsAttr attr);

} // namespace ingot::onnx
