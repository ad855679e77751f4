// --prune-layers
//
// 1. Read the option; layers that the model does not have fail, and so does
//    leaving out all.
// 2. Let weights that were healed be what healing made of them.
// 3. For each layer: what reads its stream reads the one that it began with; its
//    operators and weights go.
// 4. Number the layers behind anew, in locations and names of weights; the states
//    and lm.model follow.
#include "passes/prune/Passes.h"

#include "passes/prune/LayerEdits.h"

#include "mlir/IR/AttrTypeSubElements.h"

namespace ingot {
#define GEN_PASS_DEF_PRUNELAYERSPASS
#include "passes/prune/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

// The layer that a name begins with ("layer.3.attn_norm"); -1 where none does.
std::int64_t layerOf(llvm::StringRef name) {
  std::int64_t layer = -1;
  if (!name.consume_front("layer.") || name.consumeInteger(10, layer) ||
      !name.starts_with("."))
    return -1;
  return layer;
}

struct PruneLayers : ingot::impl::PruneLayersPassBase<PruneLayers> {
  using PruneLayersPassBase::PruneLayersPassBase;

  LogicalResult removeLayer(lm::ProgramOp program, std::int64_t layer) {
    llvm::SmallVector<Operation *> ops;
    for (Operation &op : program.getEntryBlock())
      if (layerOf(lm::locationName(op.getLoc())) == layer)
        ops.push_back(&op);
    if (ops.empty() || ops.back()->getNumResults() != 1)
      return program.emitOpError("has no residual stream behind layer ")
             << layer;
    llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end());
    Value out = ops.back()->getResult(0), in;
    for (Operation *op : ops) {
      for (Value operand : op->getOperands()) {
        Operation *maker = operand.getDefiningOp();
        if ((maker && (inside.contains(maker) || isa<lm::RopeTableOp>(maker))))
          continue;
        if (operand.getType() != out.getType() || (in && in != operand))
          return op->emitError("prune-layers: reads a value from before its "
                               "layer that is not the residual stream");
        in = operand;
      }
      for (Value result : op->getResults())
        for (Operation *user : result.getUsers())
          if (result != out && !inside.contains(user))
            return user->emitError("prune-layers: reads a value of layer ")
                   << layer << " that is not the residual stream";
    }
    if (!in)
      return program.emitOpError("prune-layers: layer ")
             << layer << " reads no residual stream";
    out.replaceAllUsesWith(in);
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    return success();
  }

  // Layers by their new numbers.
  void renumber(llvm::ArrayRef<std::int64_t> newNumber) {
    ModuleOp module = getOperation();
    auto renamed = [&](llvm::StringRef name) -> StringAttr {
      std::int64_t layer = layerOf(name);
      if (layer < 0 || newNumber[layer] == layer)
        return {};
      llvm::StringRef rest = name.drop_front(6);
      rest = rest.drop_until([](char c) { return c == '.'; });
      return StringAttr::get(&getContext(),
                             "layer." + llvm::Twine(newNumber[layer]) + rest);
    };
    for (lm::WeightOp weight : module.getOps<lm::WeightOp>())
      if (StringAttr name = renamed(weight.getSymName()))
        weight.setSymNameAttr(name);
    AttrTypeReplacer replacer;
    replacer.addReplacement(
        [&](FlatSymbolRefAttr symbol) -> std::optional<Attribute> {
          if (StringAttr name = renamed(symbol.getValue()))
            return FlatSymbolRefAttr::get(name);
          return std::nullopt;
        });
    replacer.addReplacement([&](NameLoc location) -> std::optional<Attribute> {
      if (StringAttr name = renamed(location.getName().getValue()))
        return NameLoc::get(name, location.getChildLoc());
      return std::nullopt;
    });
    replacer.recursivelyReplaceElementsIn(module.getOperation(),
                                          /*replaceAttrs=*/true,
                                          /*replaceLocs=*/true);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::SmallVector<DictionaryAttr> infos = modelLayers(module);
    auto count = static_cast<std::int64_t>(infos.size());
    llvm::DenseSet<std::int64_t> removed;
    for (std::int64_t layer : layers)
      if (layer < 0 || layer >= count || !removed.insert(layer).second) {
        module.emitError("prune-layers: layer ")
            << layer << ", expected each of 0 to " << count - 1
            << " once at most";
        return signalPassFailure();
      }
    if (static_cast<std::int64_t>(removed.size()) >= count) {
      module.emitError("prune-layers: no layer is left");
      return signalPassFailure();
    }
    if (failed(takeHealed(module, "prune-layers")))
      return signalPassFailure();
    for (lm::ProgramOp program : module.getOps<lm::ProgramOp>())
      for (std::int64_t layer = 0; layer < count; ++layer)
        if (removed.contains(layer) && failed(removeLayer(program, layer)))
          return signalPassFailure();
    llvm::SmallVector<std::int64_t> newNumber;
    llvm::SmallVector<DictionaryAttr> kept;
    for (std::int64_t layer = 0; layer < count; ++layer) {
      newNumber.push_back(static_cast<std::int64_t>(kept.size()));
      if (!removed.contains(layer))
        kept.push_back(withInteger(infos[layer], "index",
                                   static_cast<std::int64_t>(kept.size())));
    }
    for (lm::WeightOp weight :
         llvm::make_early_inc_range(module.getOps<lm::WeightOp>()))
      if (std::int64_t layer = layerOf(weight.getSymName());
          layer >= 0 && removed.contains(layer)) {
        if (!SymbolTable::symbolKnownUseEmpty(weight.getSymNameAttr(),
                                              module)) {
          weight.emitError("prune-layers: is of layer ")
              << layer << ", which goes, and read by one that stays";
          return signalPassFailure();
        }
        weight.erase();
      }
    renumber(newNumber);
    regroupStates(module);
    setModelLayers(module, kept);
    numLayers += removed.size();
  }
};

} // namespace
