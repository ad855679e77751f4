// The passes of pruning: create functions and registration.
#pragma once

#include "dialects/lm/LmDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace ingot {

#define GEN_PASS_DECL
#include "passes/prune/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/prune/Passes.h.inc"

} // namespace ingot
