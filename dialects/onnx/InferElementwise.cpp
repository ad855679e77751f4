// Types of operators that work on each element.
#include "dialects/onnx/Inference.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ingot::onnx {
namespace {

FailureOr<Types> same(Inference &in) { return Types{in.type(0)}; }

FailureOr<Types> predicate(Inference &in) {
  return in.one(in.dims(0), IntegerType::get(in.op->getContext(), 1));
}

FailureOr<Dims> broadcastAll(Inference &in) {
  SmallVector<Dims> shapes;
  for (unsigned i = 0; i < in.op->getNumOperands(); ++i)
    if (in.has(i))
      shapes.push_back(Dims(in.dims(i)));
  return in.broadcast(shapes);
}

FailureOr<Types> binary(Inference &in) {
  for (unsigned i = 1; i < in.op->getNumOperands(); ++i)
    if (failed(in.sameElements(0, i)))
      return failure();
  FailureOr<Dims> dims = broadcastAll(in);
  if (failed(dims))
    return failure();
  return in.one(*dims, in.element(0));
}

// The slope broadcasts to the input, and not the other way.
FailureOr<Types> prelu(Inference &in) {
  if (failed(in.sameElements(0, 1)) ||
      failed(in.broadcastsTo(1, "slope", in.dims(0))))
    return failure();
  return Types{in.type(0)};
}

FailureOr<Types> gelu(Inference &in) {
  llvm::StringRef how = in.text("approximate", "none");
  if (how != "none" && how != "tanh")
    return in.fail("approximate \"" + how + "\", expected none or tanh");
  return same(in);
}

// The exponent may have a type of its own.
FailureOr<Types> power(Inference &in) {
  FailureOr<Dims> dims = broadcastAll(in);
  if (failed(dims))
    return failure();
  return in.one(*dims, in.element(0));
}

FailureOr<Types> shift(Inference &in) {
  llvm::StringRef to = in.text("direction");
  if (to != "LEFT" && to != "RIGHT")
    return in.fail("direction \"" + to + "\", expected LEFT or RIGHT");
  return binary(in);
}

FailureOr<Types> comparison(Inference &in) {
  FailureOr<Types> types = binary(in);
  if (failed(types))
    return failure();
  return in.one(cast<RankedTensorType>((*types)[0]).getShape(),
                IntegerType::get(in.op->getContext(), 1));
}

FailureOr<Types> where(Inference &in) {
  FailureOr<Dims> dims = broadcastAll(in);
  if (failed(dims) || failed(in.sameElements(1, 2)))
    return failure();
  return in.one(*dims, in.element(1));
}

FailureOr<Types> clip(Inference &in) {
  for (unsigned i : {1u, 2u})
    if (in.has(i) && (failed(in.sameElements(0, i)) ||
                      failed(in.isScalar(i, i == 1 ? "min" : "max"))))
      return failure();
  return same(in);
}

FailureOr<Types> castTo(Inference &in) {
  return in.one(in.dims(0), cast<CastOp>(in.op).getTo());
}
FailureOr<Types> castLike(Inference &in) {
  return in.one(in.dims(0), in.element(1));
}
FailureOr<Types> bitCast(Inference &in) {
  Type to = cast<BitCastOp>(in.op).getTo();
  if (to.getIntOrFloatBitWidth() != in.element(0).getIntOrFloatBitWidth())
    return in.fail("the two types have different widths");
  return in.one(in.dims(0), to);
}

FailureOr<Types> dropout(Inference &in) {
  return Types{in.type(0),
               RankedTensorType::get(in.dims(0),
                                     IntegerType::get(in.op->getContext(), 1))};
}

} // namespace

InferenceRule elementwiseRule(llvm::StringRef name) {
  static const llvm::StringSet<> unary = {"Abs",
                                          "Acos",
                                          "Acosh",
                                          "Asin",
                                          "Asinh",
                                          "Atan",
                                          "Atanh",
                                          "Ceil",
                                          "Cos",
                                          "Cosh",
                                          "Erf",
                                          "Exp",
                                          "Floor",
                                          "Log",
                                          "Neg",
                                          "Not",
                                          "Reciprocal",
                                          "Round",
                                          "Sign",
                                          "Sin",
                                          "Sinh",
                                          "Sqrt",
                                          "Tan",
                                          "Tanh",
                                          "BitwiseNot",
                                          "Sigmoid",
                                          "Relu",
                                          "LeakyRelu",
                                          "ThresholdedRelu",
                                          "Elu",
                                          "Celu",
                                          "Selu",
                                          "Mish",
                                          "Swish",
                                          "HardSigmoid",
                                          "HardSwish",
                                          "Softplus",
                                          "Softsign",
                                          "Shrink",
                                          "Identity"};
  static const llvm::StringSet<> binaries = {
      "Add",        "Sub", "Mul", "Div",        "Mod",
      "And",        "Or",  "Xor", "BitwiseAnd", "BitwiseOr",
      "BitwiseXor", "Max", "Min", "Sum",        "Mean"};
  static const llvm::StringSet<> comparisons = {"Equal", "Less", "LessOrEqual",
                                                "Greater", "GreaterOrEqual"};
  if (unary.contains(name))
    return same;
  if (binaries.contains(name))
    return binary;
  if (comparisons.contains(name))
    return comparison;
  return llvm::StringSwitch<InferenceRule>(name)
      .Cases("IsInf", "IsNaN", predicate)
      .Case("Pow", power)
      .Case("PRelu", prelu)
      .Case("Gelu", gelu)
      .Case("BitShift", shift)
      .Case("Where", where)
      .Case("Clip", clip)
      .Case("Cast", castTo)
      .Case("CastLike", castLike)
      .Case("BitCast", bitCast)
      .Case("Dropout", dropout)
      .Default(nullptr);
}

} // namespace ingot::onnx
