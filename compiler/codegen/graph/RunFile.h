// One ONNX file run on the tensors of a safetensors file, as native code that is made
// for their shapes and kept nowhere.
#pragma once

#include "runtime/support/Status.h"

#include <string>

namespace ingot::graph {

// Reads `inputs`, a tensor for each input of the graph `model` by its name (those with
// a default may be absent), and writes the graph's outputs to the file `outputs`.
// `report` gets a line for each tensor, and the seconds. Fails naming the input
// that is absent, unknown or of another type.
Status runOnnxFile(const std::string &model, const std::string &inputs,
                   const std::string &outputs, std::string &report);

} // namespace ingot::graph
