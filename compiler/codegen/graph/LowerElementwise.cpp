// Operators that work on each element, with broadcasting.
#include "compiler/codegen/graph/Lowering.h"

#include "dialects/onnx/OnnxOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace ingot::graph {
namespace {

using Unary = Scalar (*)(Lowering &, Scalar);
using Binary = Scalar (*)(Lowering &, Scalar, Scalar);

float real(Lowering &l, StringRef name) {
  return l.op->getAttrOfType<FloatAttr>(name).getValueAsDouble();
}
Scalar constant(Lowering &l, StringRef name, Scalar like) {
  return l.number(real(l, name), like.type);
}
Scalar logistic(Lowering &l, Scalar x) {
  Scalar one = l.number(1, x.type);
  return l.div(one, l.add(one, l.unary("exp", l.neg(x))));
}
Scalar clamp(Lowering &l, Scalar x, double low, double high) {
  return l.min(l.max(x, l.number(low, x.type)), l.number(high, x.type));
}
// log(1 + exp(x)) without overflow.
Scalar softplus(Lowering &l, Scalar x) {
  Scalar tail = l.unary("log1p", l.unary("exp", l.neg(l.abs(x))));
  return l.add(l.max(x, l.zero(x.type)), tail);
}
Value isNegative(Lowering &l, Scalar x) {
  return l.compare(Compare::Less, x, l.zero(x.type));
}

Scalar gelu(Lowering &l, Scalar x) {
  Scalar half = l.number(0.5, x.type), one = l.number(1, x.type);
  if (l.node.text("approximate") == "tanh") {
    Scalar cube = l.mul(l.number(0.044715, x.type), l.mul(x, l.mul(x, x)));
    Scalar inner =
        l.mul(l.number(std::sqrt(2.0 / M_PI), x.type), l.add(x, cube));
    return l.mul(l.mul(half, x), l.add(one, l.unary("tanh", inner)));
  }
  Scalar scaled = l.mul(x, l.number(std::sqrt(0.5), x.type));
  return l.mul(l.mul(half, x), l.add(one, l.unary("erf", scaled)));
}

Unary findUnary(StringRef name) {
#define INGOT_MATH(ONNX, MATH)                                                 \
  .Case(ONNX, [](Lowering &l, Scalar x) { return l.unary(MATH, x); })
  return llvm::StringSwitch<Unary>(name)
      // clang-format off
      INGOT_MATH("Acos", "acos") INGOT_MATH("Acosh", "acosh")
      INGOT_MATH("Asin", "asin") INGOT_MATH("Asinh", "asinh")
      INGOT_MATH("Atan", "atan") INGOT_MATH("Atanh", "atanh")
      INGOT_MATH("Ceil", "ceil") INGOT_MATH("Cos", "cos")
      INGOT_MATH("Cosh", "cosh") INGOT_MATH("Erf", "erf")
      INGOT_MATH("Exp", "exp") INGOT_MATH("Floor", "floor")
      INGOT_MATH("Log", "log") INGOT_MATH("Round", "round")
      INGOT_MATH("Sin", "sin") INGOT_MATH("Sinh", "sinh")
      INGOT_MATH("Sqrt", "sqrt") INGOT_MATH("Tan", "tan")
      INGOT_MATH("Tanh", "tanh")
                      // clang-format on
                      .Case("Abs",
                            [](Lowering &l, Scalar x) { return l.abs(x); })
                      .Case("Neg",
                            [](Lowering &l, Scalar x) { return l.neg(x); })
                      .Case("Sign",
                            [](Lowering &l, Scalar x) { return l.sign(x); })
                      .Case("Not",
                            [](Lowering &l, Scalar x) {
                              return l.bitXor(x, l.integer(1, x.type));
                            })
                      .Case("BitwiseNot",
                            [](Lowering &l, Scalar x) {
                              return l.bitXor(x, l.integer(-1, x.type));
                            })
                      .Case("Reciprocal",
                            [](Lowering &l, Scalar x) {
                              return l.div(l.number(1, x.type), x);
                            })
                      .Case("Sigmoid", logistic)
                      .Case("Relu",
                            [](Lowering &l, Scalar x) {
                              return l.max(x, l.zero(x.type));
                            })
                      .Case("LeakyRelu",
                            [](Lowering &l, Scalar x) {
                              return l.select(isNegative(l, x),
                                              l.mul(constant(l, "alpha", x), x),
                                              x);
                            })
                      .Case("ThresholdedRelu",
                            [](Lowering &l, Scalar x) {
                              return l.select(l.compare(Compare::Less,
                                                        constant(l, "alpha", x),
                                                        x),
                                              x, l.zero(x.type));
                            })
                      .Case("Elu",
                            [](Lowering &l, Scalar x) {
                              return l.select(isNegative(l, x),
                                              l.mul(constant(l, "alpha", x),
                                                    l.unary("expm1", x)),
                                              x);
                            })
                      .Case("Celu",
                            [](Lowering &l, Scalar x) {
                              Scalar alpha = constant(l, "alpha", x),
                                     zero = l.zero(x.type);
                              Scalar tail = l.mul(
                                  alpha, l.unary("expm1", l.div(x, alpha)));
                              return l.add(l.max(zero, x), l.min(zero, tail));
                            })
                      .Case("Selu",
                            [](Lowering &l, Scalar x) {
                              Scalar gamma = constant(l, "gamma", x);
                              Scalar tail = l.mul(constant(l, "alpha", x),
                                                  l.unary("expm1", x));
                              return l.mul(
                                  gamma, l.select(l.compare(Compare::Less,
                                                            l.zero(x.type), x),
                                                  x, tail));
                            })
                      .Case("Gelu", gelu)
                      .Case("Mish",
                            [](Lowering &l, Scalar x) {
                              return l.mul(x, l.unary("tanh", softplus(l, x)));
                            })
                      .Case("Swish",
                            [](Lowering &l, Scalar x) {
                              return l.mul(
                                  x, logistic(
                                         l, l.mul(constant(l, "alpha", x), x)));
                            })
                      .Case("HardSigmoid",
                            [](Lowering &l, Scalar x) {
                              return clamp(
                                  l,
                                  l.add(l.mul(constant(l, "alpha", x), x),
                                        constant(l, "beta", x)),
                                  0, 1);
                            })
                      .Case("HardSwish",
                            [](Lowering &l, Scalar x) {
                              Scalar inner =
                                  l.add(l.mul(l.number(1.0 / 6, x.type), x),
                                        l.number(0.5, x.type));
                              return l.mul(x, clamp(l, inner, 0, 1));
                            })
                      .Case("Softplus", softplus)
                      .Case("Softsign",
                            [](Lowering &l, Scalar x) {
                              return l.div(
                                  x, l.add(l.number(1, x.type), l.abs(x)));
                            })
                      .Case(
                          "Shrink",
                          [](Lowering &l, Scalar x) {
                            // In double, as numpy: an integer may meet a fraction.
                            Type f64 = l.b.getF64Type();
                            Scalar wide = l.cast(x, f64),
                                   lambda = l.number(real(l, "lambd"), f64),
                                   bias = l.number(real(l, "bias"), f64);
                            Scalar low = l.add(wide, bias),
                                   high = l.sub(wide, bias);
                            Scalar result = l.select(
                                l.compare(Compare::Less, wide, l.neg(lambda)),
                                low,
                                l.select(l.compare(Compare::Less, lambda, wide),
                                         high, l.zero(f64)));
                            return l.cast(result, x.type);
                          })
                      .Default(nullptr);
#undef INGOT_MATH
}

Binary findBinary(StringRef name) {
  return llvm::StringSwitch<Binary>(name)
      .Cases("Add", "Sum",
             [](Lowering &l, Scalar x, Scalar y) { return l.add(x, y); })
      .Case("Mean", [](Lowering &l, Scalar x, Scalar y) { return l.add(x, y); })
      .Case("Sub", [](Lowering &l, Scalar x, Scalar y) { return l.sub(x, y); })
      .Case("Mul", [](Lowering &l, Scalar x, Scalar y) { return l.mul(x, y); })
      .Case("Div", [](Lowering &l, Scalar x, Scalar y) { return l.div(x, y); })
      .Case("Mod",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.mod(x, y, l.node.integer("fmod") != 0);
            })
      .Case("Pow", [](Lowering &l, Scalar x, Scalar y) { return l.pow(x, y); })
      .Case("PRelu",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.select(isNegative(l, x), l.mul(y, x), x);
            })
      .Cases("And", "BitwiseAnd",
             [](Lowering &l, Scalar x, Scalar y) { return l.bitAnd(x, y); })
      .Cases("Or", "BitwiseOr",
             [](Lowering &l, Scalar x, Scalar y) { return l.bitOr(x, y); })
      .Cases("Xor", "BitwiseXor",
             [](Lowering &l, Scalar x, Scalar y) { return l.bitXor(x, y); })
      .Case("BitShift",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.shift(x, y, l.node.text("direction") == "LEFT");
            })
      .Case("Max", [](Lowering &l, Scalar x, Scalar y) { return l.max(x, y); })
      .Case("Min", [](Lowering &l, Scalar x, Scalar y) { return l.min(x, y); })
      .Case("Equal",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.flag(l.compare(Compare::Equal, x, y));
            })
      .Case("Less",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.flag(l.compare(Compare::Less, x, y));
            })
      .Case("LessOrEqual",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.flag(l.compare(Compare::LessOrEqual, x, y));
            })
      .Case("Greater",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.flag(l.compare(Compare::Less, y, x));
            })
      .Case("GreaterOrEqual",
            [](Lowering &l, Scalar x, Scalar y) {
              return l.flag(l.compare(Compare::LessOrEqual, y, x));
            })
      .Default(nullptr);
}

LogicalResult unary(Lowering &l) {
  Unary f = findUnary(l.op->getName().stripDialect());
  Tensor x = l.in(0);
  l.fill(l.out(0), [&](Indices at) { return f(l, l.load(x, at)); });
  return success();
}

// Any number of inputs, from the left.
LogicalResult binary(Lowering &l) {
  StringRef name = l.op->getName().stripDialect();
  Binary f = findBinary(name);
  if (name == "BitShift" && !isUnsigned(l.in(0).element()))
    return l.refuse("shifts are of unsigned integers");
  SmallVector<Tensor> inputs;
  for (unsigned i = 0; i < l.op->getNumOperands(); ++i)
    inputs.push_back(l.in(i));
  Tensor y = l.out(0);
  l.fill(y, [&](Indices at) {
    Scalar result = l.loadBroadcast(inputs[0], at);
    for (Tensor input : llvm::drop_begin(inputs))
      result = f(l, result, l.loadBroadcast(input, at));
    if (name == "Mean")
      result = l.div(result, l.number(inputs.size(), result.type));
    return result;
  });
  return success();
}

LogicalResult where(Lowering &l) {
  Tensor condition = l.in(0), x = l.in(1), y = l.in(2);
  l.fill(l.out(0), [&](Indices at) {
    return l.select(l.loadBroadcast(condition, at).value,
                    l.loadBroadcast(x, at), l.loadBroadcast(y, at));
  });
  return success();
}

LogicalResult clip(Lowering &l) {
  Tensor x = l.in(0);
  const bool hasMin = l.has(1), hasMax = l.has(2);
  Tensor low = hasMin ? l.in(1) : Tensor(), high = hasMax ? l.in(2) : Tensor();
  l.fill(l.out(0), [&](Indices at) {
    Scalar value = l.load(x, at);
    if (hasMin)
      value = l.max(value, l.loadScalar(low));
    return hasMax ? l.min(value, l.loadScalar(high)) : value;
  });
  return success();
}

LogicalResult castTo(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  l.fill(y, [&](Indices at) { return l.cast(l.load(x, at), y.element()); });
  return success();
}

LogicalResult bitCast(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0);
  if (isBool(x.element()) || isBool(y.element()))
    return l.refuse("booleans have no bits of their own");
  Type to = storageType(y.element());
  l.fill(y, [&](Indices at) {
    Value bits = l.narrow(l.load(x, at));
    if (bits.getType() != to)
      bits = l.b.create<arith::BitcastOp>(l.loc, to, bits);
    return l.widen(bits, y.element());
  });
  return success();
}

LogicalResult isInf(Lowering &l) {
  Tensor x = l.in(0);
  const bool low = l.node.integer("detect_negative", 1) != 0,
             high = l.node.integer("detect_positive", 1) != 0;
  l.fill(l.out(0), [&](Indices at) {
    Scalar value = l.load(x, at), none = l.integer(0, l.b.getI1Type());
    Scalar below =
        low ? l.flag(l.compare(Compare::Equal, value, l.lowest(value.type)))
            : none;
    Scalar above =
        high ? l.flag(l.compare(Compare::Equal, value, l.highest(value.type)))
             : none;
    return l.bitOr(below, above);
  });
  return success();
}

LogicalResult isNan(Lowering &l) {
  Tensor x = l.in(0);
  l.fill(l.out(0), [&](Indices at) { return l.flag(l.isNan(l.load(x, at))); });
  return success();
}

LogicalResult dropout(Lowering &l) {
  Tensor x = l.in(0);
  l.fill(l.out(0), [&](Indices at) { return l.load(x, at); });
  if (l.wants(1))
    l.fill(l.out(1), [&](Indices) { return l.integer(1, l.b.getI1Type()); });
  return success();
}

} // namespace

LoweringRule lowerElementwise(llvm::StringRef name) {
  if (findUnary(name))
    return unary;
  if (findBinary(name))
    return binary;
  return llvm::StringSwitch<LoweringRule>(name)
      .Case("Where", where)
      .Case("Clip", clip)
      .Cases("Cast", "CastLike", castTo)
      .Case("BitCast", bitCast)
      .Case("IsInf", isInf)
      .Case("IsNaN", isNan)
      .Case("Dropout", dropout)
      .Default(nullptr);
}

} // namespace ingot::graph
