// Runs an imported graph on tensors in memory.
#pragma once

#include "compiler/codegen/graph/GraphCode.h"
#include "compiler/frontend/onnx/OnnxFile.h"

#include <optional>

namespace ingot::graph {

// The outputs of `module` (importOnnxGraph of `file`) for these inputs, absent
// where the default is wanted. Makes native code for the inputs' shapes first,
// and where some shape depends on values of inputs, for the values of those of
// integers with at most 4096 elements too; `boundValues` then says so.
Result<std::vector<OnnxTensor>>
runGraph(mlir::ModuleOp module, const OnnxFile &file,
         const std::vector<std::optional<OnnxTensor>> &inputs,
         bool *boundValues = nullptr);

// The outputs of a lowered graph; makes its native code.
Result<std::vector<OnnxTensor>>
runLowered(LoweredGraph &graph, const OnnxFile &file,
           const std::vector<std::optional<OnnxTensor>> &inputs);

} // namespace ingot::graph
