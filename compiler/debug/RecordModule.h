// Runs an lm module on the reference executor and records the result of every
// operator.
#pragma once

#include "compiler/debug/Recording.h"
#include "compiler/reference/LmExecutor.h"

#include <span>

namespace ingot::debug {

Result<Recording> recordModule(const LmExecutor &executor,
                               std::span<const std::int32_t> tokens,
                               const RecordOptions &options = {});

// A result of an operator under a name of the imported model: columns [first,
// first + columns) of it.
struct NamedResult {
  std::string name;
  mlir::Value value;
  std::int64_t first = 0;
  std::int64_t columns = 0;
};
std::vector<NamedResult> namedResults(mlir::Operation &op);

// Which values of a run have a row for each slot of the experts.
class SlotOrders {
public:
  // Call behind each operator.
  void follow(mlir::Operation &op, LmRun &run);
  // Slot of each row; null: the value has a row for each position.
  const std::vector<std::int64_t> *of(mlir::Value value) const;

private:
  std::vector<std::vector<std::int64_t>> orders_;
  llvm::DenseMap<mlir::Value, std::size_t> values_;
};

// "heads = 4, kv_heads = 2, window = 16": the attributes of an operator, and the
// encoding of its weight.
std::string settingsOf(mlir::Operation &op);
// The weight that an operator multiplies with or looks up in; null: none.
lm::WeightOp mainWeight(mlir::Operation &op);
// The name of what attention reads or a cache write leaves: "layer.3" of either.
std::string attentionPrefix(mlir::Operation &op);

} // namespace ingot::debug
