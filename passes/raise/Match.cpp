#include "passes/raise/Match.h"

#include "mlir/IR/Iterators.h"

using namespace mlir;

namespace ingot::raise {

// Whether a cast to this type is but another precision of the same arithmetic.
static bool isWideFloat(Type type) {
  return onnx::isFloatTensor(type) &&
         cast<TensorType>(type).getElementTypeBitWidth() >= 16;
}

Value throughCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    const bool isSame =
        isa<onnx::IdentityOp>(op) ||
        (isa<onnx::ConcatOp>(op) && op->getNumOperands() == 1) ||
        (isa<onnx::CastOp>(op) && isWideFloat(value.getType()) &&
         isWideFloat(op->getOperand(0).getType()));
    if (!isSame)
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<double> number(Value value) {
  auto constant = throughCasts(value).getDefiningOp<onnx::ConstantOp>();
  if (!constant)
    return std::nullopt;
  ElementsAttr elements = constant.getValue();
  auto type = cast<ShapedType>(elements.getType());
  if (type.getNumElements() != 1)
    return std::nullopt;
  if (isa<FloatType>(type.getElementType())) {
    APFloat one = *elements.getValues<APFloat>().begin();
    bool lossy = false;
    one.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return one.convertToDouble();
  }
  return double((*elements.getValues<APInt>().begin()).getSExtValue());
}

bool isConstant(Value value) {
  value = throughCasts(value);
  return value.getDefiningOp<onnx::ConstantOp>() ||
         value.getDefiningOp<onnx::WeightOp>();
}

std::optional<WithNumber> scaled(Value value) {
  value = throughCasts(value);
  if (auto product = value.getDefiningOp<onnx::MulOp>()) {
    if (auto by = number(product.getB()))
      return WithNumber{product.getA(), *by};
    if (auto by = number(product.getA()))
      return WithNumber{product.getB(), *by};
  }
  if (auto quotient = value.getDefiningOp<onnx::DivOp>())
    if (auto by = number(quotient.getB()); by && *by != 0)
      return WithNumber{quotient.getA(), 1.0 / *by};
  return std::nullopt;
}

std::optional<WithNumber> shifted(Value value) {
  auto sum = as<onnx::AddOp>(value);
  if (!sum)
    return std::nullopt;
  if (auto by = number(sum.getB()))
    return WithNumber{sum.getA(), *by};
  if (auto by = number(sum.getA()))
    return WithNumber{sum.getB(), *by};
  return std::nullopt;
}

Value castTo(onnx::OpMaker &maker, Value value, Type element) {
  if (cast<TensorType>(value.getType()).getElementType() == element)
    return value;
  FailureOr<Value> result =
      maker.value("Cast", {value},
                  {maker.builder.getNamedAttr("to", TypeAttr::get(element))});
  return failed(result) ? value : *result;
}

void eraseUnused(ModuleOp module) {
  module.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (op->getDialect() && op->getDialect()->getNamespace() == "onnx" &&
        op->use_empty() && !op->hasTrait<OpTrait::IsTerminator>())
      op->erase();
  });
}

void raiseAll(ModuleOp module, const Explain &explain) {
  raiseNorms(module, explain);
  raiseRotary(module, explain);
  raiseGatedMlp(module, explain);
  fuseAttention(module, explain);
}

} // namespace ingot::raise
