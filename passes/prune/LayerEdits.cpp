#include "passes/prune/LayerEdits.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace ingot {

LogicalResult takePruned(ModuleOp module, llvm::StringRef name,
                         llvm::ArrayRef<std::int64_t> shape,
                         llvm::StringRef pass) {
  auto weight = module.lookupSymbol<lm::WeightOp>(name);
  auto pruned = module.lookupSymbol<lm::WeightOp>((name + kPrunedSuffix).str());
  if (!weight)
    return module.emitError() << pass << ": there is no weight @" << name;
  if (!pruned)
    return weight.emitError() << pass << ": needs @" << name << kPrunedSuffix
                              << ", which the module lacks; compile makes it "
                                 "from the text of --calibrate";
  if (pruned.getShape() != shape)
    return pruned.emitError()
           << pass << ": has the shape [" << pruned.getShape()
           << "], expected [" << shape << "] as the options ask";
  weight.setShape(shape);
  weight.setEncodingAttr(pruned.getEncodingAttr());
  weight.setPartsAttr(pruned.getPartsAttr());
  weight.removeMethodAttr();
  weight.removeValueAttr();
  pruned->erase();
  return success();
}

LogicalResult takeHealed(ModuleOp module, llvm::StringRef pass) {
  llvm::SmallVector<lm::WeightOp> healed;
  for (lm::WeightOp weight : module.getOps<lm::WeightOp>())
    if (weight.getSymName().ends_with(kPrunedSuffix))
      healed.push_back(weight);
  for (lm::WeightOp pruned : healed) {
    std::string name =
        pruned.getSymName().drop_back(kPrunedSuffix.size()).str();
    auto weight = module.lookupSymbol<lm::WeightOp>(name);
    if (!weight || weight.getShape() != pruned.getShape())
      return pruned.emitError()
             << pass << ": was made for other options: nothing takes it";
    if (failed(
            takePruned(module, name, llvm::to_vector(weight.getShape()), pass)))
      return failure();
  }
  return success();
}

llvm::SmallVector<DictionaryAttr> modelLayers(ModuleOp module) {
  llvm::SmallVector<DictionaryAttr> layers;
  if (auto model = module->getAttrOfType<DictionaryAttr>(lm::kModelAttr))
    for (Attribute layer : model.getAs<ArrayAttr>("layers"))
      layers.push_back(cast<DictionaryAttr>(layer));
  return layers;
}

void setModelLayers(ModuleOp module, llvm::ArrayRef<DictionaryAttr> layers) {
  Builder builder(module.getContext());
  std::int64_t parameters = 0;
  for (lm::WeightOp weight : module.getOps<lm::WeightOp>())
    if (weight.getPartsAttr() &&
        !SymbolTable::symbolKnownUseEmpty(weight.getSymNameAttr(), module))
      parameters += weight.getNumElements();
  NamedAttrList model(module->getAttrOfType<DictionaryAttr>(lm::kModelAttr));
  llvm::SmallVector<Attribute> list(layers.begin(), layers.end());
  model.set("layers", builder.getArrayAttr(list));
  model.set("parameters", builder.getI64IntegerAttr(parameters));
  module->setAttr(lm::kModelAttr, model.getDictionary(module.getContext()));
}

DictionaryAttr withInteger(DictionaryAttr layer, llvm::StringRef key,
                           std::int64_t value) {
  NamedAttrList list(layer);
  list.set(key, Builder(layer.getContext()).getI64IntegerAttr(value));
  return list.getDictionary(layer.getContext());
}

void regroupStates(ModuleOp module) {
  struct Group {
    lm::StateOp like;
    std::int64_t kvHeads = 0, headDim = 0;
    llvm::SmallVector<lm::AttentionOp> layers;
  };
  llvm::SmallVector<Group> groups;
  module.walk([&](lm::AttentionOp op) {
    lm::StateOp state = lm::lookupState(op, op.getStateAttr());
    auto kvHeads = static_cast<std::int64_t>(op.getKvHeads());
    auto headDim = static_cast<std::int64_t>(op.getHeadDim());
    auto group = llvm::find_if(groups, [&](Group &one) {
      return one.kvHeads == kvHeads && one.headDim == headDim &&
             one.like.getWindow() == state.getWindow() &&
             one.like.getDtype() == state.getDtype();
    });
    if (group == groups.end()) {
      groups.push_back({state, kvHeads, headDim, {}});
      group = std::prev(groups.end());
    }
    group->layers.push_back(op);
  });
  llvm::SmallVector<lm::StateOp> old(module.getOps<lm::StateOp>());
  if (old.empty())
    return;
  OpBuilder builder(old.front());
  llvm::SmallVector<lm::StateOp> made;
  for (auto [index, group] : llvm::enumerate(groups)) {
    std::string name = "kv" + std::to_string(index);
    made.push_back(builder.create<lm::StateOp>(
        lm::nameLocation(module.getContext(), name), name,
        static_cast<std::int64_t>(group.layers.size()), group.kvHeads,
        group.headDim, group.like.getDtype(),
        static_cast<std::int64_t>(group.like.getWindow())));
    for (auto [layer, op] : llvm::enumerate(group.layers)) {
      op.setState(name);
      op.setStateLayer(layer);
    }
  }
  for (lm::StateOp state : old)
    state.erase();
}

} // namespace ingot
