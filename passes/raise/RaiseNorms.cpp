// 1. Skip norms become a sum and a norm. 2. weight * (x / sqrt(mean(x^2) + eps))
// becomes RMSNormalization; so does (number + weight) * that. 3. The same of x - mean(x), with a bias,
// LayerNormalization.
#include "passes/raise/Match.h"

#include "dialects/onnx/ShapeValues.h"

using namespace mlir;

namespace ingot::raise {
namespace {

// mean over the last axis, which stays.
Value meanOf(Value value) {
  auto mean = as<onnx::ReduceMeanOp>(value);
  if (!mean || mean.getKeepdims() == 0 || onnx::isAbsent(mean.getAxes()))
    return {};
  auto axes = onnx::knownInts(mean.getAxes());
  auto type = dyn_cast<RankedTensorType>(mean.getData().getType());
  if (!axes || !type || axes->size() != 1 ||
      ((*axes)[0] != -1 && (*axes)[0] != type.getRank() - 1))
    return {};
  return mean.getData();
}

// x of x^2, as a power or a product.
Value squareOf(Value value) {
  if (auto power = as<onnx::PowOp>(value)) {
    auto exponent = number(power.getY());
    return exponent && *exponent == 2 ? power.getX() : Value();
  }
  if (auto product = as<onnx::MulOp>(value))
    if (product.getA() == product.getB())
      return product.getA();
  return {};
}

// x / sqrt(mean(square) + eps), its forms with a reciprocal and a product.
struct Normalized {
  Value x;      // what is divided
  Value square; // what is squared
  double eps = 0;
};
std::optional<Normalized> normalized(Value value) {
  Value x, root;
  if (auto quotient = as<onnx::DivOp>(value)) {
    x = quotient.getA();
    root = quotient.getB();
  } else if (auto product = as<onnx::MulOp>(value)) {
    for (auto [a, b] : {std::pair(product.getA(), product.getB()),
                        std::pair(product.getB(), product.getA())}) {
      if (auto inverse = as<onnx::ReciprocalOp>(b)) {
        x = a;
        root = inverse.getX();
      } else if (auto inverse = as<onnx::DivOp>(b);
                 inverse && number(inverse.getA()) == 1.0) {
        x = a;
        root = inverse.getB();
      }
    }
  }
  if (!x)
    return std::nullopt;
  auto sqrt = as<onnx::SqrtOp>(root);
  if (!sqrt)
    return std::nullopt;
  auto sum = shifted(sqrt.getX());
  if (!sum)
    return std::nullopt;
  Value mean = meanOf(sum->other);
  Value square = mean ? squareOf(mean) : Value();
  if (!square || sum->number <= 0)
    return std::nullopt;
  return Normalized{x, square, sum->number};
}

Value make(onnx::OpMaker &maker, StringRef name, Value x, Value scale,
           Value bias, double eps, Type element) {
  x = castTo(maker, throughCasts(x), element);
  SmallVector<Value> inputs{x, castTo(maker, throughCasts(scale), element)};
  if (bias)
    inputs.push_back(castTo(maker, throughCasts(bias), element));
  FailureOr<Operation *> op =
      maker.make(name, inputs,
                 {maker.attr("axis", -1),
                  maker.builder.getNamedAttr(
                      "epsilon", maker.builder.getF32FloatAttr(eps))});
  if (failed(op))
    return {};
  for (unsigned i = 1; i < (*op)->getNumResults(); ++i)
    (*op)->getResult(i).setType(maker.builder.getNoneType());
  return (*op)->getResult(0);
}

// A vector that broadcasts along the last dimension alone: a constant, or one to
// which a number is added, as norms do whose weights are distances from one.
bool isScale(Value value, Value x) {
  if (auto by = shifted(value))
    value = by->other;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto of = dyn_cast<RankedTensorType>(x.getType());
  return isConstant(value) && type && of && type.getRank() == 1 &&
         of.getRank() > 1 && type.getDimSize(0) == of.getShape().back();
}

// A row of weights for each of the heads, the dimension before the last.
bool isScaleOfHeads(Value value, Value x) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto of = dyn_cast<RankedTensorType>(x.getType());
  return isConstant(value) && type && of && type.getRank() == 2 &&
         of.getRank() > 2 && type.getShape() == of.getShape().take_back(2);
}

// Weights that change nothing.
Value onesFor(onnx::OpMaker &maker, Value x, Type element) {
  auto type = RankedTensorType::get(
      {cast<RankedTensorType>(x.getType()).getShape().back()}, element);
  FailureOr<Value> ones = maker.value(
      "Constant", {},
      {maker.builder.getNamedAttr(
          "value", DenseElementsAttr::get(
                       type, maker.builder.getFloatAttr(element, 1.0)))});
  return failed(ones) ? Value() : *ones;
}

unsigned splitSkipNorms(ModuleOp module, const Explain &explain) {
  unsigned count = 0;
  SmallVector<Operation *> all;
  module.walk([&](Operation *op) {
    if (isa<onnx::SkipLayerNormalizationOp,
            onnx::SkipSimplifiedLayerNormalizationOp>(op))
      all.push_back(op);
  });
  for (Operation *op : all) {
    const bool centred = isa<onnx::SkipLayerNormalizationOp>(op);
    auto gamma = dyn_cast<RankedTensorType>(op->getOperand(2).getType());
    if (!onnx::isAbsent(op->getResult(1)) ||
        !onnx::isAbsent(op->getResult(2)) || !gamma || gamma.getRank() != 1) {
      if (explain)
        explain("raise-norms: left alone " + onnx::describe(op) +
                ": its statistics are used, or gamma is no vector");
      continue;
    }
    OpBuilder builder(op);
    onnx::OpMaker maker(builder, op->getLoc());
    // The bias is that of the projection before, so it joins that first.
    FailureOr<Value> sum = op->getOperand(0);
    Value bias = op->getOperand(centred ? 4 : 3);
    if (!onnx::isAbsent(bias))
      sum = maker.value("Add", {*sum, bias});
    if (succeeded(sum))
      sum = maker.value("Add", {op->getOperand(1), *sum});
    if (failed(sum))
      continue;
    Value beta = centred && !onnx::isAbsent(op->getOperand(3))
                     ? op->getOperand(3)
                     : Value();
    Type element = cast<TensorType>(sum->getType()).getElementType();
    Value norm = make(
        maker, centred ? "LayerNormalization" : "RMSNormalization", *sum,
        op->getOperand(2), beta,
        op->getAttrOfType<FloatAttr>("epsilon").getValueAsDouble(), element);
    if (!norm)
      continue;
    op->getResult(0).replaceAllUsesWith(norm);
    if (!onnx::isAbsent(op->getResult(3)))
      op->getResult(3).replaceAllUsesWith(*sum);
    ++count;
  }
  return count;
}

// The weights of a product, the normalised value on its other side.
std::optional<std::pair<Value, Normalized>> weighted(onnx::MulOp op) {
  for (auto [weight, other] :
       {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())})
    if (auto found = normalized(other);
        found &&
        (isScale(weight, found->x) || isScaleOfHeads(weight, found->x)))
      return std::pair(weight, *found);
  return std::nullopt;
}

} // namespace

unsigned raiseNorms(ModuleOp module, const Explain &explain) {
  unsigned count = splitSkipNorms(module, explain);
  // With a bias, and a mean that is taken off before.
  count += rewriteEach<onnx::AddOp>(
      module, [&](onnx::AddOp op, onnx::OpMaker &maker) -> Value {
        for (auto [bias, other] : {std::pair(op.getA(), op.getB()),
                                   std::pair(op.getB(), op.getA())}) {
          auto product = as<onnx::MulOp>(other);
          auto found = product ? weighted(product) : std::nullopt;
          if (!found || !isScale(bias, found->second.x) ||
              !isScale(found->first, found->second.x))
            continue;
          auto centred = as<onnx::SubOp>(found->second.x);
          if (!centred || throughCasts(found->second.square) !=
                              throughCasts(found->second.x))
            continue;
          Value mean = meanOf(centred.getB());
          if (!mean || throughCasts(mean) != throughCasts(centred.getA()))
            continue;
          if (explain)
            explain("raise-norms: LayerNormalization from " +
                    onnx::describe(op));
          return make(maker, "LayerNormalization", centred.getA(), found->first,
                      bias, found->second.eps,
                      cast<TensorType>(op.getType()).getElementType());
        }
        return {};
      });
  count += rewriteEach<onnx::MulOp>(
      module, [&](onnx::MulOp op, onnx::OpMaker &maker) -> Value {
        auto found = weighted(op);
        if (!found) {
          auto isNorm = [](Value value) {
            auto norm = normalized(value);
            return norm && throughCasts(norm->x) == throughCasts(norm->square);
          };
          if (explain && (isNorm(op.getA()) || isNorm(op.getB())))
            explain("raise-norms: left alone " + onnx::describe(op) +
                    ": what a norm is multiplied by is neither a constant of "
                    "its last dimension nor that plus a number");
          return {};
        }
        if (throughCasts(found->second.x) !=
            throughCasts(found->second.square)) {
          if (explain)
            explain("raise-norms: left alone " + onnx::describe(op) +
                    ": what is divided is not what is squared");
          return {};
        }
        Value x = found->second.x;
        const char *name = "RMSNormalization";
        if (auto centred = as<onnx::SubOp>(x)) {
          Value mean = meanOf(centred.getB());
          if (mean && throughCasts(mean) == throughCasts(centred.getA())) {
            x = centred.getA();
            name = "LayerNormalization";
          }
        }
        if (explain)
          explain(std::string("raise-norms: ") + name + " from " +
                  onnx::describe(op));
        Type element = cast<TensorType>(op.getType()).getElementType();
        if (isScale(found->first, x))
          return make(maker, name, x, found->first, Value(), found->second.eps,
                      element);
        Value ones = onesFor(maker, x, element);
        Value norm = ones ? make(maker, name, x, ones, Value(),
                                 found->second.eps, element)
                          : Value();
        if (!norm)
          return {};
        FailureOr<Value> product = maker.value(
            "Mul", {castTo(maker, throughCasts(found->first), element), norm});
        return failed(product) ? Value() : *product;
      });
  eraseUnused(module);
  return count;
}

} // namespace ingot::raise
