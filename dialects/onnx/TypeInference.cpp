// Finds the operator's rule. An operand without a rank makes results without
// one, of the elements that the rule would give.
#include "dialects/onnx/TypeInference.h"

#include "dialects/onnx/Inference.h"

using namespace mlir;

namespace ingot::onnx {

std::int64_t Inference::integer(llvm::StringRef name,
                                std::int64_t otherwise) const {
  auto attr = op->getAttrOfType<IntegerAttr>(name);
  return attr ? attr.getInt() : otherwise;
}

llvm::StringRef Inference::text(llvm::StringRef name,
                                llvm::StringRef otherwise) const {
  auto attr = op->getAttrOfType<StringAttr>(name);
  return attr ? attr.getValue() : otherwise;
}

std::optional<Dims> Inference::integers(llvm::StringRef name) const {
  auto attr = op->getAttrOfType<DenseI64ArrayAttr>(name);
  if (!attr)
    return std::nullopt;
  return Dims(attr.asArrayRef());
}

FailureOr<std::int64_t> Inference::axis(std::int64_t axis,
                                        std::int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    (void)fail("axis " + llvm::Twine(axis) + " is outside a tensor of rank " +
               llvm::Twine(rank));
    return failure();
  }
  return axis < 0 ? axis + rank : axis;
}

FailureOr<Dims> Inference::axes(ArrayRef<std::int64_t> list,
                                std::int64_t rank) const {
  Dims result;
  for (std::int64_t one : list) {
    FailureOr<std::int64_t> at = axis(one, rank);
    if (failed(at))
      return failure();
    if (llvm::is_contained(result, *at)) {
      (void)fail("axis " + llvm::Twine(*at) + " is named twice");
      return failure();
    }
    result.push_back(*at);
  }
  llvm::sort(result);
  return result;
}

FailureOr<Dims> Inference::broadcast(ArrayRef<Dims> shapes) const {
  std::size_t rank = 0;
  for (const Dims &shape : shapes)
    rank = std::max(rank, shape.size());
  Dims result(rank, 1);
  for (const Dims &shape : shapes) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t &dim = result[rank - shape.size() + i];
      std::int64_t own = shape[i];
      if (own == 1 || own == dim)
        continue;
      if (dim == 1 || (dim == kUnknown && own != kUnknown))
        dim = own;
      else if (own != kUnknown) {
        (void)fail("dimensions " + llvm::Twine(dim) + " and " +
                   llvm::Twine(own) + " do not broadcast");
        return failure();
      }
    }
  }
  return result;
}

LogicalResult Inference::sameElements(unsigned a, unsigned b) const {
  if (element(a) == element(b))
    return success();
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "inputs " << a << " and " << b << " have elements of type "
         << element(a) << " and " << element(b);
  return fail(text);
}

std::string dimsText(ArrayRef<std::int64_t> dims) {
  std::string text = "[";
  for (auto [i, dim] : llvm::enumerate(dims))
    text += (i ? ", " : "") + (dim == kUnknown ? "?" : std::to_string(dim));
  return text + "]";
}

LogicalResult Inference::hasDims(unsigned index, llvm::StringRef what,
                                 ArrayRef<std::int64_t> expected) const {
  if (!has(index))
    return success();
  bool fits = dims(index).size() == expected.size();
  for (auto [own, wanted] : llvm::zip(dims(index), expected))
    fits &= !differ(own, wanted);
  if (fits)
    return success();
  return fail(what + " is " + dimsText(dims(index)) + ", expected " +
              dimsText(expected));
}

LogicalResult Inference::broadcastsTo(unsigned index, llvm::StringRef what,
                                      ArrayRef<std::int64_t> target) const {
  if (!has(index))
    return success();
  ArrayRef<std::int64_t> own = dims(index);
  bool fits = own.size() <= target.size();
  if (fits)
    for (auto [dim, wanted] : llvm::zip(own, target.take_back(own.size())))
      fits &= dim == 1 || !differ(dim, wanted);
  if (fits)
    return success();
  return fail(what + " is " + dimsText(own) + ", which does not broadcast to " +
              dimsText(target));
}

LogicalResult Inference::isScalar(unsigned index, llvm::StringRef what) const {
  if (!has(index) || !type(index).hasStaticShape() ||
      type(index).getNumElements() == 1)
    return success();
  return fail(what + " is " + dimsText(dims(index)) + ", expected one element");
}

namespace {

InferenceRule findRule(llvm::StringRef name) {
  for (auto family : {elementwiseRule, shapeRule, linearRule, modelRule})
    if (InferenceRule rule = family(name))
      return rule;
  return nullptr;
}

// Which operand an unranked result takes its elements from.
Type unrankedElement(Operation *op, unsigned result) {
  llvm::StringRef name = op->getName().stripDialect();
  MLIRContext *context = op->getContext();
  if (name == "Cast" || name == "BitCast")
    return op->getAttrOfType<TypeAttr>("to").getValue();
  if (name == "Where" || name == "CastLike")
    return cast<TensorType>(op->getOperand(1).getType()).getElementType();
  if (llvm::is_contained({"ArgMax", "ArgMin", "Shape", "Size"}, name) ||
      (name == "TopK" && result == 1))
    return IntegerType::get(context, 64);
  if (llvm::is_contained({"Equal", "Less", "LessOrEqual", "Greater",
                          "GreaterOrEqual", "IsNaN", "IsInf"},
                         name))
    return IntegerType::get(context, 1);
  return cast<TensorType>(op->getOperand(0).getType()).getElementType();
}

} // namespace

FailureOr<Types> inferResultTypes(Operation *op) {
  llvm::StringRef name = op->getName().stripDialect();
  InferenceRule rule = findRule(name);
  if (!rule)
    return op->emitError() << describe(op) << ": has no rule for its types";
  for (Value operand : op->getOperands()) {
    auto tensor = dyn_cast<TensorType>(operand.getType());
    if (!tensor || tensor.hasRank() || name == "Shape" || name == "Size" ||
        name == "Reshape" || name == "If" || name == "ConstantOfShape")
      continue;
    Types types;
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      types.push_back(UnrankedTensorType::get(unrankedElement(op, i)));
    return types;
  }
  Inference inference(op);
  FailureOr<Types> types = rule(inference);
  if (failed(types))
    return failure();
  for (Type type : *types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    std::int64_t product = 1;
    for (std::int64_t dim : tensor ? tensor.getShape() : ArrayRef<int64_t>())
      if (dim != kUnknown &&
          (dim < 0 ||
           llvm::MulOverflow(product, std::max<std::int64_t>(dim, 1),
                             product) ||
           product > kMaxElements))
        return inference.fail("a result has too many elements");
  }
  return types;
}

bool areCompatible(Type a, Type b) {
  if (a == b)
    return true;
  auto first = dyn_cast<TensorType>(a), second = dyn_cast<TensorType>(b);
  if (!first || !second || first.getElementType() != second.getElementType())
    return false;
  if (!first.hasRank() || !second.hasRank())
    return true;
  if (first.getRank() != second.getRank())
    return false;
  for (auto [x, y] : llvm::zip(first.getShape(), second.getShape()))
    if (x != kUnknown && y != kUnknown && x != y)
      return false;
  return true;
}

Type meet(Type a, Type b) {
  auto first = dyn_cast<TensorType>(a), second = dyn_cast<TensorType>(b);
  if (!first || !second || !second.hasRank())
    return a;
  if (!first.hasRank())
    return b;
  Dims dims(first.getShape());
  for (auto [dim, other] : llvm::zip(dims, second.getShape()))
    dim = dim == kUnknown ? other : dim;
  return RankedTensorType::get(dims, first.getElementType());
}

} // namespace ingot::onnx
