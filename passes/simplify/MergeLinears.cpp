// Merging is exact: each output row of a linear operator has its own sum.
#include "passes/simplify/MergeLinears.h"

#include "dialects/lm/Provenance.h"
#include "passes/quantize/Calibrated.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace ingot {
namespace {

bool hasOneUse(FlatSymbolRefAttr symbol, SymbolTable &symbols) {
  auto uses = SymbolTable::getSymbolUses(symbol.getAttr(), symbols.getOp());
  return uses && llvm::hasSingleElement(*uses);
}

std::string siblingName(llvm::StringRef name, llvm::StringRef lastComponent) {
  auto [prefix, last] = name.rsplit('.');
  return last.empty() ? lastComponent.str()
                      : (prefix + "." + lastComponent).str();
}

// A weight with the parts of `from`, one after another, under a new name.
FlatSymbolRefAttr mergeWeights(llvm::ArrayRef<lm::WeightOp> from,
                               const std::string &name, SymbolTable &symbols) {
  lm::WeightOp first = from.front();
  OpBuilder builder(first);
  llvm::SmallVector<Attribute> parts;
  llvm::SmallVector<std::int64_t> shape(first.getShape());
  shape[0] = 0;
  for (lm::WeightOp weight : from) {
    llvm::append_range(parts, weight.getPartsAttr());
    shape[0] += weight.getRows();
  }
  llvm::SmallVector<Location> locations;
  for (lm::WeightOp weight : from)
    locations.push_back(weight.getLoc());
  auto merged = builder.create<lm::WeightOp>(
      lm::derivedLocation(builder.getContext(), name, locations),
      builder.getStringAttr(name), builder.getDenseI64ArrayAttr(shape),
      first.getEncodingAttr(), first.getLayoutAttr(),
      builder.getArrayAttr(parts), ElementsAttr(), first.getMethodAttr());
  // Takes another name where this one is taken.
  auto symbol = FlatSymbolRefAttr::get(symbols.insert(merged));
  llvm::SmallVector<lm::WeightOp> calibrated;
  for (lm::WeightOp weight : from)
    if (lm::WeightOp codes = calibratedOf(weight))
      calibrated.push_back(codes);
  if (!calibrated.empty()) {
    mergeWeights(calibrated, calibratedName(symbol.getValue()), symbols);
    for (lm::WeightOp codes : calibrated)
      symbols.erase(codes);
  }
  return symbol;
}

} // namespace

bool canMergeLinears(llvm::ArrayRef<lm::LinearOp> linears,
                     SymbolTable &symbols) {
  auto alikeCalibrated = [](lm::WeightOp weight, lm::WeightOp other) {
    lm::WeightOp codes = calibratedOf(weight), otherCodes = calibratedOf(other);
    return static_cast<bool>(codes) == static_cast<bool>(otherCodes) &&
           (!codes || (codes.getEncoding() == otherCodes.getEncoding() &&
                       codes.getMethodAttr() == otherCodes.getMethodAttr()));
  };
  auto alike = [&](FlatSymbolRefAttr symbol, FlatSymbolRefAttr other) {
    auto weight = symbols.lookup<lm::WeightOp>(symbol.getValue());
    auto otherWeight = symbols.lookup<lm::WeightOp>(other.getValue());
    return alikeCalibrated(weight, otherWeight) && weight.getPartsAttr() &&
           otherWeight.getPartsAttr() &&
           weight.getEncoding() == otherWeight.getEncoding() &&
           weight.getLayout() == otherWeight.getLayout() &&
           weight.getMethodAttr() == otherWeight.getMethodAttr() &&
           hasOneUse(symbol, symbols);
  };
  lm::LinearOp first = linears.front();
  for (std::size_t index = 0; index < linears.size(); ++index) {
    lm::LinearOp linear = linears[index];
    if (llvm::is_contained(linears.take_front(index), linear) ||
        linear.getInput() != first.getInput() || linear.getResidual() ||
        static_cast<bool>(linear.getBiasAttr()) !=
            static_cast<bool>(first.getBiasAttr()) ||
        !alike(linear.getWeightAttr(), first.getWeightAttr()) ||
        (linear.getBiasAttr() &&
         !alike(linear.getBiasAttr(), first.getBiasAttr())))
      return false;
  }
  return true;
}

lm::LinearOp mergeLinears(llvm::ArrayRef<lm::LinearOp> linears,
                          llvm::StringRef lastComponent, SymbolTable &symbols) {
  llvm::SmallVector<lm::WeightOp> weights, biases;
  llvm::SmallVector<Type> types;
  llvm::SmallVector<Location> locations;
  llvm::SmallVector<std::int64_t> widths;
  std::int64_t columns = 0;
  lm::LinearOp leading = linears.front();
  lm::LinearOp first = leading; // in the block
  for (lm::LinearOp linear : linears) {
    if (linear->isBeforeInBlock(first))
      first = linear;
    weights.push_back(symbols.lookup<lm::WeightOp>(linear.getWeight()));
    if (linear.getBiasAttr())
      biases.push_back(symbols.lookup<lm::WeightOp>(*linear.getBias()));
    types.push_back(linear.getType());
    locations.push_back(linear.getLoc());
    widths.push_back(lm::columnsOf(linear.getType()));
    columns += widths.back();
  }

  std::string name = siblingName(leading.getWeight(), lastComponent);
  FlatSymbolRefAttr weight = mergeWeights(weights, name, symbols);
  FlatSymbolRefAttr bias = biases.empty()
                               ? FlatSymbolRefAttr()
                               : mergeWeights(biases, name + ".bias", symbols);

  OpBuilder builder(first);
  Location location = lm::columnsLocation(
      builder.getContext(),
      siblingName(lm::locationName(leading.getLoc()), lastComponent), locations,
      widths);
  auto merged = builder.create<lm::LinearOp>(
      location, lm::activationType(builder.getContext(), columns),
      first.getInput(), weight, bias, Value());
  auto split = builder.create<lm::SplitOp>(location, types, merged.getResult());
  for (std::size_t index = 0; index < linears.size(); ++index) {
    lm::LinearOp linear = linears[index];
    Value part = split.getParts()[index];
    linear.getResult().replaceAllUsesWith(part);
    linear->erase();
  }
  for (lm::WeightOp old : weights)
    symbols.erase(old);
  for (lm::WeightOp old : biases)
    symbols.erase(old);
  return merged;
}

} // namespace ingot
