// Raising of decomposed parts of an onnx graph to the operators that say what
// they mean. Each rewrite keeps the graph's values: an operator takes the place
// of the last one of its pattern, what else uses intermediates keeps them, and a
// pattern whose attributes do not all match is left alone.
#pragma once

#include "dialects/onnx/OnnxDialect.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <optional>
#include <string>

namespace ingot::raise {

// Receives a line for each pattern that was raised, and for each that was begun
// and left alone, with the reason. May be null.
using Explain = std::function<void(const std::string &)>;

// com.microsoft's skip norms become a sum and a norm; mean squares, roots and
// products become RMSNormalization, with a mean LayerNormalization.
unsigned raiseNorms(mlir::ModuleOp module, const Explain &explain);
// x cos + rotate_half(x) sin becomes RotaryEmbedding.
unsigned raiseRotary(mlir::ModuleOp module, const Explain &explain);
// x sigmoid(x) becomes Swish, the forms of the normal distribution function Gelu.
unsigned raiseGatedMlp(mlir::ModuleOp module, const Explain &explain);
// softmax(cap(q k^T scale) + mask) v over repeated heads and a past that is
// concatenated becomes Attention.
unsigned fuseAttention(mlir::ModuleOp module, const Explain &explain);

// All four, in this order.
void raiseAll(mlir::ModuleOp module, const Explain &explain);

} // namespace ingot::raise
