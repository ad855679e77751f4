// Verifiers and folds of the operators over activation rows.
#include "dialects/lm/LmOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ingot::lm;

#define GET_OP_CLASSES
#include "dialects/lm/LmOps.cpp.inc"

WeightOp ingot::lm::lookupWeight(Operation *from, FlatSymbolRefAttr symbol) {
  return SymbolTable::lookupNearestSymbolFrom<WeightOp>(from, symbol);
}

StateOp ingot::lm::lookupState(Operation *from, FlatSymbolRefAttr symbol) {
  return SymbolTable::lookupNearestSymbolFrom<StateOp>(from, symbol);
}

//===----------------------------------------------------------------------===//
// Weights that an op names
//===----------------------------------------------------------------------===//

static std::string describe(WeightOp weight) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(weight.getShape(), stream);
  stream << "] " << weight.getEncoding().getShortName() << " "
         << stringifyLayout(weight.getLayout());
  return text;
}

// `symbol` must be a float32 vector of `elements`.
static LogicalResult verifyVector(Operation *op, SymbolTableCollection &symbols,
                                  llvm::StringRef label,
                                  FlatSymbolRefAttr symbol,
                                  std::int64_t elements,
                                  std::int64_t orElements = -1) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(op, symbol);
  if (!weight)
    return op->emitOpError(label) << ": " << symbol << " is not an lm.weight";
  if (weight.isMatrix() ||
      (weight.getRows() != elements && weight.getRows() != orElements) ||
      weight.getEncoding().getCode() != WeightCode::F32)
    return (op->emitOpError(label)
            << ": " << symbol << " must be a vector of " << elements
            << " f32, found " << describe(weight))
               .attachNote(weight.getLoc())
           << "the weight is here";
  return success();
}

// `symbol` must be a matrix in layout r16; a negative size matches any.
static LogicalResult verifyMatrix(Operation *op, SymbolTableCollection &symbols,
                                  llvm::StringRef label,
                                  FlatSymbolRefAttr symbol, std::int64_t rows,
                                  std::int64_t columns) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(op, symbol);
  if (!weight)
    return op->emitOpError(label) << ": " << symbol << " is not an lm.weight";
  if (!weight.isMatrix() || weight.getLayout() != Layout::R16 ||
      (rows >= 0 && weight.getRows() != rows) ||
      weight.getColumns() != columns) {
    InFlightDiagnostic diagnostic = op->emitOpError(label);
    diagnostic << ": " << symbol << " must be an r16 matrix [";
    if (rows >= 0)
      diagnostic << rows;
    else
      diagnostic << "any";
    diagnostic << ", " << columns << "], found " << describe(weight);
    diagnostic.attachNote(weight.getLoc()) << "the weight is here";
    return diagnostic;
  }
  return success();
}

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyMatrix(*this, symbols, "embed_c1", getTableAttr(), -1,
                          columnsOf(getType()))))
    return failure();
  return getBiasAttr() ? verifyVector(*this, symbols, "embed_c2", getBiasAttr(),
                                      columnsOf(getType()))
                       : success();
}

LogicalResult RopeTableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  std::int64_t columns = columnsOf(getType());
  if (columns % 2 != 0)
    return emitOpError(
               "rope_table_c1: the result has an odd number of columns (")
           << columns << ")";
  bool listed = getScaling() == RopeScaling::Listed;
  return verifyVector(*this, symbols, "rope_table_c1", getInvFreqAttr(),
                      listed ? columns : columns / 2);
}

LogicalResult RmsNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVector(*this, symbols, "rms_norm_c1", getWeightAttr(),
                      columnsOf(getInput().getType()));
}

LogicalResult LayerNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  std::int64_t columns = columnsOf(getInput().getType());
  if (failed(verifyVector(*this, symbols, "layer_norm_c1", getWeightAttr(),
                          columns)))
    return failure();
  return getBiasAttr() ? verifyVector(*this, symbols, "layer_norm_c1",
                                      getBiasAttr(), columns)
                       : success();
}

LogicalResult HeadNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVector(*this, symbols, "head_norm_c2", getWeightAttr(),
                      getHeadDim(), columnsOf(getType()));
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  std::int64_t n = columnsOf(getType());
  if (failed(verifyMatrix(*this, symbols, "linear_c1", getWeightAttr(), n,
                          columnsOf(getInput().getType()))))
    return failure();
  if (getBiasAttr() &&
      failed(verifyVector(*this, symbols, "linear_c2", getBiasAttr(), n)))
    return failure();
  if (auto quantized = dyn_cast<QuantizedType>(getInput().getType())) {
    auto weight =
        symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
    EncodingAttr encoding = weight.getEncoding();
    if (!encoding.isInteger() || encoding.getGroup() != quantized.getGroup())
      return emitOpError("linear_c4: the input's group is ")
             << quantized.getGroup() << ", the weight's encoding "
             << encoding.getShortName();
    if (encoding.getActivationBits() != quantized.getBits())
      return emitOpError("linear_c5: the input's codes have ")
             << quantized.getBits() << " bits, a weight in "
             << encoding.getShortName() << " takes "
             << encoding.getActivationBits();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static LogicalResult verifyEqualColumns(Operation *op, llvm::StringRef label,
                                        Type left, Type right) {
  if (columnsOf(left) != columnsOf(right))
    return op->emitOpError(label)
           << ": " << columnsOf(left) << " columns become " << columnsOf(right);
  return success();
}

static LogicalResult verifyPositive(Operation *op, llvm::StringRef label,
                                    llvm::StringRef name,
                                    const llvm::APFloat &value) {
  if (!value.isFinite() || value.isNegative() || value.isZero())
    return op->emitOpError(label) << ": " << name << " must be positive";
  return success();
}

// heads * head_dim == columns.
static LogicalResult verifyHeads(Operation *op, llvm::StringRef label,
                                 std::int64_t heads, std::int64_t headDim,
                                 std::int64_t columns) {
  std::int64_t product = 0;
  if (heads <= 0 || headDim <= 0 ||
      __builtin_mul_overflow(heads, headDim, &product) || product != columns)
    return op->emitOpError(label) << ": " << heads << " heads of " << headDim
                                  << " are not " << columns << " columns";
  return success();
}

LogicalResult RmsNormOp::verify() {
  if (failed(verifyEqualColumns(*this, "rms_norm_c2", getInput().getType(),
                                getType())))
    return failure();
  return verifyPositive(*this, "rms_norm_c3", "eps", getEps());
}

LogicalResult RopeTableOp::verify() {
  if (getScaling() == RopeScaling::Fixed)
    return success();
  bool listed = getScaling() == RopeScaling::Listed;
  if (static_cast<std::int64_t>(getOriginal()) <= 0 ||
      (!listed && columnsOf(getType()) < 4))
    return emitOpError("rope_table_c2: ") << stringifyRopeScaling(getScaling())
                                          << " needs a positive original length"
                                          << (listed ? "" : " and 4 columns");
  if (listed)
    return success();
  if (failed(verifyPositive(*this, "rope_table_c2", "theta", getTheta())))
    return failure();
  return verifyPositive(*this, "rope_table_c2", "factor", getFactor());
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyEqualColumns(*this, "layer_norm_c2", getInput().getType(),
                                getType())))
    return failure();
  return verifyPositive(*this, "layer_norm_c3", "eps", getEps());
}

LogicalResult ActivateOp::verify() {
  return verifyEqualColumns(*this, "activate_c1", getInput().getType(),
                            getType());
}

LogicalResult CapOp::verify() {
  if (getSoftCap().isNegative() || getSoftCap().isNaN())
    return emitOpError("cap_c1: soft_cap must not be negative");
  return success();
}

LogicalResult LinearOp::verify() {
  if (getResidual() && getResidual().getType() != getType())
    return emitOpError("linear_c3: the residual is ")
           << getResidual().getType() << ", the result " << getType();
  return success();
}

LogicalResult HeadNormOp::verify() {
  if (failed(verifyHeads(*this, "head_norm_c1", getHeads(), getHeadDim(),
                         columnsOf(getType()))))
    return failure();
  if (getKind() == NormKind::Layer && !getWeightOffset().isZero())
    return emitOpError("head_norm_c4: a layer norm has no weight_offset");
  return verifyPositive(*this, "head_norm_c3", "eps", getEps());
}

LogicalResult RotaryOp::verify() {
  if (failed(verifyHeads(*this, "rotary_c1", getHeads(), getHeadDim(),
                         columnsOf(getType()))))
    return failure();
  std::int64_t rotary = getRotaryDim();
  if (rotary <= 0 || rotary % 2 != 0 ||
      rotary > static_cast<std::int64_t>(getHeadDim()) ||
      rotary != columnsOf(getTable().getType()))
    return emitOpError("rotary_c2: rotary_dim ")
           << rotary << " must be even, at most head_dim (" << getHeadDim()
           << ") and the table's columns (" << columnsOf(getTable().getType())
           << ")";
  return success();
}

LogicalResult GateOp::verify() {
  std::int64_t out = columnsOf(getType());
  if (columnsOf(getGateUp().getType()) != 2 * out)
    return emitOpError("gate_c1: the operand has ")
           << columnsOf(getGateUp().getType()) << " columns, expected "
           << 2 * out;
  return success();
}

LogicalResult QuantizeOp::verify() {
  return verifyEqualColumns(*this, "quantize_c1", getInput().getType(),
                            getType());
}

LogicalResult RouteOp::verify() {
  std::int64_t topK = getTopK();
  std::int64_t columns = columnsOf(getLogits().getType());
  if (topK <= 0 || topK > columns ||
      columnsOf(getRoutes().getType()) != 2 * topK)
    return emitOpError("route_c1: the ")
           << topK << " largest of " << columns << " in "
           << columnsOf(getRoutes().getType()) << " columns";
  return success();
}

static LogicalResult verifyRoutes(Operation *op, llvm::StringRef label,
                                  Value routes) {
  if (routes.getDefiningOp<RouteOp>())
    return success();
  return op->emitOpError(label) << ": the routes do not come from an lm.route";
}

LogicalResult DispatchOp::verify() {
  if (failed(verifyEqualColumns(*this, "dispatch_c1", getInput().getType(),
                                getType())))
    return failure();
  return verifyRoutes(*this, "dispatch_c1", getRoutes());
}

LogicalResult CombineOp::verify() {
  if (failed(verifyEqualColumns(*this, "combine_c1", getInput().getType(),
                                getType())))
    return failure();
  return verifyRoutes(*this, "combine_c1", getRoutes());
}

LogicalResult ExpertLinearOp::verify() {
  if (columnsOf(getType()) % 16 != 0)
    return emitOpError("expert_linear_c1: ")
           << columnsOf(getType()) << " columns are not a multiple of 16";
  return verifyRoutes(*this, "expert_linear_c3", getRoutes());
}

std::int64_t ExpertLinearOp::getExperts() {
  return columnsOf(getRoutes().getDefiningOp<RouteOp>().getLogits().getType());
}

LogicalResult ExpertLinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  std::int64_t rows = 0;
  if (__builtin_mul_overflow(getExperts(), columnsOf(getType()), &rows))
    return emitOpError("expert_linear_c1: the experts' rows overflow");
  if (failed(verifyMatrix(*this, symbols, "expert_linear_c1", getWeightAttr(),
                          rows, columnsOf(getInput().getType()))))
    return failure();
  if (auto quantized = dyn_cast<QuantizedType>(getInput().getType())) {
    EncodingAttr encoding =
        symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr())
            .getEncoding();
    if (!encoding.isInteger() || encoding.getGroup() != quantized.getGroup())
      return emitOpError("expert_linear_c2: the input's group is ")
             << quantized.getGroup() << ", the weight's encoding "
             << encoding.getShortName();
    if (encoding.getActivationBits() != quantized.getBits())
      return emitOpError("expert_linear_c2: the input's codes have ")
             << quantized.getBits() << " bits, a weight in "
             << encoding.getShortName() << " takes "
             << encoding.getActivationBits();
  }
  return success();
}

static std::int64_t sumOfColumns(TypeRange types) {
  std::int64_t sum = 0;
  for (Type type : types)
    sum += columnsOf(type);
  return sum;
}

LogicalResult SplitOp::verify() {
  std::int64_t sum = sumOfColumns(getResultTypes());
  if (getNumResults() == 0 || sum != columnsOf(getInput().getType()))
    return emitOpError("split_c1: results of ")
           << sum << " columns from an input of "
           << columnsOf(getInput().getType());
  return success();
}

LogicalResult ConcatOp::verify() {
  std::int64_t sum = sumOfColumns(getParts().getTypes());
  if (getParts().empty() || sum != columnsOf(getType()))
    return emitOpError("concat_c1: operands of ")
           << sum << " columns for a result of " << columnsOf(getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

// A split into one part is its input; a split of a concat at the same columns
// gives the concat's operands.
LogicalResult SplitOp::fold(FoldAdaptor,
                            llvm::SmallVectorImpl<OpFoldResult> &results) {
  if (getNumResults() == 1) {
    results.push_back(getInput());
    return success();
  }
  auto concat = getInput().getDefiningOp<ConcatOp>();
  if (!concat || concat.getParts().getTypes() != TypeRange(getResultTypes()))
    return failure();
  llvm::append_range(results, concat.getParts());
  return success();
}

// A concat of one operand is that operand; a concat of all results of a split,
// in order, is the split's input.
OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getParts().size() == 1)
    return getParts().front();
  auto split = getParts().front().getDefiningOp<SplitOp>();
  if (!split || !llvm::equal(split.getParts(), getParts()))
    return {};
  return split.getInput();
}
