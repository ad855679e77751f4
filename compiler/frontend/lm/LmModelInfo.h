// The dictionary `lm.model` of a ModelSpec (keys: dialects/lm/LmModelAttr.cpp).
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/lm/LmBuilder.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace ingot {

mlir::DictionaryAttr modelInfo(mlir::MLIRContext &context,
                               const ModelSpec &spec,
                               const LmBuildOptions &options);

} // namespace ingot
