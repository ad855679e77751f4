// What is left of a model makes up for what is gone, projection by projection in
// the order of the program: each that adds to the residual stream is fitted, by
// least squares, to bring the stream of the pruned model, as it is by then, to
// where the whole model's is at that place. So what earlier layers could not make
// good later ones see, and correct as far as they can.
#pragma once

#include "compiler/calibrate/CalibrateWeights.h"
#include "compiler/driver/CompileModel.h"
#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ingot {

struct HealStreamRequest {
  CompileRequest compile;  // of the whole model
  mlir::ModuleOp imported; // its module
  Pruning pruning;         // of the pruned one, on top of the whole one's
  std::vector<std::int64_t> kept; // layers of the whole model that are left
  // The first layer, of those that are left, that is fitted; and whether that
  // begins with its output projection, or with the down projection.
  std::int64_t firstLayer = 0;
  bool beginsWithOutput = false;
  std::string folder; // for files that may go afterwards
  std::function<void(std::int64_t done, std::int64_t total)>
      progress; // windows
};

struct HealedWeight {
  std::int64_t layer = 0; // of those that are left
  const char *what = "";  // "o" or "down"
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
};

// Runs both models through the text layer by layer, from the states that the layer
// before has made, which are kept: memory is both engines', the sums of one
// projection and three states of each token. Projections that do not add to the
// stream (a norm stands between, experts) stay as they are.
Result<std::vector<HealedWeight>> healStream(const HealStreamRequest &request,
                                             const CalibrationOptions &options);

} // namespace ingot
