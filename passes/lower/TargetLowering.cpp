// One target of a program:
//   1. decide where concatenated values live: the linears that make them write
//      columns of one buffer;
//   2. walk the program; each operator becomes a launch, its result a buffer, its
//      kernels are those that the target's catalogue names (LowerOperators.cpp);
//   3. put buffers before kernels, kernels before segments.
#include "passes/lower/TargetLowering.h"

#include "dialects/lm/Provenance.h"

using namespace mlir;

namespace ingot::plan {

void UsedWeights::add(StringAttr name, Layout layout) {
  auto &known = layouts[name];
  if (!llvm::is_contained(known, layout))
    known.push_back(layout);
}

std::string UsedWeights::nameOf(StringRef name, Layout layout) const {
  return layout == Layout::MMA16 && hasBoth ? (name + ".mma16").str()
                                            : name.str();
}

TargetLowering::TargetLowering(ModuleOp module, lm::ProgramOp program,
                               StringRef targetName, Layout matrixLayout,
                               UsedWeights &usedWeights)
    : program(program), context(module.getContext()), moduleBuilder(context),
      bufferBuilder(context), kernelBuilder(context), launchBuilder(context),
      module(module), targetName(targetName), matrixLayout(matrixLayout),
      usedWeights(usedWeights) {}

LogicalResult TargetLowering::run(ArrayRef<std::string> levels) {
  if (failed(findConcats()))
    return failure();
  moduleBuilder.setInsertionPointToEnd(module.getBody());
  target = moduleBuilder.create<TargetOp>(
      program.getLoc(), targetName, stringifyLayout(matrixLayout),
      moduleBuilder.getStrArrayAttr(
          SmallVector<StringRef>(levels.begin(), levels.end())),
      "logits", // known when the program's return is reached
      IntegerAttr(), IntegerAttr());
  Block *body = &target.getBody().emplaceBlock();
  // Buffers stand before kernels, kernels before segments: empty segments
  // mark the two insertion points until the walk is over.
  launchBuilder.setInsertionPointToEnd(body);
  startSegment();
  bufferBuilder.setInsertionPoint(segment);
  kernelBuilder.setInsertionPoint(segment);
  for (Operation &op : program.getEntryBlock())
    if (failed(lower(&op)))
      return failure();
  moveKernelsAfterBuffers();
  return success();
}

//===----------------------------------------------------------------------===//
// Values, buffers and weights
//===----------------------------------------------------------------------===//

LogicalResult TargetLowering::findConcats() {
  LogicalResult result = success();
  program.walk([&](lm::ConcatOp concat) {
    int64_t column = 0;
    for (auto [index, part] : llvm::enumerate(concat.getParts())) {
      auto linear = part.getDefiningOp<lm::LinearOp>();
      if (!linear || !part.hasOneUse() || linear.getResidual()) {
        InFlightDiagnostic diagnostic =
            concat.emitOpError()
            << "part " << index
            << " is not the result of a linear without residual that only "
               "this "
               "concat reads, so it cannot be written in place";
        if (Operation *maker = part.getDefiningOp())
          diagnostic.attachNote(maker->getLoc()) << "the part is made here";
        result = diagnostic;
        return WalkResult::interrupt();
      }
      concatParts[part] = {concat, column};
      column += lm::columnsOf(part.getType());
    }
    return WalkResult::advance();
  });
  return result;
}

std::string TargetLowering::uniqueName(StringRef wanted) {
  std::string base = wanted.empty() ? "value" : wanted.str();
  std::string name = base;
  for (int suffix = 1; !usedNames.insert(name).second; ++suffix)
    name = base + "." + std::to_string(suffix);
  return name;
}

BufferOp TargetLowering::makeBuffer(Location loc, Type valueType,
                                    Domain domain) {
  return bufferBuilder.create<BufferOp>(loc, uniqueName(lm::locationName(loc)),
                                        domain, IntegerAttr(),
                                        rowsType(valueType));
}

TargetLowering::Place TargetLowering::resultPlace(Operation *op, Value value,
                                                  Domain domain) {
  auto part = concatParts.find(value);
  if (part == concatParts.end()) {
    BufferOp buffer = makeBuffer(op->getLoc(), value.getType(), domain);
    places[value] = {buffer, 0};
    return places[value];
  }
  Value whole = part->second.concat.getResult();
  if (!places.count(whole))
    places[whole] = {
        makeBuffer(part->second.concat.getLoc(), whole.getType(), domain), 0};
  places[value] = {places[whole].buffer, part->second.column};
  return places[value];
}

FlatSymbolRefAttr TargetLowering::use(FlatSymbolRefAttr weight) {
  if (weight)
    usedWeights.add(weight.getAttr(), Layout::Row);
  return weight;
}

FlatSymbolRefAttr TargetLowering::useMatrix(FlatSymbolRefAttr weight) {
  usedWeights.add(weight.getAttr(), matrixLayout);
  return FlatSymbolRefAttr::get(
      context, usedWeights.nameOf(weight.getValue(), matrixLayout));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

VariantAttr TargetLowering::variantAttr(uint32_t first, uint32_t last,
                                        KernelOp kernel) {
  return VariantAttr::get(context, first, last,
                          FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
}

void TargetLowering::reserveKernelName(StringRef name) {
  if (usedNames.insert(name).second)
    return;
  Operation *holder = mlir::SymbolTable::lookupSymbolIn(target, name);
  auto other = StringAttr::get(context, uniqueName(name));
  // Uses of its own name fail only for symbols outside the target.
  (void)mlir::SymbolTable::replaceAllSymbolUses(holder, other, target);
  mlir::SymbolTable::setSymbolName(holder, other);
}

void TargetLowering::addEncoding(codegen::KernelConfig &config,
                                 lm::EncodingAttr encoding) {
  config["encoding"] = lm::stringifyWeightCode(encoding.getCode()).str();
  if (!encoding.isInteger())
    return;
  config["group"] = encoding.getGroup();
  if (encoding.getMinimum())
    config["minimum"] = int64_t(1);
}

void TargetLowering::addQuantization(codegen::KernelConfig &config,
                                     Type result) {
  auto quantized = dyn_cast<lm::QuantizedType>(result);
  if (!quantized)
    return;
  config["group"] = quantized.getGroup();
  config["bits"] = quantized.getBits();
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

void TargetLowering::startSegment() {
  launchBuilder.setInsertionPointToEnd(&target.getBody().front());
  segment = createSegment("main", FlatSymbolRefAttr());
  launchBuilder.setInsertionPointToEnd(&segment.getBody().emplaceBlock());
}

SegmentOp TargetLowering::createSegment(StringRef name,
                                        FlatSymbolRefAttr input) {
  return launchBuilder.create<SegmentOp>(
      program.getLoc(), name, input, FlatSymbolRefAttr(), FlatSymbolRefAttr(),
      FlatSymbolRefAttr(), IntegerAttr(), DenseF32ArrayAttr());
}

// A region of an exit becomes a segment before the one that is being made.
FailureOr<SegmentOp> TargetLowering::lowerExitRegion(lm::ExitOp exit,
                                                     Region &region,
                                                     StringRef suffix) {
  SegmentOp chain = segment;
  launchBuilder.setInsertionPoint(chain);
  segment = createSegment(uniqueName((exit.getName() + suffix).str()),
                          read(exit.getInput()));
  SegmentOp made = segment;
  launchBuilder.setInsertionPointToEnd(&made.getBody().emplaceBlock());
  if (failed(lowerRegionOf(exit, region)))
    return failure();
  segment = chain;
  launchBuilder.setInsertionPointToEnd(&chain.getBody().front());
  return made;
}

LogicalResult TargetLowering::lowerRegionOf(lm::ExitOp, Region &region) {
  for (Operation &op : region.front())
    if (failed(lower(&op)))
      return failure();
  return success();
}

// All heads write the program's own logits.
void TargetLowering::shareLogits(FlatSymbolRefAttr logits) {
  for (auto [head, buffer] : exitLogits) {
    StringAttr own = buffer.getSymNameAttr();
    for (Operation &op : head.getBody().front()) {
      auto launch = cast<LaunchOpInterface>(op);
      for (auto names : {launch.getReadNames(), launch.getWriteNames()})
        for (StringAttr name : names)
          if (launch->getAttrOfType<FlatSymbolRefAttr>(name).getAttr() == own)
            launch->setAttr(name, logits);
    }
    buffer.erase();
  }
}

void TargetLowering::moveKernelsAfterBuffers() {
  SmallVector<KernelOp> all(target.getBody().getOps<KernelOp>());
  Operation *firstSegment = *target.getBody().getOps<SegmentOp>().begin();
  for (KernelOp kernel : all)
    kernel->moveBefore(firstSegment);
}

} // namespace ingot::plan
