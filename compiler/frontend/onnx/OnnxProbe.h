// A decoder's graph looked at for one set of sizes. Shapes are chosen so that a
// dimension tells what it is, inputs that every decoder has get the values that a
// server gives them (an attention mask of ones, positions that follow the past),
// and what the graph makes of those alone (masks, rotation tables) can be computed.
#pragma once

#include "compiler/frontend/onnx/OnnxFile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <string>
#include <vector>

namespace ingot {

struct ProbeSizes {
  std::int64_t batch = 1, positions = 0, past = 0;
  std::int64_t total() const { return positions + past; }
};

// What an input of the graph is to a decoder.
enum class InputRole {
  Tokens,
  Mask,
  Positions,
  PastKey,
  PastValue,
  Past // keys, then values, in one tensor [2, batch, heads, positions, size]
};
inline bool isPast(InputRole role) {
  return role == InputRole::PastKey || role == InputRole::PastValue ||
         role == InputRole::Past;
}

struct ProbeInput {
  std::string name;
  InputRole role;
  std::int64_t layer = 0; // of a past
};

// The roles of the inputs of an imported graph, by names that exporters give
// (input_ids, attention_mask, position_ids, past_key_values.3.key, past_3 ...). Fails
// naming an input that has none.
Result<std::vector<ProbeInput>> inputRoles(mlir::ModuleOp module);

// The graph for these sizes, mask and positions being constants.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
probeGraph(mlir::ModuleOp module, const std::vector<ProbeInput> &inputs,
           const ProbeSizes &sizes);

// The values of tensors of a probed graph that depend on no input; fails where
// one does. Layers make their masks and rotation tables each anew: what is
// computed by the same operators as before is not computed again.
class ValueEvaluator {
public:
  ValueEvaluator(mlir::ModuleOp probed, const OnnxFile &file)
      : probed_(probed), file_(file) {}
  Result<std::vector<OnnxTensor>> evaluate(llvm::ArrayRef<mlir::Value> values);

private:
  mlir::ModuleOp probed_;
  const OnnxFile &file_;
  std::map<std::string, std::vector<OnnxTensor>> known_; // by the graph's text
};

// Elements as doubles (floats, integers, booleans).
std::vector<double> numbersOf(const OnnxTensor &tensor);

} // namespace ingot
