// From a specialised onnx graph to loops over buffers: one function that is
// given its arena, inputs, constants and outputs as pointers.
#pragma once

#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <vector>

namespace ingot::graph {

// What an argument of the function holds.
struct ArgumentSource {
  enum class Kind { Arena, Input, Constant, Weight, Output };
  explicit ArgumentSource(Kind kind) : kind(kind) {}

  Kind kind;
  unsigned index = 0;       // of the input or output
  mlir::ElementsAttr value; // of a constant
  std::uint32_t source = 0; // of a weight: the file, and its bytes
  std::uint64_t offset = 0, sizeBytes = 0;
};

struct LoweredGraph {
  mlir::OwningOpRef<mlir::ModuleOp> module; // func, linalg, scf, arith, math
  std::vector<ArgumentSource> arguments;
  std::vector<mlir::RankedTensorType> outputTypes;
  std::uint64_t arenaBytes = 0;
};

inline constexpr const char *kGraphFunction = "graph";

// Fails naming the operator that has no lowering, or not of these attributes.
Result<LoweredGraph> lowerGraph(mlir::ModuleOp specialized);

} // namespace ingot::graph
