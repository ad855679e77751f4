// Verifiers of launches: what all share (variants, kernels, operands, domains),
// then what each asks of the shapes of its operands.
#include "dialects/plan/Plan.h"
#include "runtime/plan/CudaKernelNames.h"

using namespace mlir;

namespace ingot::plan {

SmallVector<StringAttr, 3> detail::presentNames(Operation *op,
                                                ArrayRef<StringRef> names) {
  SmallVector<StringAttr, 3> present;
  for (StringRef name : names)
    if (op->getAttrOfType<FlatSymbolRefAttr>(name))
      present.push_back(StringAttr::get(op->getContext(), name));
  return present;
}

namespace {

// As runtime/plan/LibraryUse.h has it: smaller steps are CUDA graphs.
constexpr uint32_t kMostRowsWithoutLibrary = 64;

// The operands of a launch, found and checked; null for absent ones.
class LaunchVerifier {
public:
  LaunchVerifier(LaunchOpInterface op, SymbolTableCollection &symbols)
      : op(op), symbols(symbols), target(op->getParentOfType<TargetOp>()),
        module(target ? target->getParentOp() : nullptr) {}

  // c1 to c4.
  LogicalResult verifyCommon() {
    if (!target || !module)
      return error("c3") << "expected a plan.target around the launch";
    return success(succeeded(verifyVariants()) && succeeded(verifyOperands()));
  }

  InFlightDiagnostic error(StringRef constraint) {
    return op->emitOpError() << op.getKernelOp() << "_" << constraint << ": ";
  }

  BufferOp buffer(FlatSymbolRefAttr name) {
    return name ? dyn_cast_or_null<BufferOp>(
                      symbols.lookupSymbolIn(target, name))
                : BufferOp();
  }
  bool isCuda() { return target.isCuda(); }
  Layout matrixLayout() { return target.getMatrixLayout(); }
  // A kernel beside the variants of a launch, or none.
  LogicalResult sideKernel(StringRef constraint, FlatSymbolRefAttr name,
                           StringRef kernelOp) {
    if (bool(name) != isCuda())
      return error(constraint) << "expected a kernel for " << kernelOp
                               << " in the target @cuda and in no other";
    auto kernel =
        name ? dyn_cast_or_null<KernelOp>(symbols.lookupSymbolIn(target, name))
             : KernelOp();
    if (name && (!kernel || kernel.getOp() != kernelOp))
      return error(constraint) << "expected a plan.kernel " << name
                               << " that is for \"" << kernelOp << "\"";
    return success();
  }
  WeightOp weight(FlatSymbolRefAttr name) {
    return name ? dyn_cast_or_null<WeightOp>(
                      symbols.lookupSymbolIn(module, name))
                : WeightOp();
  }

  // A buffer of float32 rows of `columns`; nothing to say of an absent one.
  LogicalResult rows(StringRef constraint, StringRef role,
                     FlatSymbolRefAttr name, int64_t columns) {
    BufferOp found = buffer(name);
    if (!found || (!found.isQuantized() && found.getColumns() == columns))
      return success();
    return shapeError(constraint, role, found)
           << "float32 rows of " << columns << " columns, found "
           << found.getType();
  }
  // Rows as the weights of `encoding` read them, or of any group without one.
  LogicalResult quantizedRows(StringRef constraint, StringRef role,
                              FlatSymbolRefAttr name, int64_t columns,
                              EncodingAttr encoding = nullptr) {
    BufferOp found = buffer(name);
    if (target.isCuda()) {
      if (!found ||
          (isa<HalfRowsType>(found.getType()) && found.getColumns() == columns))
        return success();
      return shapeError(constraint, role, found)
             << "half rows of " << columns << " columns, found "
             << found.getType();
    }
    auto type = found ? dyn_cast<QuantizedRowsType>(found.getType())
                      : QuantizedRowsType();
    if (!found ||
        (type && type.getColumns() == columns &&
         (!encoding || (type.getGroup() == encoding.getGroup() &&
                        type.getBits() == encoding.getActivationBits()))))
      return success();
    InFlightDiagnostic diagnostic = shapeError(constraint, role, found)
                                    << "quantised rows of " << columns
                                    << " columns";
    if (encoding)
      diagnostic << ", group " << encoding.getGroup() << " and "
                 << encoding.getActivationBits() << " bits";
    return diagnostic << ", found " << found.getType();
  }
  // Kernels that read two parts of half rows find them.
  LogicalResult parts(StringRef constraint, FlatSymbolRefAttr name) {
    auto type = dyn_cast<HalfRowsType>(buffer(name).getType());
    if (!type || type.getParts() == 2)
      return success();
    for (VariantAttr variant : op.getVariants().getAsRange<VariantAttr>())
      if (readsTwoParts(variant.getKernel().getValue()))
        return error(constraint)
               << "kernel " << variant.getKernel()
               << " reads half rows of two parts, found " << type;
    return success();
  }
  LogicalResult vector(StringRef constraint, StringRef role,
                       FlatSymbolRefAttr name, int64_t size) {
    WeightOp found = weight(name);
    if (!found || found.isVector(size))
      return success();
    return error(constraint)
           << "expected " << role << " " << name << " as a vector of " << size
           << ", found " << found.getRows() << " x " << found.getColumns()
           << " in layout " << stringifyLayout(found.getLayout());
  }
  // A choice of experts that the target has slots for.
  LogicalResult choices(StringRef constraint, int64_t experts, int64_t topK) {
    if (experts > 0 && experts < (int64_t(1) << 20) && topK > 0 &&
        topK <= experts && topK == int64_t(target.getSlots()))
      return success();
    return error(constraint)
           << topK << " of " << experts << " experts in a target with "
           << int64_t(target.getSlots()) << " slots";
  }
  LogicalResult atLeastOneResult() {
    return op.getWrites().empty()
               ? LogicalResult(error("c5") << "expected a result")
               : success();
  }
  // The state exists and its geometry fits.
  FailureOr<StateOp> state(FlatSymbolRefAttr name, int64_t layer,
                           int64_t kvHeads, int64_t headDim) {
    auto found =
        dyn_cast_or_null<StateOp>(symbols.lookupSymbolIn(module, name));
    if (!found) {
      error("c3") << "expected a plan.state " << name;
      return failure();
    }
    if (int64_t(found.getKvHeads()) != kvHeads ||
        int64_t(found.getHeadDim()) != headDim) {
      error("c6") << "state " << name << " has " << found.getKvHeads()
                  << " heads of " << found.getHeadDim() << ", the launch "
                  << kvHeads << " of " << headDim;
      return failure();
    }
    if (layer < 0 || layer >= int64_t(found.getLayers())) {
      error("c6") << "state " << name << " has " << found.getLayers()
                  << " layers, the launch names layer " << layer;
      return failure();
    }
    return found;
  }

private:
  InFlightDiagnostic shapeError(StringRef constraint, StringRef role,
                                BufferOp found) {
    return error(constraint)
           << "expected " << role << " @" << found.getSymName() << " as ";
  }

  LogicalResult verifyVariants() {
    uint64_t next = 1;
    for (VariantAttr variant : op.getVariants().getAsRange<VariantAttr>()) {
      if (next == 0)
        return error("c1") << "a variant follows the one without bound";
      if (variant.getFirst() != next)
        return error("c1") << "expected a variant from " << next
                           << " rows on, found " << variant.getFirst();
      next = variant.getLast() ? uint64_t(variant.getLast()) + 1 : 0;
      auto kernel = dyn_cast_or_null<KernelOp>(
          symbols.lookupSymbolIn(target, variant.getKernel()));
      if (!kernel)
        return error("c2") << "expected a plan.kernel " << variant.getKernel();
      if (isa<LinearOp>(*op) && kernel.getOp() == "library_linear") {
        if (failed(verifyLibrary(variant)))
          return failure();
        continue;
      }
      auto attention = dyn_cast<AttentionOp>(*op);
      StringRef wanted = attention && attention.getSlopes() ? "alibi_attention"
                                                            : op.getKernelOp();
      if (kernel.getOp() != wanted)
        return error("c2") << "kernel " << variant.getKernel() << " is for \""
                           << kernel.getOp() << "\"";
    }
    if (next != 0)
      return error("c1") << "no variant serves " << next << " rows and more";
    return success();
  }

  LogicalResult verifyLibrary(VariantAttr variant) {
    auto linear = cast<LinearOp>(*op);
    WeightOp matrix = weight(linear.getWeightAttr());
    Code code = matrix ? matrix.getEncoding().getCode() : Code::F32;
    if (op.getRowDomain() != Domain::Token ||
        (code != Code::F16 && code != Code::BF16))
      return error("c10") << "a library multiplies rows of tokens with f16 or "
                             "bf16 weights only";
    if (variant.getFirst() <= kMostRowsWithoutLibrary)
      return error("c10") << "expected a library from 65 rows on or later, "
                             "found from "
                          << variant.getFirst() << " on";
    for (auto kernel : target.getBody().getOps<KernelOp>())
      if (kernel.getOp() == "library_finish")
        return success();
    return error("c10") << "expected a plan.kernel for library_finish";
  }

  LogicalResult verifyOperands() {
    for (FlatSymbolRefAttr name : op.getWeights())
      if (!weight(name))
        return error("c3") << "expected a plan.weight " << name;
    // Some launches read rows of another domain than they walk.
    auto domainOf = [&](StringRef role) {
      if (isa<GatherRowsOp, PoolOp, DispatchOp>(*op))
        return role == "output" ? op.getRowDomain() : Domain::Token;
      if (isa<ExpertLinearOp>(*op))
        return role == "order" ? Domain::Token : Domain::Slot;
      if (isa<CombineOp>(*op))
        return role == "input" ? Domain::Slot : Domain::Token;
      return op.getRowDomain();
    };
    for (auto roles : {op.getReadNames(), op.getWriteNames()})
      for (StringAttr role : roles) {
        auto name = op->getAttrOfType<FlatSymbolRefAttr>(role);
        BufferOp found = buffer(name);
        if (!found)
          return error("c3") << "expected a plan.buffer " << name;
        Domain domain = domainOf(role.getValue());
        if (found.getDomain() != domain)
          return error("c4") << "expected buffer " << name << " in the domain "
                             << stringifyDomain(domain) << ", found "
                             << stringifyDomain(found.getDomain());
      }
    return success();
  }

  LaunchOpInterface op;
  SymbolTableCollection &symbols;
  TargetOp target;
  Operation *module;
};

// Starts the verifier of an op with the constraints of every launch.
#define VERIFY_COMMON()                                                        \
  LaunchVerifier verifier(*this, symbols);                                     \
  if (failed(verifier.verifyCommon()))                                         \
    return failure();

// Products of an op's numbers, which the verifier has not bounded yet.
bool inRange(std::initializer_list<int64_t> numbers) {
  for (int64_t number : numbers)
    if (number <= 0 || number >= (int64_t(1) << 31))
      return false;
  return true;
}
bool headsInRange(int64_t heads, int64_t kvHeads, int64_t headDim) {
  constexpr int64_t limit = int64_t(1) << 24;
  return inRange({heads, kvHeads, headDim}) && heads < limit &&
         kvHeads < limit && headDim < limit && heads % kvHeads == 0;
}

} // namespace

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  WeightOp table = verifier.weight(getTableAttr());
  if (table.getLayout() != verifier.matrixLayout())
    return verifier.error("c5") << "expected a table in layout "
                                << stringifyLayout(verifier.matrixLayout());
  return success(succeeded(verifier.rows("c5", "output", getOutputAttr(),
                                         table.getColumns())) &&
                 succeeded(verifier.vector("c6", "bias", getBiasAttr(),
                                           table.getColumns())));
}

LogicalResult RopeTableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t dim = getRotaryDim();
  if (!inRange({dim}) || dim % 2)
    return verifier.error("c5") << "expected an even rotary_dim, found " << dim;
  bool listed = getScaling() == "listed";
  if (failed(verifier.vector("c5", "inv_freq", getInvFreqAttr(),
                             listed ? dim : dim / 2)))
    return failure();
  bool dynamic = getScaling() == "dynamic";
  if (!listed && !dynamic && getScaling() != "fixed")
    return verifier.error("c6") << "scaling \"" << getScaling()
                                << "\" is not fixed, dynamic or listed";
  auto positive = [](const llvm::APFloat &value) {
    return value.isFinite() && !value.isNegative() && !value.isZero();
  };
  if (((listed || dynamic) && !inRange({int64_t(getOriginal())})) ||
      (dynamic && (dim < 4 || !positive(getTheta()) || !positive(getFactor()))))
    return verifier.error("c6")
           << getScaling() << " needs a positive original length"
           << (listed ? "" : ", theta and factor, and a rotary_dim of 4");
  return verifier.rows("c5", "output", getOutputAttr(), dim);
}

LogicalResult LayerNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t width = getWidth();
  return success(
      succeeded(verifier.atLeastOneResult()) &&
      succeeded(verifier.rows("c5", "input", getInputAttr(), width)) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), width)) &&
      succeeded(verifier.quantizedRows("c5", "quantized", getQuantizedAttr(),
                                       width)) &&
      succeeded(verifier.vector("c6", "weight", getWeightAttr(), width)) &&
      succeeded(verifier.vector("c6", "bias", getBiasAttr(), width)));
}

LogicalResult ActivateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t width = getWidth();
  return success(
      succeeded(verifier.atLeastOneResult()) &&
      succeeded(verifier.rows("c5", "input", getInputAttr(), width)) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), width)) &&
      succeeded(verifier.quantizedRows("c5", "quantized", getQuantizedAttr(),
                                       width)));
}

LogicalResult AddOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t width = getWidth();
  return success(
      succeeded(verifier.rows("c5", "residual", getResidualAttr(), width)) &&
      succeeded(verifier.rows("c5", "update", getUpdateAttr(), width)) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), width)));
}

LogicalResult CapOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t width = getWidth();
  if (getSoftCap().isNegative() || getSoftCap().isNaN())
    return verifier.error("c5") << "soft_cap must not be negative";
  return success(
      succeeded(verifier.rows("c5", "input", getInputAttr(), width)) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), width)));
}

LogicalResult RmsNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t width = getWidth();
  return success(
      succeeded(verifier.atLeastOneResult()) &&
      succeeded(verifier.rows("c5", "input", getInputAttr(), width)) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), width)) &&
      succeeded(verifier.quantizedRows("c5", "quantized", getQuantizedAttr(),
                                       width)) &&
      succeeded(verifier.vector("c6", "weight", getWeightAttr(), width)));
}

LogicalResult QuantizeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t width = getWidth();
  return success(
      succeeded(verifier.rows("c5", "input", getInputAttr(), width)) &&
      succeeded(
          verifier.quantizedRows("c5", "output", getOutputAttr(), width)));
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t k = getK(), n = getN(), column = getOutputColumn();
  WeightOp weight = verifier.weight(getWeightAttr());
  if (weight.getLayout() != verifier.matrixLayout() ||
      int64_t(weight.getColumns()) != k || int64_t(weight.getRows()) != n)
    return verifier.error("c5")
           << "expected an " << stringifyLayout(verifier.matrixLayout())
           << " weight of " << n << " x " << k << ", found " << weight.getRows()
           << " x " << weight.getColumns() << " in layout "
           << stringifyLayout(weight.getLayout());
  EncodingAttr encoding = weight.getEncoding();
  LogicalResult input =
      encoding.isInteger() || verifier.isCuda()
          ? verifier.quantizedRows("c6", "input", getInputAttr(), k, encoding)
          : verifier.rows("c6", "input", getInputAttr(), k);
  if (failed(input) || failed(verifier.parts("c11", getInputAttr())))
    return failure();
  BufferOp output = verifier.buffer(getOutputAttr());
  if (output.isQuantized() || column < 0 || column > output.getColumns() ||
      n > output.getColumns() - column)
    return verifier.error("c7")
           << "expected columns [" << column << ", " << column + n
           << ") within float32 rows, found " << output.getType();
  if (failed(verifier.vector("c8", "bias", getBiasAttr(), n)) ||
      failed(verifier.rows("c8", "residual", getResidualAttr(), n)))
    return failure();
  if (getResidualAttr() && column != 0)
    return verifier.error("c8")
           << "expected column 0 with a residual, found " << column;
  if (getInput() == getOutput())
    return verifier.error("c9") << "the output may not be the input";
  return success();
}

LogicalResult GatedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t width = getWidth();
  if (!inRange({width}))
    return verifier.error("c5") << "expected a positive width, found " << width;
  return success(
      succeeded(verifier.atLeastOneResult()) &&
      succeeded(verifier.rows("c5", "input", getInputAttr(), 2 * width)) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), width)) &&
      succeeded(verifier.quantizedRows("c5", "quantized", getQuantizedAttr(),
                                       width)));
}

LogicalResult
RopeCacheWriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t heads = getHeads(), kvHeads = getKvHeads(), headDim = getHeadDim();
  int64_t rotaryDim = getRotaryDim();
  if (!headsInRange(heads, kvHeads, headDim) || rotaryDim < 0 ||
      rotaryDim % 2 || rotaryDim > headDim ||
      bool(getTableAttr()) != (rotaryDim > 0))
    return verifier.error("c8")
           << "expected heads in whole groups and an even "
              "rotary_dim within head_dim, found "
           << heads << " heads, " << kvHeads << " kv_heads, head_dim "
           << headDim << ", rotary_dim " << rotaryDim;
  if (failed(verifier.rows("c5", "input", getInputAttr(),
                           (heads + 2 * kvHeads) * headDim)) ||
      failed(verifier.rows("c5", "query", getQueryAttr(), heads * headDim)) ||
      failed(verifier.rows("c5", "table", getTableAttr(), rotaryDim)) ||
      failed(verifier.state(getStateAttr(), getStateLayer(), kvHeads, headDim)))
    return failure();
  // One vector for all heads, or one of all heads' own.
  WeightOp qNorm = verifier.weight(getQNormAttr());
  bool own = getNormRows() || (qNorm && !qNorm.isVector(headDim));
  if (failed(verifier.vector("c7", "q_norm", getQNormAttr(),
                             own ? heads * headDim : headDim)) ||
      failed(verifier.vector("c7", "k_norm", getKNormAttr(),
                             own ? kvHeads * headDim : headDim)))
    return failure();
  if (getNormKind() != "rms" && (getNormKind() != "layer" || getNormRows()))
    return verifier.error("c7") << "norm_kind \"" << getNormKind()
                                << "\" is not rms, or layer of heads";
  if (bool(getQNormAttr()) != bool(getKNormAttr()))
    return verifier.error("c7") << "expected both q_norm and k_norm or neither";
  return success();
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t heads = getHeads(), kvHeads = getKvHeads(), headDim = getHeadDim();
  if (!headsInRange(heads, kvHeads, headDim))
    return verifier.error("c7")
           << "expected heads in whole groups, found " << heads << " heads, "
           << kvHeads << " kv_heads, head_dim " << headDim;
  int64_t width = heads * headDim;
  if (failed(verifier.atLeastOneResult()) ||
      failed(verifier.rows("c5", "query", getQueryAttr(), width)) ||
      failed(verifier.rows("c5", "output", getOutputAttr(), width)) ||
      failed(
          verifier.quantizedRows("c5", "quantized", getQuantizedAttr(), width)))
    return failure();
  FailureOr<StateOp> state =
      verifier.state(getStateAttr(), getStateLayer(), kvHeads, headDim);
  if (failed(state))
    return failure();
  // A state that forgets may not serve a launch that sees further back.
  int64_t kept = state->getWindow(), window = getWindow();
  if (window < 0 || window > INT32_MAX ||
      (kept != 0 && (window == 0 || window > kept)))
    return verifier.error("c6")
           << "state " << getStateAttr() << " keeps a window of " << kept
           << ", the launch sees " << window;
  if (getBidirectional() && (window != 0 || kept != 0))
    return verifier.error("c9") << "looks both ways, and has a window";
  auto slopes = getSlopes();
  if (slopes ? int64_t(slopes->size()) != heads || verifier.isCuda() ||
                   getBidirectional()
             : getRoundedSlopes())
    return verifier.error("c11")
           << "expected " << heads
           << " slopes of what looks back, on no target @cuda, or none";
  if (failed(verifier.sideKernel("c10", getSplitAttr(), "attention_split")) ||
      failed(verifier.sideKernel("c10", getMergeAttr(), "attention_merge")))
    return failure();
  if (verifier.isCuda()) {
    if (getOutputAttr() && headDim % 8 == 0)
      return success();
    return verifier.error("c10")
           << "expected a float32 output and heads of whole eights, found "
              "heads of "
           << headDim;
  }
  if (BufferOp quantized = verifier.buffer(getQuantizedAttr());
      quantized && headDim % quantized.getGroup() != 0)
    return verifier.error("c8") << "group " << quantized.getGroup()
                                << " straddles heads of " << headDim;
  return success();
}

LogicalResult RouteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  if (failed(verifier.choices("c5", getExperts(), getTopK())))
    return failure();
  return success(
      succeeded(verifier.rows("c5", "logits", getLogitsAttr(), getExperts())) &&
      succeeded(verifier.rows("c5", "routes", getRoutesAttr(), 2 * getTopK())));
}

LogicalResult OrderSlotsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  if (failed(verifier.choices("c5", getExperts(), getTopK())))
    return failure();
  return success(succeeded(verifier.rows("c5", "routes", getRoutesAttr(),
                                         2 * getTopK())) &&
                 succeeded(verifier.rows("c5", "order", getOrderAttr(),
                                         2 * getTopK() + getExperts() + 1)));
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  if (failed(verifier.choices("c5", getExperts(), getTopK())) ||
      failed(verifier.rows("c5", "order", getOrderAttr(),
                           2 * getTopK() + getExperts() + 1)))
    return failure();
  int64_t width = getWidth();
  auto from = dyn_cast<HalfRowsType>(verifier.buffer(getInputAttr()).getType());
  auto to = dyn_cast<HalfRowsType>(verifier.buffer(getOutputAttr()).getType());
  if (!from && !to)
    return success(
        succeeded(verifier.rows("c5", "input", getInputAttr(), width)) &&
        succeeded(verifier.rows("c5", "output", getOutputAttr(), width)));
  if (failed(verifier.quantizedRows("c6", "input", getInputAttr(), width)) ||
      failed(verifier.quantizedRows("c6", "output", getOutputAttr(), width)))
    return failure();
  if (from.getParts() < to.getParts())
    return verifier.error("c6") << "expected input " << getInputAttr()
                                << " with as many parts as the output has, "
                                   "found "
                                << from << " and " << to;
  return success();
}

LogicalResult CombineOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  if (failed(verifier.choices("c5", getExperts(), getTopK())))
    return failure();
  return success(
      succeeded(verifier.rows("c5", "input", getInputAttr(), getWidth())) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), getWidth())) &&
      succeeded(
          verifier.rows("c5", "routes", getRoutesAttr(), 2 * getTopK())) &&
      succeeded(verifier.rows("c5", "order", getOrderAttr(),
                              2 * getTopK() + getExperts() + 1)));
}

LogicalResult ExpertLinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  int64_t k = getK(), n = getN(), experts = getExperts();
  if (failed(verifier.choices("c7", experts, getTopK())))
    return failure();
  WeightOp weight = verifier.weight(getWeightAttr());
  if (!inRange({k, n}) || n % 16 != 0 || n > INT32_MAX / experts ||
      weight.getLayout() != verifier.matrixLayout() ||
      int64_t(weight.getColumns()) != k ||
      int64_t(weight.getRows()) != experts * n)
    return verifier.error("c5")
           << "expected an " << stringifyLayout(verifier.matrixLayout())
           << " weight of " << experts << " x " << n << " x " << k << ", found "
           << weight.getRows() << " x " << weight.getColumns() << " in layout "
           << stringifyLayout(weight.getLayout());
  EncodingAttr encoding = weight.getEncoding();
  LogicalResult input =
      encoding.isInteger() || verifier.isCuda()
          ? verifier.quantizedRows("c6", "input", getInputAttr(), k, encoding)
          : verifier.rows("c6", "input", getInputAttr(), k);
  if (failed(input) || failed(verifier.parts("c8", getInputAttr())) ||
      failed(verifier.rows("c6", "output", getOutputAttr(), n)))
    return failure();
  if (getInput() == getOutput())
    return verifier.error("c6") << "the output may not be the input";
  return verifier.rows("c7", "order", getOrderAttr(),
                       2 * getTopK() + experts + 1);
}

LogicalResult GatherRowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  return success(
      succeeded(verifier.rows("c5", "input", getInputAttr(), getWidth())) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), getWidth())));
}

LogicalResult PoolOp::verifySymbolUses(SymbolTableCollection &symbols) {
  VERIFY_COMMON();
  if (getKind() != "mean" && getKind() != "cls" && getKind() != "last")
    return verifier.error("c6")
           << "kind \"" << getKind() << "\" is not mean, cls or last";
  return success(
      succeeded(verifier.rows("c5", "input", getInputAttr(), getWidth())) &&
      succeeded(verifier.rows("c5", "output", getOutputAttr(), getWidth())));
}

} // namespace ingot::plan
