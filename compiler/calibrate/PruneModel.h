// Chooses what a model can do without, by the inputs of its operators on a text,
// and heals what is left by least squares: the weights behind what was left out
// are fitted anew to the outputs that the whole model has. The result is a file of
// smaller weights and the pass that takes them (passes/prune).
#pragma once

#include "compiler/calibrate/CalibrateWeights.h"
#include "compiler/driver/CompileModel.h"
#include "runtime/support/Status.h"

#include <cstdint>

namespace ingot {

enum class PruneKind {
  Layers, // whole ones that change the stream least (block influence)
  Heads,  // key heads with their query heads
  Ffn,    // columns of the feed-forward
};

struct PruneRequest {
  PruneKind kind = PruneKind::Ffn;
  // Layers or key heads to leave out of the whole model, or the share of columns
  // to leave out of each layer.
  double amount = 0;
  bool heals = true;
};

// For the model of `compile` with the prunings that it names already. The text,
// tokens, memory and folder are those of calibration. Refuses an amount that
// leaves nothing, and what the blocks of the model do not allow, by name.
Result<Pruning> pruneModel(const CompileRequest &compile,
                           const PruneRequest &request,
                           const CalibrationOptions &options);

} // namespace ingot
