// A graph for given inputs: every shape becomes a number, so that it can be
// lowered. Native code of a graph is made for one set of input shapes, and, where
// shapes follow from the values of inputs, for those values.
#pragma once

#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace ingot::graph {

// What is known of one input of the graph.
struct InputBinding {
  mlir::RankedTensorType type; // static; null where the input is not given
  mlir::ElementsAttr value;    // null where only the type is known
};

// A copy of `module` (compiler/frontend/onnx/OnnxImporter) in which inputs have
// the bound types, bound values are constants, integers that follow from shapes
// and constants are constants, conditions that are known have chosen their branch, every type is static and nothing is unused. An input that
// is not given must have a default. Fails naming the operator whose result has
// no static shape.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
specializeGraph(mlir::ModuleOp module, llvm::ArrayRef<InputBinding> inputs);

} // namespace ingot::graph
