// --prune-ffn
//
// 1. Read the option: a number of columns for each layer of lm.model.
// 2. For each layer that keeps fewer: find its feed-forward from the matrix
//    @layer.N.down back through the activation.
// 3. Let the weights be the smaller ones, and the values between them as wide.
#include "passes/prune/Passes.h"

#include "passes/prune/LayerEdits.h"

namespace ingot {
#define GEN_PASS_DEF_PRUNEFFNPASS
#include "passes/prune/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

struct PruneFfn : ingot::impl::PruneFfnPassBase<PruneFfn> {
  using PruneFfnPassBase::PruneFfnPassBase;

  lm::LinearOp findDown(std::int64_t layer) {
    std::string name = "layer." + std::to_string(layer) + ".down";
    lm::LinearOp found;
    getOperation().walk([&](lm::LinearOp op) {
      if (op.getWeight() == name)
        found = op;
    });
    return found;
  }

  // A matrix and its bias, of `columns` rows now.
  LogicalResult shrinkRows(lm::LinearOp linear, std::int64_t columns) {
    ModuleOp module = getOperation();
    std::int64_t inputs = lm::columnsOf(linear.getInput().getType());
    if (failed(takePruned(module, linear.getWeight(), {columns, inputs},
                          "prune-ffn")))
      return failure();
    if (linear.getBiasAttr() &&
        failed(takePruned(module, *linear.getBias(), {columns}, "prune-ffn")))
      return failure();
    linear.getResult().setType(lm::activationType(&getContext(), columns));
    return success();
  }

  LogicalResult prune(std::int64_t layer, std::int64_t columns) {
    lm::LinearOp down = findDown(layer);
    if (!down)
      return getOperation().emitError("prune-ffn: layer ")
             << layer << " has no feed-forward of linear operators";
    Operation *made = down.getInput().getDefiningOp();
    llvm::SmallVector<lm::LinearOp, 2> makers;
    if (auto gate = dyn_cast_or_null<lm::GateOp>(made)) {
      if (auto both = gate.getGateUp().getDefiningOp<lm::ConcatOp>())
        for (Value part : both.getParts())
          if (auto linear = part.getDefiningOp<lm::LinearOp>())
            makers.push_back(linear);
      if (makers.size() != 2 || !gate->hasOneUse() ||
          !gate.getGateUp().hasOneUse())
        return down.emitError("prune-ffn: expected a gate of two linear "
                              "operators that nothing else reads");
      gate.getGateUp().setType(lm::activationType(&getContext(), 2 * columns));
    } else if (auto activate = dyn_cast_or_null<lm::ActivateOp>(made)) {
      if (auto linear = activate.getInput().getDefiningOp<lm::LinearOp>())
        makers.push_back(linear);
    }
    if (makers.empty() || !made->hasOneUse())
      return down.emitError("prune-ffn: expected an activation of linear "
                            "operators that nothing else reads");
    for (lm::LinearOp linear : makers) {
      if (!linear->hasOneUse())
        return linear.emitError("prune-ffn: expected a value that its "
                                "feed-forward alone reads");
      if (failed(shrinkRows(linear, columns)))
        return failure();
    }
    made->getResult(0).setType(lm::activationType(&getContext(), columns));
    std::int64_t outputs = lm::columnsOf(down.getType());
    return takePruned(getOperation(), down.getWeight(), {outputs, columns},
                      "prune-ffn");
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::SmallVector<DictionaryAttr> layers = modelLayers(module);
    if (columns.size() != layers.size()) {
      module.emitError("prune-ffn: columns of ")
          << columns.size() << " layers, the model has " << layers.size();
      return signalPassFailure();
    }
    for (auto [index, layer] : llvm::enumerate(layers)) {
      std::int64_t before = layer.getAs<IntegerAttr>("ffn").getInt();
      std::int64_t after = columns[index];
      if (after == before)
        continue;
      if (after < 1 || after > before) {
        module.emitError("prune-ffn: layer ")
            << index << " to " << after << " columns, it has " << before;
        return signalPassFailure();
      }
      if (failed(prune(static_cast<std::int64_t>(index), after)))
        return signalPassFailure();
      layer = withInteger(layer, "ffn", after);
      numColumns += before - after;
    }
    if (failed(takeHealed(module, "prune-ffn")))
      return signalPassFailure();
    setModelLayers(module, layers);
  }
};

} // namespace
