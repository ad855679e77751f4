// Activations that exports take apart: x sigmoid(x), and x times the normal
// distribution function of x by erf or by tanh.
#include "passes/raise/Match.h"

#include <cmath>

using namespace mlir;

namespace ingot::raise {
namespace {

// Whether a constant that `value`'s elements are multiplied by is `b`, as exporters
// write it: with some digits, rounded to the type of the elements.
bool isNear(double a, double b, Value value) {
  Type type = cast<TensorType>(value.getType()).getElementType();
  const double rounding = type.isBF16()  ? 0x1.02p-9
                          : type.isF16() ? 0x1.02p-12
                                         : 0;
  return std::abs(a - b) <= std::max(2e-4, rounding) * std::abs(b);
}

// The argument of 1 + f(argument), f being Erf or Tanh.
template <typename Op> Value onePlus(Value value) {
  auto sum = shifted(value);
  if (!sum || sum->number != 1)
    return {};
  auto inner = as<Op>(sum->other);
  return inner ? inner->getOperand(0) : Value();
}

// sqrt(2 / pi) (x + 0.044715 x^3), whichever way the cube is written.
bool isTanhArgument(Value value, Value x) {
  auto outer = scaled(value);
  if (!outer || !isNear(outer->number, std::sqrt(2.0 / M_PI), outer->other))
    return false;
  auto sum = as<onnx::AddOp>(outer->other);
  if (!sum)
    return false;
  for (auto [a, b] :
       {std::pair(sum.getA(), sum.getB()), std::pair(sum.getB(), sum.getA())}) {
    auto cube = scaled(b);
    if (throughCasts(a) != x || !cube ||
        !isNear(cube->number, 0.044715, cube->other))
      continue;
    if (auto power = as<onnx::PowOp>(cube->other))
      return throughCasts(power.getX()) == x && number(power.getY()) == 3.0;
    if (auto product = as<onnx::MulOp>(cube->other))
      for (auto [p, q] : {std::pair(product.getA(), product.getB()),
                          std::pair(product.getB(), product.getA())})
        if (auto square = as<onnx::MulOp>(q);
            square && throughCasts(p) == x &&
            throughCasts(square.getA()) == x &&
            throughCasts(square.getB()) == x)
          return true;
  }
  return false;
}

// Factors of a product of up to three: x, 0.5 and 1 + f(..).
struct Factors {
  SmallVector<Value> values;
  double number = 1;
};
void collect(Value value, int depth, Factors &factors) {
  value = throughCasts(value);
  if (auto one = number(value)) {
    factors.number *= *one;
    return;
  }
  if (auto product = value.getDefiningOp<onnx::MulOp>(); product && depth < 3) {
    collect(product.getA(), depth + 1, factors);
    collect(product.getB(), depth + 1, factors);
    return;
  }
  if (auto quotient = value.getDefiningOp<onnx::DivOp>(); quotient)
    if (auto by = number(quotient.getB()); by && *by != 0 && depth < 3) {
      factors.number /= *by;
      collect(quotient.getA(), depth + 1, factors);
      return;
    }
  factors.values.push_back(value);
}

} // namespace

unsigned raiseGatedMlp(ModuleOp module, const Explain &explain) {
  auto raised = [&](const char *what, Operation *op) {
    if (explain)
      explain(std::string("raise-gated-mlp: ") + what + " from " +
              onnx::describe(op));
  };
  unsigned count = rewriteEach<onnx::MulOp>(
      module, [&](onnx::MulOp op, onnx::OpMaker &maker) -> Value {
        for (auto [x, other] : {std::pair(op.getA(), op.getB()),
                                std::pair(op.getB(), op.getA())}) {
          auto sigmoid = as<onnx::SigmoidOp>(other);
          if (!sigmoid || throughCasts(sigmoid.getX()) != throughCasts(x))
            continue;
          raised("Swish", op);
          FailureOr<Value> swish = maker.value("Swish", {x});
          return failed(swish) ? Value() : *swish;
        }
        Factors factors;
        collect(op.getResult(), 0, factors);
        if (factors.values.size() != 2 ||
            !isNear(factors.number, 0.5, op.getResult()))
          return {};
        for (unsigned i : {0u, 1u}) {
          Value x = factors.values[i], other = factors.values[1 - i];
          const char *how = nullptr;
          if (Value inner = onePlus<onnx::ErfOp>(other)) {
            auto by = scaled(inner);
            if (by && throughCasts(by->other) == x &&
                isNear(by->number, std::sqrt(0.5), by->other))
              how = "none";
          } else if (Value inner = onePlus<onnx::TanhOp>(other)) {
            if (isTanhArgument(inner, x))
              how = "tanh";
          }
          if (!how)
            continue;
          raised("Gelu", op);
          x = castTo(maker, x, cast<TensorType>(op.getType()).getElementType());
          FailureOr<Value> gelu = maker.value(
              "Gelu", {x},
              {maker.builder.getNamedAttr("approximate",
                                          maker.builder.getStringAttr(how))});
          return failed(gelu) ? Value() : *gelu;
        }
        return {};
      });
  eraseUnused(module);
  return count;
}

} // namespace ingot::raise
