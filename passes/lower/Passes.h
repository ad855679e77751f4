// Passes of the lower phase, from lm to plan. Options stand on the passes, so
// that a pipeline is a string.
#pragma once

#include "dialects/plan/Plan.h"

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace ingot {

#define GEN_PASS_DECL
#include "passes/lower/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/lower/Passes.h.inc"

} // namespace ingot
