// --prune-heads
//
// 1. Read the option: a number of key heads for each layer of lm.model.
// 2. For each attention that keeps fewer: walk from its query, key and value back
//    through rotation and head norms to the linear operators, making each value
//    as wide as the heads that are left; the output's matrix reads fewer columns.
// 3. Group the states anew, by the geometry of their layers.
#include "passes/prune/Passes.h"

#include "passes/prune/LayerEdits.h"

namespace ingot {
#define GEN_PASS_DEF_PRUNEHEADSPASS
#include "passes/prune/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

struct PruneHeads : ingot::impl::PruneHeadsPassBase<PruneHeads> {
  using PruneHeadsPassBase::PruneHeadsPassBase;

  // From what attention reads back to the matrix that makes it.
  LogicalResult shrink(Value value, std::int64_t heads, std::int64_t headDim) {
    Type type = lm::activationType(&getContext(), heads * headDim);
    while (Operation *op = value.getDefiningOp()) {
      if (!op->hasOneUse())
        return op->emitError("prune-heads: expected a value that attention "
                             "alone reads");
      value.setType(type);
      if (auto linear = dyn_cast<lm::LinearOp>(op)) {
        std::int64_t inputs = lm::columnsOf(linear.getInput().getType());
        if (failed(takePruned(getOperation(), linear.getWeight(),
                              {heads * headDim, inputs}, "prune-heads")))
          return failure();
        return linear.getBiasAttr()
                   ? takePruned(getOperation(), *linear.getBias(),
                                {heads * headDim}, "prune-heads")
                   : success();
      }
      if (auto rotary = dyn_cast<lm::RotaryOp>(op)) {
        rotary.setHeads(heads);
        value = rotary.getInput();
      } else if (auto norm = dyn_cast<lm::HeadNormOp>(op);
                 norm && lm::lookupWeight(norm, norm.getWeightAttr())
                                 .getNumElements() == headDim) {
        norm.setHeads(heads);
        value = norm.getInput();
      } else {
        return op->emitError("prune-heads: expected rotations, norms that all "
                             "heads share, and a linear operator behind "
                             "attention");
      }
    }
    return getOperation().emitError(
        "prune-heads: attention reads an argument of the program");
  }

  LogicalResult prune(lm::AttentionOp attention, std::int64_t kvHeads) {
    auto headDim = static_cast<std::int64_t>(attention.getHeadDim());
    auto perKey = static_cast<std::int64_t>(attention.getHeads() /
                                            attention.getKvHeads());
    std::int64_t heads = kvHeads * perKey;
    if (attention.getSlopes())
      return attention.emitError(
          "prune-heads: heads with slopes of their own (ALiBi) are not pruned");
    if (!attention->hasOneUse())
      return attention.emitError("prune-heads: expected one reader");
    auto output = dyn_cast<lm::LinearOp>(*attention->user_begin());
    if (!output)
      return attention.emitError(
          "prune-heads: expected a linear operator that reads it");
    if (failed(shrink(attention.getQuery(), heads, headDim)) ||
        failed(shrink(attention.getKey(), kvHeads, headDim)) ||
        failed(shrink(attention.getValue(), kvHeads, headDim)))
      return failure();
    attention.setHeads(heads);
    attention.setKvHeads(kvHeads);
    attention.getResult().setType(
        lm::activationType(&getContext(), heads * headDim));
    return takePruned(getOperation(), output.getWeight(),
                      {lm::columnsOf(output.getType()), heads * headDim},
                      "prune-heads");
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::SmallVector<DictionaryAttr> layers = modelLayers(module);
    llvm::SmallVector<lm::AttentionOp> attentions;
    module.walk([&](lm::AttentionOp op) { attentions.push_back(op); });
    if (kvHeads.size() != layers.size() || attentions.size() != layers.size()) {
      module.emitError("prune-heads: key heads of ")
          << kvHeads.size() << " layers, the model has " << layers.size()
          << " and the program " << attentions.size() << " attentions";
      return signalPassFailure();
    }
    for (auto [index, attention] : llvm::enumerate(attentions)) {
      auto before = static_cast<std::int64_t>(attention.getKvHeads());
      auto perKey = static_cast<std::int64_t>(attention.getHeads()) / before;
      std::int64_t after = kvHeads[index];
      if (after == before)
        continue;
      if (after < 1 || after > before) {
        module.emitError("prune-heads: layer ")
            << index << " to " << after << " key heads, it has " << before;
        return signalPassFailure();
      }
      if (failed(prune(attention, after)))
        return signalPassFailure();
      layers[index] = withInteger(withInteger(layers[index], "kv_heads", after),
                                  "heads", after * perKey);
      numHeads += before - after;
    }
    if (failed(takeHealed(module, "prune-heads")))
      return signalPassFailure();
    regroupStates(module);
    setModelLayers(module, layers);
  }
};

} // namespace
