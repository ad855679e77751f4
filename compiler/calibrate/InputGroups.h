// The matrices that calibration chooses codes for, by the rows that they read:
// those of one value of the program belong together, since what the rows are is
// seen once, and scaling their columns is undone in what makes the value.
#pragma once

#include "dialects/lm/LmOps.h"
#include "passes/quantize/QuantizeSpec.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace ingot {

struct CalibratedMatrix {
  lm::WeightOp weight; // of the imported module
  lm::WeightOp bias;   // may be null
  QuantizeSpec spec;
};

// Where scales of columns can be undone.
enum class FoldInto {
  Nothing,
  Norm,   // the norm that makes the rows: its weight, and its bias
  Values, // the projection of v that attention mixes: its rows
  Up,     // the projection that the gate multiplies with: its rows
};

struct InputGroup {
  std::string launch; // that reads the rows, in the deployed plan
  std::int64_t layer = -1;
  std::int64_t columns = 0;
  std::vector<CalibratedMatrix> matrices;
  FoldInto fold = FoldInto::Nothing;
  lm::WeightOp normWeight, normBias; // of Norm
  float normOffset = 0;
  // Of Values and Up: the group and matrix of it whose rows are scaled.
  std::size_t producerGroup = 0, producerMatrix = 0;
  // Of Values: a column of the rows comes from this column of v.
  std::vector<std::int64_t> ties;
};

// `imported` is the module that gets the codes; `marked` is the same one behind
// simplify and quantize-weights with mark-only, in the same context. In the order
// of the program. Fails where a marked matrix has no operator in `imported`.
Result<std::vector<InputGroup>> findInputGroups(mlir::ModuleOp imported,
                                                mlir::ModuleOp marked);

} // namespace ingot
