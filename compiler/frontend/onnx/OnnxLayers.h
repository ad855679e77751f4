// Reads the layers of a decoder from a probed graph.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/onnx/OnnxProbe.h"

#include <functional>

namespace ingot {

// Fills sizes, layers and parameters of `spec` from the graph; everything else
// of it is left alone. Operators are those that the raise passes leave. `before`
// is what another probe of the same graph gave, or null. `usesPositions` is set
// where masks or rotations were computed for the probe's positions, so that other
// positions could show others.
Status readLayers(mlir::ModuleOp probed, OnnxFile &file,
                  const std::vector<ProbeInput> &inputs,
                  const ProbeSizes &sizes,
                  const std::function<void(const std::string &)> &explain,
                  const ModelSpec *before, ModelSpec &spec,
                  bool &usesPositions);

} // namespace ingot
