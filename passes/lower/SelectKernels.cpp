// lm to plan:
//   1. check the module: one program, its model, known targets;
//   for each target
//   2. decide where concatenated values live: the linears that make them write
//      columns of one buffer;
//   3. walk the program; each operator becomes a launch, its result a buffer,
//      its kernels are those that the catalogue names;
//   then
//   4. turn sources, used weights and states into their plan twins;
//   5. erase what is left of lm.
//
// The target @cuda multiplies float activations: whatever a linear reads are half
// rows, which their producer writes beside or instead of float32 rows, or a quantize
// launch behind it; lm.quantize is nothing of its own there.
#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/KernelCatalog.h"
#include "dialects/lm/LmOps.h"
#include "dialects/lm/Provenance.h"
#include "passes/lower/CudaVariants.h"
#include "passes/lower/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ingot {
#define GEN_PASS_DEF_SELECTKERNELSPASS
#include "passes/lower/Passes.h.inc"
} // namespace ingot

namespace ingot::plan {

namespace {

// Columns of a buffer that hold a value.
struct Place {
  BufferOp buffer;
  int64_t column = 0;
};

// One concatenation that a linear's result is a part of.
struct ConcatPart {
  lm::ConcatOp concat;
  int64_t column;
};

EncodingAttr convert(lm::EncodingAttr encoding) {
  return EncodingAttr::get(
      encoding.getContext(),
      *symbolizeCode(lm::stringifyWeightCode(encoding.getCode())),
      encoding.getGroup(), encoding.getMinimum());
}

// Weights that some target reads, by their names in lm, and the layouts in which
// matrices are packed.
struct UsedWeights {
  llvm::DenseMap<StringAttr, SmallVector<Layout, 2>> layouts;
  // Whether targets of two layouts are made: those of mma16 then have a suffix.
  bool hasBoth = false;

  void add(StringAttr name, Layout layout) {
    auto &known = layouts[name];
    if (!llvm::is_contained(known, layout))
      known.push_back(layout);
  }
  std::string nameOf(StringRef name, Layout layout) const {
    return layout == Layout::MMA16 && hasBoth ? (name + ".mma16").str()
                                              : name.str();
  }
};

class Lowering {
public:
  Lowering(ModuleOp module, lm::ProgramOp program, StringRef targetName,
           ArrayRef<std::string> levels, UsedWeights &usedWeights)
      : module(module), program(program), targetName(targetName),
        levels(levels), isCuda(targetName == "cuda"), usedWeights(usedWeights),
        context(module.getContext()), moduleBuilder(context),
        bufferBuilder(context), kernelBuilder(context), launchBuilder(context) {
  }

  LogicalResult run() {
    if (failed(findConcats()))
      return failure();
    moduleBuilder.setInsertionPointToEnd(module.getBody());
    target = moduleBuilder.create<TargetOp>(
        program.getLoc(), targetName, stringifyLayout(matrixLayout()),
        levelNames(),
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

  int64_t numLaunches = 0;
  int64_t numKernels = 0;

private:
  Layout matrixLayout() const { return isCuda ? Layout::MMA16 : Layout::R16; }

  ArrayAttr levelNames() {
    return moduleBuilder.getStrArrayAttr(
        SmallVector<StringRef>(levels.begin(), levels.end()));
  }

  //===--------------------------------------------------------------------===//
  // Values and buffers
  //===--------------------------------------------------------------------===//

  // Step 2. A concat costs nothing when each of its parts can be written in
  // place: it is the result of a linear that nothing else reads.
  LogicalResult findConcats() {
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

  std::string uniqueName(StringRef wanted) {
    std::string base = wanted.empty() ? "value" : wanted.str();
    std::string name = base;
    for (int suffix = 1; !usedNames.insert(name).second; ++suffix)
      name = base + "." + std::to_string(suffix);
    return name;
  }

  BufferOp makeBuffer(Location loc, Type valueType, Domain domain) {
    int64_t columns = lm::columnsOf(valueType);
    Type type = RowsType::get(context, columns);
    if (auto quantized = dyn_cast<lm::QuantizedType>(valueType);
        quantized && !isCuda)
      type = QuantizedRowsType::get(context, columns, quantized.getGroup(),
                                    quantized.getBits());
    return bufferBuilder.create<BufferOp>(
        loc, uniqueName(lm::locationName(loc)), domain, IntegerAttr(), type);
  }

  // Where the result of `op` is to be written.
  Place resultPlace(Operation *op, Value value, Domain domain) {
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

  FlatSymbolRefAttr symbol(Place place) {
    return FlatSymbolRefAttr::get(place.buffer.getSymNameAttr());
  }
  // The buffer that an operator reads; parts of a concat are read by it alone.
  FlatSymbolRefAttr read(Value value) { return symbol(places.lookup(value)); }
  Domain domainOf(Value value) {
    if (isCuda) {
      value = withoutQuantize(value);
      if (BufferOp halfRows = halves.lookup(value))
        return halfRows.getDomain();
    }
    return places.lookup(value).buffer.getDomain();
  }
  // What lm.quantize was given: it makes nothing of its own for CUDA devices.
  static Value withoutQuantize(Value value) {
    while (auto quantize = value.getDefiningOp<lm::QuantizeOp>())
      value = quantize.getInput();
    return value;
  }

  // Whether a value is read as float32 rows, or as half rows, of the target @cuda.
  struct Needs {
    bool rows = false;
    bool halves = false;
  };
  static Needs needsOf(Value value) {
    Needs needs;
    for (OpOperand &use : value.getUses()) {
      auto linear = dyn_cast<lm::LinearOp>(use.getOwner());
      bool isInput = linear && use.getOperandNumber() ==
                                   linear.getInputMutable().getOperandNumber();
      if (isInput || isa<lm::QuantizeOp>(use.getOwner()))
        needs.halves = true;
      else
        needs.rows = true;
    }
    return needs;
  }
  // The half rows of a value, also of one that lm.quantize has made.
  FlatSymbolRefAttr readHalves(Value value) {
    BufferOp found = halves.lookup(withoutQuantize(value));
    return FlatSymbolRefAttr::get(found.getSymNameAttr());
  }
  FlatSymbolRefAttr makeHalves(Operation *op, Value value, Domain domain) {
    // A cut has no name; what it gives lies in a buffer that has.
    StringRef base = lm::locationName(op->getLoc());
    if (base.empty() && places.count(value))
      base = places.lookup(value).buffer.getSymName();
    std::string name = (base + ".halves").str();
    BufferOp buffer = bufferBuilder.create<BufferOp>(
        lm::nameLocation(context, name), uniqueName(name), domain,
        IntegerAttr(),
        HalfRowsType::get(context, lm::columnsOf(value.getType())));
    halves[value] = buffer;
    return FlatSymbolRefAttr::get(buffer.getSymNameAttr());
  }
  // Behind a launch that writes float32 rows only, the half rows that are read.
  LogicalResult addHalves(Operation *op) {
    if (isa<lm::QuantizeOp>(op))
      return success();
    for (Value value : op->getResults()) {
      if (!needsOf(value).halves || halves.count(value))
        continue;
      FailureOr<ArrayAttr> variants = variantsFor(op, "quantize", {});
      if (failed(variants))
        return failure();
      Domain domain = domainOf(value);
      FlatSymbolRefAttr output = makeHalves(op, value, domain);
      launchBuilder.create<QuantizeOp>(
          halves.lookup(value).getLoc(), read(value), output,
          integer(lm::columnsOf(value.getType())),
          DomainAttr::get(context, domain), *variants);
      ++numLaunches;
    }
    return success();
  }

  // The two result attributes of launches that give float32 or quantised rows, or
  // both; `keepsRows`: float32 rows whoever reads them.
  std::pair<FlatSymbolRefAttr, FlatSymbolRefAttr>
  results(Operation *op, Value value, Domain domain, bool keepsRows = false) {
    if (isCuda) {
      bool isQuantized = isa<lm::QuantizedType>(value.getType());
      Needs needs = needsOf(value);
      FlatSymbolRefAttr rows, halfRows;
      if (isQuantized || needs.halves)
        halfRows = makeHalves(op, value, domain);
      if (keepsRows || (!isQuantized && needs.rows) || !halfRows)
        rows = symbol(resultPlace(op, value, domain));
      return {rows, halfRows};
    }
    FlatSymbolRefAttr name = symbol(resultPlace(op, value, domain));
    return isa<lm::QuantizedType>(value.getType())
               ? std::pair(FlatSymbolRefAttr(), name)
               : std::pair(name, FlatSymbolRefAttr());
  }

  // A vector, which all targets share.
  FlatSymbolRefAttr use(FlatSymbolRefAttr weight) {
    if (weight)
      usedWeights.add(weight.getAttr(), Layout::Row);
    return weight;
  }
  // A matrix in the target's layout.
  FlatSymbolRefAttr useMatrix(FlatSymbolRefAttr weight) {
    usedWeights.add(weight.getAttr(), matrixLayout());
    return FlatSymbolRefAttr::get(
        context, usedWeights.nameOf(weight.getValue(), matrixLayout()));
  }

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  // Asks the catalogue, makes the kernels that are new, and gives the variants.
  FailureOr<ArrayAttr> variantsFor(Operation *op, StringRef kernelOp,
                                   const codegen::KernelConfig &config) {
    if (isCuda) {
      FailureOr<SmallVector<std::pair<CudaKernelVariant, KernelOp>>> made =
          cudaKernels(op, kernelOp, config);
      if (failed(made))
        return failure();
      SmallVector<Attribute> variants;
      for (auto &[variant, kernel] : *made)
        variants.push_back(variantAttr(variant.first, variant.last, kernel));
      return ArrayAttr::get(context, variants);
    }
    Result<std::vector<codegen::KernelVariant>> found =
        codegen::variantsFor(kernelOp.str(), config);
    if (!found) {
      op->emitOpError() << "has no kernel: " << found.status().message();
      return failure();
    }
    SmallVector<Attribute> variants;
    for (const codegen::KernelVariant &variant : *found) {
      KernelOp &kernel = kernels[variant.name];
      DictionaryAttr constants = constantsOf(variant.constants);
      if (!kernel) {
        reserveKernelName(variant.name);
        kernel = kernelBuilder.create<KernelOp>(
            UnknownLoc::get(context), variant.name, variant.op, constants,
            variant.scratchBytes, GeometryAttr());
        ++numKernels;
      } else if (kernel.getConfig() != constants ||
                 kernel.getOp() != variant.op) {
        op->emitOpError() << "the catalogue gives two kernels the name "
                          << variant.name;
        return failure();
      } else if (kernel.getScratch() < variant.scratchBytes) {
        kernel.setScratch(variant.scratchBytes);
      }
      variants.push_back(variantAttr(variant.first, variant.last, kernel));
    }
    return ArrayAttr::get(context, variants);
  }

  VariantAttr variantAttr(uint32_t first, uint32_t last, KernelOp kernel) {
    return VariantAttr::get(context, first, last,
                            FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
  }

  // The kernels of a launch of the target @cuda, made where they are new. Shared
  // memory may depend on the launch: the most that any asks for serves all.
  FailureOr<SmallVector<std::pair<CudaKernelVariant, KernelOp>>>
  cudaKernels(Operation *op, StringRef kernelOp,
              const codegen::KernelConfig &config) {
    Result<std::vector<CudaKernelVariant>> found =
        cudaVariantsFor(kernelOp.str(), config);
    if (!found) {
      op->emitOpError() << "has no kernel: " << found.status().message();
      return failure();
    }
    SmallVector<std::pair<CudaKernelVariant, KernelOp>> made;
    for (const CudaKernelVariant &variant : *found) {
      KernelOp &kernel = kernels[variant.name];
      int64_t shared = variant.geometry.sharedBytes;
      if (kernel)
        shared = std::max(shared, kernel.getGeometry()->getShared());
      auto geometry =
          GeometryAttr::get(context, variant.geometry.blockThreads, shared,
                            variant.geometry.rows, variant.geometry.tokens);
      if (!kernel) {
        reserveKernelName(variant.name);
        kernel = kernelBuilder.create<KernelOp>(
            UnknownLoc::get(context), variant.name, variant.op,
            DictionaryAttr::get(context), 0, geometry);
        ++numKernels;
      }
      kernel.setGeometryAttr(geometry);
      made.emplace_back(variant, kernel);
    }
    return made;
  }

  // A kernel's name is that of its code; a buffer or segment that has it takes
  // another.
  void reserveKernelName(StringRef name) {
    if (usedNames.insert(name).second)
      return;
    Operation *holder = mlir::SymbolTable::lookupSymbolIn(target, name);
    auto other = StringAttr::get(context, uniqueName(name));
    // Uses of its own name fail only for symbols outside the target.
    (void)mlir::SymbolTable::replaceAllSymbolUses(holder, other, target);
    mlir::SymbolTable::setSymbolName(holder, other);
  }

  DictionaryAttr constantsOf(const codegen::KernelConfig &config) {
    SmallVector<NamedAttribute> attributes;
    for (const auto &[name, value] : config) {
      Attribute attribute;
      if (const std::string *text = std::get_if<std::string>(&value))
        attribute = StringAttr::get(context, *text);
      else
        attribute = moduleBuilder.getI64IntegerAttr(std::get<int64_t>(value));
      attributes.emplace_back(StringAttr::get(context, name), attribute);
    }
    return DictionaryAttr::get(context, attributes);
  }

  // Adds how a weight is encoded to a configuration.
  void addEncoding(codegen::KernelConfig &config, lm::EncodingAttr encoding) {
    config["encoding"] = lm::stringifyWeightCode(encoding.getCode()).str();
    if (!encoding.isInteger())
      return;
    config["group"] = encoding.getGroup();
    if (encoding.getMinimum())
      config["minimum"] = int64_t(1);
  }
  void addQuantization(codegen::KernelConfig &config, Type result) {
    auto quantized = dyn_cast<lm::QuantizedType>(result);
    if (!quantized)
      return;
    config["group"] = quantized.getGroup();
    config["bits"] = quantized.getBits();
  }
  std::string stateCode(Operation *op, FlatSymbolRefAttr state) {
    Type dtype = lm::lookupState(op, state).getDtype();
    return dtype.isF16() ? "f16" : dtype.isF32() ? "f32" : "i8";
  }

  //===--------------------------------------------------------------------===//
  // Segments
  //===--------------------------------------------------------------------===//

  void startSegment() {
    launchBuilder.setInsertionPointToEnd(&target.getBody().front());
    segment = createSegment("main", FlatSymbolRefAttr());
    launchBuilder.setInsertionPointToEnd(&segment.getBody().emplaceBlock());
  }

  SegmentOp createSegment(StringRef name, FlatSymbolRefAttr input) {
    return launchBuilder.create<SegmentOp>(
        program.getLoc(), name, input, FlatSymbolRefAttr(), FlatSymbolRefAttr(),
        FlatSymbolRefAttr(), IntegerAttr(), DenseF32ArrayAttr());
  }

  // A region of an exit becomes a segment before the one that is being made.
  FailureOr<SegmentOp> lowerExitRegion(lm::ExitOp exit, Region &region,
                                       StringRef suffix) {
    SegmentOp chain = segment;
    launchBuilder.setInsertionPoint(chain);
    segment = createSegment(uniqueName((exit.getName() + suffix).str()),
                            read(exit.getInput()));
    SegmentOp made = segment;
    launchBuilder.setInsertionPointToEnd(&made.getBody().emplaceBlock());
    for (Operation &op : region.front())
      if (failed(lower(&op)))
        return failure();
    segment = chain;
    launchBuilder.setInsertionPointToEnd(&chain.getBody().front());
    return made;
  }

  // All heads write the program's own logits.
  void shareLogits(FlatSymbolRefAttr logits) {
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

  void moveKernelsAfterBuffers() {
    SmallVector<KernelOp> all(target.getBody().getOps<KernelOp>());
    Operation *firstSegment = *target.getBody().getOps<SegmentOp>().begin();
    for (KernelOp kernel : all)
      kernel->moveBefore(firstSegment);
  }

  //===--------------------------------------------------------------------===//
  // Operators
  //===--------------------------------------------------------------------===//

  LogicalResult lower(Operation *op) {
    if (failed(lowerOperator(op)))
      return failure();
    return isCuda ? addHalves(op) : success();
  }

  LogicalResult lowerOperator(Operation *op) {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case<lm::EmbedOp, lm::RopeTableOp, lm::RmsNormOp, lm::QuantizeOp,
              lm::LinearOp, lm::GateOp, lm::RopeCacheWriteOp,
              lm::CachedAttentionOp, lm::SelectRowsOp, lm::LayerNormOp,
              lm::ActivateOp, lm::AddOp, lm::CapOp, lm::RouteOp, lm::DispatchOp,
              lm::ExpertLinearOp, lm::CombineOp, lm::PoolOp>([&](auto typed) {
          ++numLaunches;
          return lowerOp(typed);
        })
        .Case<lm::ConcatOp, lm::CutOp, lm::ExitOp, lm::YieldOp, lm::ReturnOp>(
            [&](auto typed) { return lowerOp(typed); })
        .Default([](Operation *other) {
          return other->emitOpError() << "has no lowering to plan; the passes "
                                         "of the fuse phase remove "
                                         "what has one";
        });
  }

  LogicalResult lowerOp(lm::EmbedOp op) {
    codegen::KernelConfig config;
    addEncoding(config, lm::lookupWeight(op, op.getTableAttr()).getEncoding());
    FailureOr<ArrayAttr> variants = variantsFor(op, "embed", config);
    if (failed(variants))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::Token);
    bool byPosition = op.getTokens() == program.getPositions();
    launchBuilder.create<EmbedOp>(op.getLoc(), useMatrix(op.getTableAttr()),
                                  symbol(place), op.getScaleAttr(), *variants,
                                  byPosition ? moduleBuilder.getUnitAttr()
                                             : UnitAttr(),
                                  use(op.getBiasAttr()));
    return success();
  }

  LogicalResult lowerOp(lm::RopeTableOp op) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "rope_table", {});
    if (failed(variants))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::Token);
    launchBuilder.create<RopeTableOp>(
        op.getLoc(), use(op.getInvFreqAttr()), symbol(place),
        integer(lm::columnsOf(op.getResult().getType())),
        op.getAttentionFactorAttr(), *variants,
        StringAttr::get(context, lm::stringifyRopeScaling(op.getScaling())),
        op.getOriginalAttr(), op.getThetaAttr(), op.getFactorAttr());
    return success();
  }

  LogicalResult lowerOp(lm::RmsNormOp op) {
    codegen::KernelConfig config;
    addQuantization(config, op.getResult().getType());
    FailureOr<ArrayAttr> variants = variantsFor(op, "rms_norm", config);
    if (failed(variants))
      return failure();
    Domain domain = domainOf(op.getInput());
    auto [output, quantized] = results(op, op.getResult(), domain);
    launchBuilder.create<RmsNormOp>(
        op.getLoc(), read(op.getInput()), use(op.getWeightAttr()), output,
        quantized, integer(lm::columnsOf(op.getInput().getType())),
        op.getEpsAttr(), op.getWeightOffsetAttr(),
        DomainAttr::get(context, domain), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::LayerNormOp op) {
    codegen::KernelConfig config;
    addQuantization(config, op.getResult().getType());
    FailureOr<ArrayAttr> variants = variantsFor(op, "layer_norm", config);
    if (failed(variants))
      return failure();
    Domain domain = domainOf(op.getInput());
    auto [output, quantized] = results(op, op.getResult(), domain);
    launchBuilder.create<LayerNormOp>(
        op.getLoc(), read(op.getInput()), use(op.getWeightAttr()),
        use(op.getBiasAttr()), output, quantized,
        integer(lm::columnsOf(op.getInput().getType())), op.getEpsAttr(),
        DomainAttr::get(context, domain), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::ActivateOp op) {
    codegen::KernelConfig config;
    StringRef activation = lm::stringifyActivationKind(op.getActivation());
    config["activation"] = activation.str();
    addQuantization(config, op.getResult().getType());
    FailureOr<ArrayAttr> variants = variantsFor(op, "activate", config);
    if (failed(variants) || failed(tokensOnly(op, op.getInput())))
      return failure();
    auto [output, quantized] = results(op, op.getResult(), Domain::Token);
    launchBuilder.create<ActivateOp>(
        op.getLoc(), read(op.getInput()), output, quantized,
        integer(lm::columnsOf(op.getResult().getType())),
        StringAttr::get(context, activation), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::AddOp op) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "add", {});
    if (failed(variants) || failed(tokensOnly(op, op.getResidual())))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::Token);
    launchBuilder.create<AddOp>(
        op.getLoc(), read(op.getResidual()), read(op.getUpdate()),
        symbol(place), integer(lm::columnsOf(op.getResult().getType())),
        op.getScaleAttr(), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::CapOp op) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "cap", {});
    if (failed(variants))
      return failure();
    Domain domain = domainOf(op.getInput());
    Place place = resultPlace(op, op.getResult(), domain);
    launchBuilder.create<CapOp>(
        op.getLoc(), read(op.getInput()), symbol(place),
        integer(lm::columnsOf(op.getResult().getType())), op.getScaleAttr(),
        op.getSoftCapAttr(), DomainAttr::get(context, domain), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::QuantizeOp op) {
    if (isCuda) { // its input has half rows
      --numLaunches;
      return success();
    }
    codegen::KernelConfig config;
    addQuantization(config, op.getResult().getType());
    FailureOr<ArrayAttr> variants = variantsFor(op, "quantize", config);
    if (failed(variants))
      return failure();
    Domain domain = domainOf(op.getInput());
    Place place = resultPlace(op, op.getResult(), domain);
    launchBuilder.create<QuantizeOp>(
        op.getLoc(), read(op.getInput()), symbol(place),
        integer(lm::columnsOf(op.getInput().getType())),
        DomainAttr::get(context, domain), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::LinearOp op) {
    lm::EncodingAttr encoding =
        lm::lookupWeight(op, op.getWeightAttr()).getEncoding();
    if (!isCuda && encoding.isInteger() &&
        !isa<lm::QuantizedType>(op.getInput().getType()))
      return op.emitOpError()
             << "has a weight in " << encoding.getShortName()
             << " and an input in float32; insert-quantize gives it "
                "quantised rows";
    int64_t k = lm::columnsOf(op.getInput().getType());
    codegen::KernelConfig config;
    addEncoding(config, encoding);
    FailureOr<ArrayAttr> variants = variantsFor(op, "linear", config);
    if (failed(variants))
      return failure();
    Domain domain = domainOf(op.getInput());
    Place place = resultPlace(op, op.getResult(), domain);
    if (place.buffer.getDomain() != domain)
      return op.emitOpError() << "is joined with rows of another domain";
    launchBuilder.create<LinearOp>(
        op.getLoc(), isCuda ? readHalves(op.getInput()) : read(op.getInput()),
        useMatrix(op.getWeightAttr()), use(op.getBiasAttr()),
        op.getResidual() ? read(op.getResidual()) : FlatSymbolRefAttr(),
        symbol(place), integer(k),
        integer(lm::columnsOf(op.getResult().getType())), integer(place.column),
        DomainAttr::get(context, domain), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::GateOp op) {
    codegen::KernelConfig config;
    config["activation"] =
        lm::stringifyActivationKind(op.getActivation()).str();
    addQuantization(config, op.getResult().getType());
    FailureOr<ArrayAttr> variants = variantsFor(op, "gated", config);
    if (failed(variants))
      return failure();
    Domain domain = domainOf(op.getGateUp());
    if (domain == Domain::LogitRow)
      return tokensOnly(op, op.getGateUp());
    auto [output, quantized] = results(op, op.getResult(), domain);
    launchBuilder.create<GatedOp>(
        op.getLoc(), read(op.getGateUp()), output, quantized,
        integer(lm::columnsOf(op.getResult().getType())),
        StringAttr::get(context,
                        lm::stringifyActivationKind(op.getActivation())),
        *variants, DomainAttr::get(context, domain));
    return success();
  }

  LogicalResult lowerOp(lm::RopeCacheWriteOp op) {
    codegen::KernelConfig config;
    config["head_dim"] = int64_t(op.getHeadDim());
    config["kv"] = stateCode(op, op.getStateAttr());
    FailureOr<ArrayAttr> variants = variantsFor(op, "rope_cache_write", config);
    if (failed(variants) || failed(tokensOnly(op, op.getQkv())))
      return failure();
    Place place = resultPlace(op, op.getQuery(), Domain::Token);
    launchBuilder.create<RopeCacheWriteOp>(
        op.getLoc(), read(op.getQkv()),
        op.getTable() ? read(op.getTable()) : FlatSymbolRefAttr(),
        use(op.getQNormAttr()), use(op.getKNormAttr()), symbol(place),
        op.getStateAttr(), op.getStateLayerAttr(), op.getHeadsAttr(),
        op.getKvHeadsAttr(), op.getHeadDimAttr(), op.getRotaryDimAttr(),
        op.getNormEpsAttr(), *variants, op.getInterleavedAttr(),
        StringAttr::get(context, lm::stringifyNormKind(op.getNormKind())),
        op.getNormRowsAttr(), op.getNormOffsetAttr());
    return success();
  }

  LogicalResult lowerOp(lm::CachedAttentionOp op) {
    codegen::KernelConfig config;
    config["head_dim"] = int64_t(op.getHeadDim());
    config["kv"] = stateCode(op, op.getStateAttr());
    addQuantization(config, op.getResult().getType());
    FailureOr<ArrayAttr> variants = failure();
    FlatSymbolRefAttr split, merge;
    if (isCuda) {
      config["heads"] = int64_t(op.getHeads());
      auto made = cudaKernels(op, "attention", config);
      if (failed(made))
        return failure();
      variants = ArrayAttr::get(
          context, {variantAttr((*made)[0].first.first, (*made)[0].first.last,
                                (*made)[0].second)});
      split = FlatSymbolRefAttr::get((*made)[1].second.getSymNameAttr());
      merge = FlatSymbolRefAttr::get((*made)[2].second.getSymNameAttr());
    } else {
      variants = variantsFor(op, "attention", config);
    }
    if (failed(variants) || failed(tokensOnly(op, op.getQuery())))
      return failure();
    auto [output, quantized] =
        results(op, op.getResult(), Domain::Token, /*keepsRows=*/isCuda);
    launchBuilder.create<AttentionOp>(
        op.getLoc(), read(op.getQuery()), op.getStateAttr(),
        op.getStateLayerAttr(), output, quantized, op.getHeadsAttr(),
        op.getKvHeadsAttr(), op.getHeadDimAttr(), op.getWindowAttr(),
        op.getScaleAttr(), op.getSoftCapAttr(), *variants, split, merge,
        op.getBidirectionalAttr());
    return success();
  }

  // The routes, and the order of the slots that follows from them.
  LogicalResult lowerOp(lm::RouteOp op) {
    FailureOr<ArrayAttr> route = variantsFor(op, "route", {});
    FailureOr<ArrayAttr> order = variantsFor(op, "order_slots", {});
    if (failed(route) || failed(order) ||
        failed(tokensOnly(op, op.getLogits())))
      return failure();
    int64_t topK = op.getTopK();
    int64_t experts = lm::columnsOf(op.getLogits().getType());
    if (!orders.empty() && topK != int64_t(target.getSlots()))
      return op.emitOpError()
             << "chooses " << topK << " experts, another "
             << int64_t(target.getSlots()) << "; a model needs one number";
    target.setSlots(topK);
    Place routes = resultPlace(op, op.getRoutes(), Domain::Token);
    launchBuilder.create<RouteOp>(
        op.getLoc(), read(op.getLogits()), symbol(routes), integer(experts),
        integer(topK), op.getNormalizedAttr(), *route);
    Location loc = lm::derivedLocation(
        context, (lm::locationName(op.getLoc()) + ".order").str(), op.getLoc());
    BufferOp buffer =
        makeBuffer(loc, lm::activationType(context, 2 * topK + experts + 1),
                   Domain::Token);
    orders[op.getRoutes()] = buffer;
    launchBuilder.create<OrderSlotsOp>(
        loc, symbol(routes), FlatSymbolRefAttr::get(buffer.getSymNameAttr()),
        integer(experts), integer(topK), *order);
    ++numLaunches;
    return success();
  }

  struct Routing {
    FlatSymbolRefAttr order;
    IntegerAttr experts, topK;
  };
  Routing routingOf(Value routes) {
    auto route = routes.getDefiningOp<lm::RouteOp>();
    return {FlatSymbolRefAttr::get(orders.lookup(routes).getSymNameAttr()),
            integer(lm::columnsOf(route.getLogits().getType())),
            route.getTopKAttr()};
  }
  LogicalResult slotsOnly(Operation *op, Value input) {
    if (domainOf(input) == Domain::Slot)
      return success();
    return op->emitOpError() << "works on rows that lm.dispatch has made";
  }

  LogicalResult lowerOp(lm::DispatchOp op) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "dispatch", {});
    if (failed(variants) || failed(tokensOnly(op, op.getInput())))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::Slot);
    Routing routing = routingOf(op.getRoutes());
    launchBuilder.create<DispatchOp>(op.getLoc(), read(op.getInput()),
                                     routing.order, symbol(place),
                                     integer(lm::columnsOf(op.getType())),
                                     routing.experts, routing.topK, *variants);
    return success();
  }

  LogicalResult lowerOp(lm::ExpertLinearOp op) {
    lm::EncodingAttr encoding =
        lm::lookupWeight(op, op.getWeightAttr()).getEncoding();
    if (encoding.isInteger() &&
        !isa<lm::QuantizedType>(op.getInput().getType()))
      return op.emitOpError()
             << "has a weight in " << encoding.getShortName()
             << " and an input in float32; insert-quantize gives it quantised "
                "rows";
    int64_t k = lm::columnsOf(op.getInput().getType());
    codegen::KernelConfig config;
    addEncoding(config, encoding);
    FailureOr<ArrayAttr> variants = variantsFor(op, "expert_linear", config);
    if (failed(variants) || failed(slotsOnly(op, op.getInput())))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::Slot);
    Routing routing = routingOf(op.getRoutes());
    launchBuilder.create<ExpertLinearOp>(
        op.getLoc(), read(op.getInput()), routing.order,
        useMatrix(op.getWeightAttr()), symbol(place), integer(k),
        integer(lm::columnsOf(op.getType())), routing.experts, routing.topK,
        *variants);
    return success();
  }

  LogicalResult lowerOp(lm::CombineOp op) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "combine", {});
    if (failed(variants) || failed(slotsOnly(op, op.getInput())))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::Token);
    Routing routing = routingOf(op.getRoutes());
    launchBuilder.create<CombineOp>(
        op.getLoc(), read(op.getInput()), routing.order, read(op.getRoutes()),
        symbol(place), integer(lm::columnsOf(op.getType())), routing.experts,
        routing.topK, *variants);
    return success();
  }

  LogicalResult lowerOp(lm::SelectRowsOp op) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "gather_rows", {});
    if (failed(variants) || failed(tokensOnly(op, op.getInput())))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::LogitRow);
    launchBuilder.create<GatherRowsOp>(
        op.getLoc(), read(op.getInput()), symbol(place),
        integer(lm::columnsOf(op.getInput().getType())), *variants);
    return success();
  }

  LogicalResult lowerOp(lm::PoolOp op) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "pool", {});
    if (failed(variants) || failed(tokensOnly(op, op.getInput())))
      return failure();
    Place place = resultPlace(op, op.getResult(), Domain::LogitRow);
    launchBuilder.create<PoolOp>(
        op.getLoc(),
        StringAttr::get(context, lm::stringifyPoolKind(op.getKind())),
        read(op.getInput()), symbol(place),
        integer(lm::columnsOf(op.getInput().getType())), op.getNormalizeAttr(),
        *variants);
    return success();
  }

  // Its parts have been written in place.
  LogicalResult lowerOp(lm::ConcatOp op) { return success(); }

  LogicalResult lowerOp(lm::CutOp op) {
    if (failed(tokensOnly(op, op.getInput())))
      return failure();
    FlatSymbolRefAttr hidden = read(op.getInput());
    segment.setSymName(uniqueName(op.getName()));
    segment.setOutputAttr(hidden);
    endsAt[op.getResult()] = segment;
    startSegment();
    segment.setInputAttr(hidden);
    places[op.getResult()] = places.lookup(op.getInput());
    return success();
  }

  LogicalResult lowerOp(lm::ExitOp op) {
    if (isCuda)
      return op.emitOpError() << "has no lowering for CUDA: leave out --exits, "
                                 "or the target cuda";
    // The name may still change; symbols follow it.
    SegmentOp before = endsAt.lookup(op.getInput());
    FailureOr<SegmentOp> head = lowerExitRegion(op, op.getHead(), ".head");
    if (failed(head))
      return failure();
    head->setHeadOfAttr(FlatSymbolRefAttr::get(before.getSymNameAttr()));
    head->setLayersAttr(op.getLayersAttr());
    head->setConfidenceAttr(op.getConfidenceAttr());
    if (op.getFill().empty())
      return success();
    FailureOr<SegmentOp> fill = lowerExitRegion(op, op.getFill(), ".fill");
    if (failed(fill))
      return failure();
    fill->setFillOfAttr(FlatSymbolRefAttr::get(before.getSymNameAttr()));
    return success();
  }

  LogicalResult lowerOp(lm::YieldOp op) {
    if (op.getNumOperands() == 0)
      return success();
    Place place = places.lookup(op.getOperand(0));
    if (place.buffer.getDomain() != Domain::LogitRow)
      return op.emitOpError() << "yields a row for each token; expected logits "
                                 "that follow from lm.select_rows";
    exitLogits.emplace_back(segment, place.buffer);
    return success();
  }

  LogicalResult lowerOp(lm::ReturnOp op) {
    Place place = places.lookup(op.getLogits());
    if (place.buffer.getDomain() != Domain::LogitRow)
      return op.emitOpError()
             << "returns a row for each token; expected logits that "
                "follow from lm.select_rows";
    segment.setSymName(uniqueName("main"));
    target.setLogitsAttr(symbol(place));
    shareLogits(symbol(place));
    return success();
  }

  // These launches exist for the domain token only.
  LogicalResult tokensOnly(Operation *op, Value input) {
    if (domainOf(input) == Domain::Token)
      return success();
    return op->emitOpError()
           << "works on the rows that lm.select_rows kept; it has a "
              "lowering for all tokens only";
  }

  IntegerAttr integer(int64_t value) {
    return moduleBuilder.getI64IntegerAttr(value);
  }

  ModuleOp module;
  lm::ProgramOp program;
  StringRef targetName;
  ArrayRef<std::string> levels;
  bool isCuda;
  UsedWeights &usedWeights;
  MLIRContext *context;
  OpBuilder moduleBuilder, bufferBuilder, kernelBuilder, launchBuilder;
  TargetOp target;
  SegmentOp segment;
  DenseMap<Value, SegmentOp> endsAt; // by the cut's result
  SmallVector<std::pair<SegmentOp, BufferOp>> exitLogits;
  DenseMap<Value, Place> places;
  DenseMap<Value, ConcatPart> concatParts;
  DenseMap<Value, BufferOp> orders; // of routes
  DenseMap<Value, BufferOp> halves; // half rows of a value, in the target @cuda
  std::map<std::string, KernelOp> kernels;
  llvm::StringSet<> usedNames;
};

//===----------------------------------------------------------------------===//
// Symbols of the module
//===----------------------------------------------------------------------===//

// Steps 4 and 5, after all targets have been made.
class SymbolConversion {
public:
  SymbolConversion(ModuleOp module, const UsedWeights &usedWeights)
      : module(module), usedWeights(usedWeights), context(module.getContext()),
        moduleBuilder(context) {}

  void run() {
    convertSymbols();
    eraseLm();
  }
  int64_t numUnusedWeights = 0;

private:
  // Step 4. Twins replace the lm ops where they stand.
  void convertSymbols() {
    for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
      moduleBuilder.setInsertionPoint(&op);
      if (auto source = dyn_cast<lm::SourceOp>(op)) {
        moduleBuilder.create<SourceOp>(
            op.getLoc(), source.getSymNameAttr(), source.getNameAttr(),
            source.getPathAttr(), source.getSizeAttr(), source.getHashAttr());
      } else if (auto state = dyn_cast<lm::StateOp>(op)) {
        moduleBuilder.create<StateOp>(
            op.getLoc(), state.getSymNameAttr(), state.getLayersAttr(),
            state.getKvHeadsAttr(), state.getHeadDimAttr(),
            StateDTypeAttr::get(context,
                                state.getDtype().isF16()   ? StateDType::F16
                                : state.getDtype().isF32() ? StateDType::F32
                                                           : StateDType::I8),
            state.getWindowAttr());
      } else if (auto weight = dyn_cast<lm::WeightOp>(op)) {
        auto used = usedWeights.layouts.find(weight.getSymNameAttr());
        if (used == usedWeights.layouts.end())
          ++numUnusedWeights;
        else
          for (Layout layout : used->second)
            convertWeight(weight, layout);
      }
    }
  }

  void convertWeight(lm::WeightOp weight, Layout layout) {
    ArrayAttr parts;
    if (weight.getParts()) {
      SmallVector<Attribute> converted;
      for (lm::PartAttr part : weight.getPartList())
        converted.push_back(PartAttr::get(
            context, part.getSource(), part.getName(), part.getOffset(),
            part.getSize(),
            *symbolizeStored(lm::stringifyStored(part.getStored())),
            part.getRows(), part.getColumns(), part.getPermute(),
            part.getStoredRows(), part.getFirst(), part.getRun(),
            part.getStride(), part.getTransposed(), part.getDetails()));
      parts = ArrayAttr::get(context, converted);
    }
    moduleBuilder.create<WeightOp>(
        weight.getLoc(),
        StringAttr::get(context,
                        usedWeights.nameOf(weight.getSymName(), layout)),
        convert(weight.getEncoding()), LayoutAttr::get(context, layout),
        moduleBuilder.getI64IntegerAttr(weight.getRows()),
        moduleBuilder.getI64IntegerAttr(weight.getColumns()),
        weight.getMethodAttr(), parts, weight.getValueAttr(), PlacementAttr());
  }

  void eraseLm() {
    Attribute model = module->removeAttr(lm::kModelAttr);
    module->setAttr(PlanDialect::getModelAttrName(), model);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<lm::SourceOp, lm::WeightOp, lm::StateOp, lm::ProgramOp>(op))
        op.erase();
  }

  ModuleOp module;
  const UsedWeights &usedWeights;
  MLIRContext *context;
  OpBuilder moduleBuilder;
};

class SelectKernels : public ingot::impl::SelectKernelsPassBase<SelectKernels> {
public:
  using SelectKernelsPassBase::SelectKernelsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::vector<std::string> names(targets.begin(), targets.end());
    if (names.empty())
      names.push_back("cpu");
    UsedWeights used;
    for (const std::string &name : names) {
      if (name != "cpu" && name != "cuda") {
        module.emitError() << "target \"" << name
                           << "\" is unknown (cpu, cuda)";
        return signalPassFailure();
      }
      if (llvm::count(names, name) != 1) {
        module.emitError() << "target \"" << name << "\" stands twice";
        return signalPassFailure();
      }
    }
    used.hasBoth = names.size() == 2;
    auto programs = module.getOps<lm::ProgramOp>();
    if (std::distance(programs.begin(), programs.end()) != 1) {
      module.emitError() << "expected one lm.program, found "
                         << std::distance(programs.begin(), programs.end());
      return signalPassFailure();
    }
    if (!module->hasAttr(lm::kModelAttr)) {
      module.emitError() << "expected the attribute " << lm::kModelAttr;
      return signalPassFailure();
    }
    for (const std::string &name : names) {
      FailureOr<std::vector<std::string>> chosen =
          name == "cuda" ? chooseChips(module) : chooseLevels(module);
      if (failed(chosen))
        return signalPassFailure();
      Lowering lowering(module, *programs.begin(), name, *chosen, used);
      if (failed(lowering.run()))
        return signalPassFailure();
      numLaunches += lowering.numLaunches;
      numKernels += lowering.numKernels;
    }
    SymbolConversion conversion(module, used);
    conversion.run();
    numUnusedWeights += conversion.numUnusedWeights;
  }

private:
  FailureOr<std::vector<std::string>> chooseChips(ModuleOp module) {
    std::vector<std::string> wanted(chips.begin(), chips.end());
    if (wanted.empty())
      wanted = {"sm_80", "sm_86", "sm_89", "sm_90"};
    Result<std::vector<std::string>> found = cudaLevels(wanted);
    if (found)
      return *found;
    module.emitError() << found.status().message();
    return failure();
  }

  FailureOr<std::vector<std::string>> chooseLevels(ModuleOp module) {
    std::vector<std::string> known = codegen::cpuLevelNames(); // slowest first
    if (levels.empty())
      return std::vector<std::string>(known.rbegin(), known.rend());
    std::vector<std::string> chosen(levels.begin(), levels.end());
    for (const std::string &name : chosen)
      if (!llvm::is_contained(known, name)) {
        module.emitError() << "level \"" << name << "\" is unknown ("
                           << llvm::join(known, ", ") << ")";
        return failure();
      }
    return chosen;
  }
};

} // namespace
} // namespace ingot::plan
