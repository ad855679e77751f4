// The target @cuda multiplies float activations: whatever a linear reads are half
// rows, which their producer writes beside or instead of float32 rows, or a quantize
// launch behind it; lm.quantize is nothing of its own there. Where float weights read
// them they have two parts: float16 alone rounds activations more than those weights.
#include "dialects/lm/Provenance.h"
#include "passes/lower/CudaVariants.h"
#include "passes/lower/TargetLowering.h"

#include <optional>

using namespace mlir;

namespace ingot::plan {

namespace {

class CudaLowering : public TargetLowering {
public:
  CudaLowering(ModuleOp module, lm::ProgramOp program, UsedWeights &usedWeights)
      : TargetLowering(module, program, "cuda", Layout::MMA16, usedWeights) {}

private:
  FailureOr<ArrayAttr>
  variantsFor(Operation *op, StringRef kernelOp,
              const codegen::KernelConfig &config) override {
    auto made = cudaKernels(op, kernelOp, config);
    if (failed(made))
      return failure();
    SmallVector<Attribute> variants;
    for (auto &[variant, kernel] : *made)
      variants.push_back(variantAttr(variant.first, variant.last, kernel));
    return ArrayAttr::get(context, variants);
  }

  FailureOr<AttentionKernels>
  attentionKernels(lm::CachedAttentionOp op,
                   codegen::KernelConfig config) override {
    if (op.getSlopes())
      return op.emitOpError() << "has slopes (ALiBi), for which there is no "
                                 "kernel for CUDA";
    config["heads"] = int64_t(op.getHeads());
    auto made = cudaKernels(op, "attention", config);
    if (failed(made))
      return failure();
    auto &[variant, kernel] = (*made)[0];
    return AttentionKernels{
        ArrayAttr::get(context,
                       {variantAttr(variant.first, variant.last, kernel)}),
        FlatSymbolRefAttr::get((*made)[1].second.getSymNameAttr()),
        FlatSymbolRefAttr::get((*made)[2].second.getSymNameAttr())};
  }

  FailureOr<ArrayAttr>
  linearVariants(lm::LinearOp op,
                 const codegen::KernelConfig &config) override {
    return variantsFor(op, "linear", config);
  }
  FlatSymbolRefAttr linearInput(lm::LinearOp op) override {
    return readHalves(op.getInput());
  }

  // Experts: tiles for so many slots, rows of slots as half rows.
  FailureOr<ArrayAttr> expertVariants(lm::ExpertLinearOp op,
                                      codegen::KernelConfig config) override {
    Routing routing = routingOf(op.getRoutes());
    config["experts"] = routing.experts.getInt();
    config["top_k"] = routing.topK.getInt();
    return variantsFor(op, "expert_linear", config);
  }
  FlatSymbolRefAttr expertInput(lm::ExpertLinearOp op) override {
    return readHalves(op.getInput());
  }
  LogicalResult lowerDispatch(lm::DispatchOp op) override {
    Needs needs = needsOf(op.getResult());
    if (needs.rows && failed(TargetLowering::lowerDispatch(op)))
      return failure();
    if (!needs.parts)
      return success();
    numLaunches += needs.rows; // one is counted already
    FailureOr<ArrayAttr> variants = variantsFor(op, "dispatch", {});
    if (failed(variants) || failed(tokensOnly(op, op.getInput())))
      return failure();
    Routing routing = routingOf(op.getRoutes());
    launchBuilder.create<DispatchOp>(
        op.getLoc(), readHalves(op.getInput()), routing.order,
        makeHalves(op, op.getResult(), Domain::Slot, needs.parts),
        integer(lm::columnsOf(op.getType())), routing.experts, routing.topK,
        *variants);
    return success();
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

  Type rowsType(Type valueType) override {
    return RowsType::get(context, lm::columnsOf(valueType));
  }
  Results results(Operation *op, Value value, Domain domain,
                  bool attention) override {
    bool isQuantized = isa<lm::QuantizedType>(value.getType());
    Needs needs = needsOf(value);
    Results made;
    if (isQuantized || needs.parts)
      made.quantized =
          makeHalves(op, value, domain, std::max(needs.parts, int64_t(1)));
    if (attention || (!isQuantized && needs.rows) || !made.quantized)
      made.rows = symbol(resultPlace(op, value, domain));
    return made;
  }

  LogicalResult lowerQuantize(lm::QuantizeOp op) override {
    --numLaunches; // its input has half rows
    return success();
  }
  // The half rows of the state at the cut are written in the program's own segment
  // behind it, which does not run where a row leaves: a region writes its own.
  LogicalResult lowerRegionOf(lm::ExitOp exit, Region &region) override {
    Value state = exit.getInput();
    BufferOp ofProgram = halves.lookup(state);
    bool isRead = llvm::any_of(state.getUses(), [&](OpOperand &use) {
      return use.getOwner()->getParentRegion() == &region && readsHalves(use);
    });
    if (isRead) {
      halves.erase(state);
      if (failed(writeHalves(exit, state, needsOf(state).parts)))
        return failure();
    }
    LogicalResult lowered = TargetLowering::lowerRegionOf(exit, region);
    if (isRead) {
      halves.erase(state);
      if (ofProgram)
        halves[state] = ofProgram;
    }
    return lowered;
  }

  Domain domainOf(Value value) override {
    value = withoutQuantize(value);
    if (BufferOp halfRows = halves.lookup(value))
      return halfRows.getDomain();
    return TargetLowering::domainOf(value);
  }
  // What lm.quantize was given: it makes nothing of its own for CUDA devices.
  static Value withoutQuantize(Value value) {
    while (auto quantize = value.getDefiningOp<lm::QuantizeOp>())
      value = quantize.getInput();
    return value;
  }

  // Whether a value is read as float32 rows, and in how many parts as half rows: 0 if
  // not at all.
  struct Needs {
    bool rows = false;
    int64_t parts = 0;
  };
  static bool readsHalves(OpOperand &use) {
    auto linear = dyn_cast<lm::LinearOp>(use.getOwner());
    return isa<lm::QuantizeOp>(use.getOwner()) ||
           (linear && use.getOperandNumber() ==
                          linear.getInputMutable().getOperandNumber());
  }
  static Needs needsOf(Value value) {
    Needs needs;
    for (OpOperand &use : value.getUses()) {
      if (std::optional<Needs> more = needsOfExperts(use)) {
        needs.rows |= more->rows;
        needs.parts = std::max(needs.parts, more->parts);
        continue;
      }
      auto linear = dyn_cast<lm::LinearOp>(use.getOwner());
      bool isInput = linear && readsHalves(use);
      if (isInput && !lm::lookupWeight(linear, linear.getWeightAttr())
                          .getEncoding()
                          .isInteger())
        needs.parts = 2;
      else if (readsHalves(use))
        needs.parts = std::max(needs.parts, int64_t(1));
      else
        needs.rows = true;
    }
    return needs;
  }
  // As what is copied to slots is read, and as the linears of experts read it.
  static std::optional<Needs> needsOfExperts(OpOperand &use) {
    if (auto dispatch = dyn_cast<lm::DispatchOp>(use.getOwner()))
      if (use.getOperandNumber() ==
          dispatch.getInputMutable().getOperandNumber())
        return needsOf(dispatch.getResult());
    auto linear = dyn_cast<lm::ExpertLinearOp>(use.getOwner());
    if (!linear ||
        use.getOperandNumber() != linear.getInputMutable().getOperandNumber())
      return std::nullopt;
    return Needs{false, lm::lookupWeight(linear, linear.getWeightAttr())
                                .getEncoding()
                                .isInteger()
                            ? 1
                            : 2};
  }
  // The half rows of a value, also of one that lm.quantize has made.
  FlatSymbolRefAttr readHalves(Value value) {
    BufferOp found = halves.lookup(withoutQuantize(value));
    return FlatSymbolRefAttr::get(found.getSymNameAttr());
  }
  FlatSymbolRefAttr makeHalves(Operation *op, Value value, Domain domain,
                               int64_t parts) {
    // A cut has no name; what it gives lies in a buffer that has.
    StringRef base = lm::locationName(op->getLoc());
    if (base.empty() && places.count(value))
      base = places.lookup(value).buffer.getSymName();
    std::string name = (base + ".halves").str();
    BufferOp buffer = bufferBuilder.create<BufferOp>(
        lm::nameLocation(context, name), uniqueName(name), domain,
        IntegerAttr(),
        HalfRowsType::get(context, lm::columnsOf(value.getType()), parts));
    halves[value] = buffer;
    return FlatSymbolRefAttr::get(buffer.getSymNameAttr());
  }
  // Behind a launch that writes float32 rows only, the half rows that are read. With
  // the program ends the kernel that chooses tokens; it is no launch of the plan: steps
  // of which only tokens are wanted end with it.
  LogicalResult finish(Operation *op) override {
    if (isa<lm::QuantizeOp>(op))
      return success();
    if (isa<lm::ReturnOp>(op))
      return success(succeeded(cudaKernels(op, "sample", {})));
    for (Value value : op->getResults()) {
      int64_t parts = needsOf(value).parts;
      if (!parts || halves.count(value))
        continue;
      if (failed(writeHalves(op, value, parts)))
        return failure();
    }
    return success();
  }
  // A quantize launch for `op` that makes the half rows of a value.
  LogicalResult writeHalves(Operation *op, Value value, int64_t parts) {
    FailureOr<ArrayAttr> variants = variantsFor(op, "quantize", {});
    if (failed(variants))
      return failure();
    Domain domain = domainOf(value);
    FlatSymbolRefAttr output = makeHalves(op, value, domain, parts);
    launchBuilder.create<QuantizeOp>(
        halves.lookup(value).getLoc(), read(value), output,
        integer(lm::columnsOf(value.getType())),
        DomainAttr::get(context, domain), *variants);
    ++numLaunches;
    return success();
  }

  DenseMap<Value, BufferOp> halves; // half rows of a value
};

} // namespace

std::unique_ptr<TargetLowering> makeCudaLowering(ModuleOp module,
                                                 lm::ProgramOp program,
                                                 UsedWeights &usedWeights) {
  return std::make_unique<CudaLowering>(module, program, usedWeights);
}

} // namespace ingot::plan
