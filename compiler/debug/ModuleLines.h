// A module as lines that can be compared before and after a pass: layer by layer,
// with the names of operators where MLIR has numbers, so that a pass changes the
// lines of what it changed and no others.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ingot::debug {

// Lines by layer; -1 is what belongs to none. "layer.3." reads "layer.N." in the
// lines of layer 3 and "layer.2." "layer.N-1.", so that layers that are alike have the
// same ones.
std::map<std::int64_t, std::vector<std::string>>
linesByLayer(mlir::ModuleOp module);

// "-", "+" or " " and a line each; three lines of context around changes.
std::string lineDiff(const std::vector<std::string> &before,
                     const std::vector<std::string> &after);

} // namespace ingot::debug
