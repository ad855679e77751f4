// The raise passes as MLIR passes.
#pragma once

#include "dialects/onnx/OnnxDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace ingot {

#define GEN_PASS_DECL
#include "passes/raise/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/raise/Passes.h.inc"

} // namespace ingot
