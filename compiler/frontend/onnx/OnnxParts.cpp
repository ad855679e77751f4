#include "compiler/frontend/onnx/OnnxParts.h"

#include "compiler/frontend/onnx/OnnxMovement.h"
#include "passes/raise/Match.h"

#include <charconv>
#include <cmath>

using namespace mlir;

namespace ingot {

namespace {

double roundedTo(FloatType type, double value) {
  APFloat result(value);
  bool lossy = false;
  result.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                 &lossy);
  result.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return result.convertToDouble();
}

} // namespace

bool isRounded(double number, double stored, Type element) {
  auto type = dyn_cast<FloatType>(element);
  return static_cast<float>(number) == static_cast<float>(stored) ||
         (type && roundedTo(type, number) == roundedTo(type, stored) &&
          static_cast<float>(roundedTo(type, stored)) ==
              static_cast<float>(stored));
}

double asWritten(double number, Type element) {
  auto type = dyn_cast<FloatType>(element);
  if (!type || !std::isfinite(number))
    return number;
  auto rounded = [&](double value) { return roundedTo(type, value); };
  const double stored = rounded(number);
  if (static_cast<float>(stored) != static_cast<float>(number))
    return number; // it was never rounded to this type
  for (int digits = 1; digits <= 8; ++digits) {
    char text[32];
    auto end = std::to_chars(text, text + sizeof(text), number,
                             std::chars_format::scientific, digits - 1);
    double decimal = number;
    std::from_chars(text, end.ptr, decimal);
    if (rounded(decimal) == stored)
      return decimal;
  }
  return number;
}

PartReader::PartReader(OnnxFile &file) : file_(file) {
  for (const auto &tensor : file.model().graph().initializer())
    initializers_.emplace(tensor.name(), &tensor);
}

// Past operators that keep every element: casts between floats (a cache's
// rounding is the runtime's own), reshapes to the same shape.
Value PartReader::through(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    const bool isSame =
        isa<onnx::IdentityOp, onnx::DropoutOp>(op) ||
        (isa<onnx::ConcatOp>(op) && op->getNumOperands() == 1) ||
        (isa<onnx::CastOp>(op) && onnx::isFloatTensor(value.getType()) &&
         onnx::isFloatTensor(op->getOperand(0).getType())) ||
        (isa<onnx::ReshapeOp, onnx::SqueezeOp, onnx::UnsqueezeOp,
             onnx::FlattenOp>(op) &&
         cast<ShapedType>(value.getType()).getShape() ==
             cast<ShapedType>(op->getOperand(0).getType()).getShape());
    if (!isSame)
      break;
    value = op->getOperand(0);
  }
  return value;
}

// From [batch, heads, positions, size] back to the heads side by side.
Value PartReader::throughHeads(Value value) {
  value = through(value);
  while (Operation *op = value.getDefiningOp()) {
    auto type = cast<RankedTensorType>(value.getType());
    if (auto transpose = dyn_cast<onnx::TransposeOp>(op)) {
      auto perm = transpose.getPerm();
      if (!perm || *perm != ArrayRef<std::int64_t>{0, 2, 1, 3})
        break;
    } else if (isa<onnx::ReshapeOp>(op)) {
      // The last dimension alone is split or joined.
      auto from = cast<RankedTensorType>(op->getOperand(0).getType());
      if (from.getRank() < 2 || type.getRank() < 2 ||
          from.getShape().take_front(2) != type.getShape().take_front(2))
        break;
    } else {
      break;
    }
    value = through(op->getOperand(0));
  }
  return value;
}

// An initializer that lies in a file.
std::optional<OnnxTensor> PartReader::stored(Value value) {
  value = through(value);
  Operation *op = value.getDefiningOp();
  if (!op || !isa<onnx::ConstantOp, onnx::WeightOp>(op))
    return std::nullopt;
  auto name = dyn_cast<NameLoc>(op->getLoc());
  auto found =
      name ? initializers_.find(name.getName().str()) : initializers_.end();
  if (found == initializers_.end())
    return std::nullopt;
  auto tensor = file_.read(*found->second, "initializer");
  if (!tensor || !tensor->file)
    return std::nullopt;
  return std::move(*tensor);
}

// Codes of 4 bits in whole words, from the lowest bit: what compressed-tensors
// calls pack-quantized, with a scale for each row and block of columns.
std::optional<TensorSource> PartReader::codes(onnx::MatMulNBitsOp op) {
  const std::int64_t k = integerOf(op, "K"), n = integerOf(op, "N"),
                     block = integerOf(op, "block_size");
  auto bytes = stored(op.getB()), scales = stored(op.getScales());
  if (integerOf(op, "bits") != 4 || k % block != 0 || !bytes || !scales ||
      !onnx::isAbsent(op.getZeroPoints()) || !onnx::isAbsent(op.getGIdx()) ||
      (scales->type != OnnxType::Float && scales->type != OnnxType::Float16 &&
       scales->type != OnnxType::Bfloat16))
    return std::nullopt;
  TensorSource source;
  source.name = bytes->name;
  source.fileIndex = *bytes->file;
  source.byteOffset = bytes->byteOffset;
  source.sizeBytes = bytes->mapped.size();
  source.dtype = WeightDtype::Codes;
  source.shape = {n, k};
  StoredCodes codes;
  codes.packing = CodePacking::Compressed;
  codes.bits = 4;
  codes.group = block;
  codes.scales.name = scales->name;
  codes.scales.fileIndex = *scales->file;
  codes.scales.byteOffset = scales->byteOffset;
  codes.scales.sizeBytes = scales->mapped.size();
  codes.scales.type = scales->type == OnnxType::Float     ? PlaneType::F32
                      : scales->type == OnnxType::Float16 ? PlaneType::F16
                                                          : PlaneType::BF16;
  source.details.codes = codes;
  return source;
}

// A constant of the model, by where it lies in a file.
std::optional<TensorSource> PartReader::constant(Value value) {
  auto tensor = stored(value);
  if (!tensor)
    return std::nullopt;
  TensorSource source;
  source.name = tensor->name;
  source.fileIndex = *tensor->file;
  source.byteOffset = tensor->byteOffset;
  source.sizeBytes = tensor->mapped.size();
  source.shape = tensor->dims;
  switch (tensor->type) {
  case OnnxType::Float:
    source.dtype = WeightDtype::F32;
    break;
  case OnnxType::Float16:
    source.dtype = WeightDtype::F16;
    break;
  case OnnxType::Bfloat16:
    source.dtype = WeightDtype::BF16;
    break;
  default:
    return std::nullopt;
  }
  return source;
}

// A transpose of a stored matrix is said by its source.
TensorSource transposed(TensorSource source) {
  std::swap(source.shape[0], source.shape[1]);
  source.transposed = !source.transposed;
  return source;
}

std::optional<Linear> PartReader::linear(Value value) {
  value = through(value);
  Linear result;
  // A Gemm works on a matrix: the rows of all sequences.
  if (auto reshape = value.getDefiningOp<onnx::ReshapeOp>())
    if (auto inner = through(reshape.getData()).getDefiningOp<onnx::GemmOp>())
      value = inner->getResult(0);
  if (auto gemm = value.getDefiningOp<onnx::GemmOp>()) {
    if (gemm.getAlpha().convertToFloat() != 1.0f ||
        gemm.getBeta().convertToFloat() != 1.0f || gemm.getTransA() != 0)
      return std::nullopt;
    auto weight = constant(gemm.getB());
    if (!weight || weight->shape.size() != 2)
      return std::nullopt;
    result.weight = gemm.getTransB() ? *weight : transposed(*weight);
    if (!onnx::isAbsent(gemm.getC())) {
      result.bias = constant(gemm.getC());
      if (!result.bias)
        return std::nullopt;
    }
    result.input = gemm.getA();
    if (auto reshape = through(result.input).getDefiningOp<onnx::ReshapeOp>())
      result.input = reshape.getData();
  } else {
    if (auto add = value.getDefiningOp<onnx::AddOp>()) {
      for (auto [bias, other] : {std::pair(add.getA(), add.getB()),
                                 std::pair(add.getB(), add.getA())})
        if (auto vector = constant(bias); vector && vector->shape.size() == 1) {
          result.bias = vector;
          value = through(other);
          break;
        }
      if (!result.bias)
        return std::nullopt;
    }
    if (auto packed = value.getDefiningOp<onnx::MatMulNBitsOp>()) {
      auto weight = codes(packed);
      if (!weight)
        return std::nullopt;
      result.weight = *weight;
      result.input = through(packed.getA());
      result.columns = result.weight.shape[0];
      if (!onnx::isAbsent(packed.getBias())) {
        if (result.bias)
          return std::nullopt;
        result.bias = constant(packed.getBias());
        if (!result.bias)
          return std::nullopt;
      }
      return result;
    }
    auto product = value.getDefiningOp<onnx::MatMulOp>();
    if (!product)
      return std::nullopt;
    Value matrix = through(product.getB());
    if (auto transpose = matrix.getDefiningOp<onnx::TransposeOp>()) {
      auto weight = constant(transpose.getData());
      if (!weight || weight->shape.size() != 2)
        return std::nullopt;
      result.weight = *weight;
    } else {
      auto weight = constant(matrix);
      if (!weight || weight->shape.size() != 2)
        return std::nullopt;
      result.weight = transposed(*weight);
    }
    result.input = product.getA();
  }
  result.columns = result.weight.shape[0];
  result.input = through(result.input);
  return result;
}

// Runs of rows at one distance: all that fused tensors are made of.
std::optional<TensorSource> rowsOf(const TensorSource &source,
                                   ArrayRef<std::int64_t> rows) {
  const std::int64_t count = std::int64_t(rows.size()),
                     all = source.shape.empty() ? 0 : source.shape[0];
  std::int64_t run = 0;
  while (run < count && rows[run] == rows[0] + run)
    ++run;
  if (count == all && run == all && rows[0] == 0)
    return source;
  if (run == 0 || count % run != 0 || source.storedRows != 0)
    return std::nullopt;
  TensorSource part = source;
  part.shape[0] = count;
  part.storedRows = all;
  part.first = rows[0];
  part.run = run;
  part.stride = run == count ? run : rows[run] - rows[0];
  if (part.stride < run)
    return std::nullopt; // rows that are there more than once
  for (std::int64_t row = 0; row < count; ++row)
    if (rows[row] != storedRow(part, row) || rows[row] < 0 || rows[row] >= all)
      return std::nullopt;
  return part;
}

std::optional<Linear> PartReader::linearPart(Value value,
                                             ArrayRef<std::int64_t> place,
                                             std::int64_t positions) {
  auto whole = linear(value);
  const std::int64_t count = std::int64_t(place.size()) / positions;
  if (!whole || count < 1)
    return std::nullopt;
  for (std::int64_t position = 0; position < positions; ++position)
    for (std::int64_t column = 0; column < count; ++column)
      if (place[position * count + column] !=
          position * whole->columns + place[column])
        return std::nullopt;
  ArrayRef<std::int64_t> columns = place.take_front(count);
  auto weight = rowsOf(whole->weight, columns);
  if (!weight)
    return std::nullopt;
  whole->weight = *weight;
  if (whole->bias) {
    auto bias = rowsOf(*whole->bias, columns);
    if (!bias)
      return std::nullopt;
    whole->bias = *bias;
  }
  whole->columns = count;
  return whole;
}

std::optional<Linear> PartReader::movedLinear(Value value,
                                              std::int64_t positions) {
  Movement movement = traceMovement(value);
  return linearPart(movement.source, movement.from, positions);
}

// Whether a constant of the graph is one number, and that is `number`.
static bool isAll(Value value, double number) {
  auto constant = raise::throughCasts(value).getDefiningOp<onnx::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue())
                           : DenseFPElementsAttr();
  return elements && elements.isSplat() &&
         elements.getSplatValue<APFloat>().convertToDouble() == number;
}

std::optional<Norm> PartReader::norm(Value value, bool isUnit) {
  value = through(value);
  Operation *op = value.getDefiningOp();
  if (!op || !isa<onnx::RMSNormalizationOp, onnx::LayerNormalizationOp>(op))
    return std::nullopt;
  auto rank = cast<RankedTensorType>(value.getType()).getRank();
  std::int64_t axis = op->getAttrOfType<IntegerAttr>("axis").getInt();
  Norm result;
  Value weights = op->getOperand(1);
  if (auto by = raise::shifted(weights); by && !constant(weights)) {
    result.offset = by->number;
    weights = by->other;
  }
  auto weight = constant(weights);
  if ((axis != -1 && axis != rank - 1) ||
      (isUnit ? !isAll(weights, 1) : !weight || weight->shape.size() != 1))
    return std::nullopt;
  result.kind =
      isa<onnx::RMSNormalizationOp>(op) ? NormKind::Rms : NormKind::Layer;
  if (result.kind == NormKind::Layer && result.offset != 0)
    return std::nullopt;
  if (result.kind == NormKind::Layer && !onnx::isAbsent(op->getOperand(2)) &&
      !isAll(op->getOperand(2), 0)) {
    result.bias = constant(op->getOperand(2));
    if (!result.bias)
      return std::nullopt;
  }
  result.input = through(op->getOperand(0));
  if (!isUnit)
    result.weight = *weight;
  result.eps = op->getAttrOfType<FloatAttr>("epsilon").getValueAsDouble();
  return result;
}

} // namespace ingot
