// From a decoder's ONNX export to the effective model: the graph is probed,
// decomposed parts are raised to the operators that say what they mean, and the
// layers are read from the end backwards. Weights stay where they lie.
#pragma once

#include "compiler/frontend/ImportOptions.h"
#include "compiler/frontend/ModelSpec.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace ingot {

// Whether the file begins as an ONNX model does (its first field is ir_version).
bool looksLikeOnnx(std::span<const std::uint8_t> bytes);

// `path` is the .onnx file; tokenizer and config.json, where there are any, lie
// beside it, or beside its folder where that is called onnx. Fails naming the
// operator at which the graph stops being a decoder that is known. Of
// the options, explainFusion is used.
Result<ModelSpec> importOnnx(const std::string &path,
                             const ImportOptions &options = {});

} // namespace ingot
