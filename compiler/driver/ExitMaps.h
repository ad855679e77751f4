// What fit-exits writes and compile reads: a safetensors file that holds, for
// each exit after N layers,
//
//   exit.N.map         [H, H]  what is added to the state, times the state
//   exit.N.bias        [H]     and for itself
//   exit.N.confidence  [bins]  how often the exit's first choice is the model's,
//                              by its probability; may be absent
//
// The maps become parameters of the model, beside those of its own files.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace ingot {

struct ExitMaps {
  std::map<std::int64_t, std::vector<float>> confidences; // by layers
};

// Adds the maps of `exits` to the parameters of `spec`. Refuses a file that
// lacks one of them, or holds anything else.
Result<ExitMaps> addExitMaps(const std::string &path,
                             const std::vector<std::int64_t> &exits,
                             ModelSpec &spec);

// Gives the imported module the confidences, where insert-early-exits looks.
void addExitConfidences(const ExitMaps &maps, mlir::ModuleOp module);

} // namespace ingot
