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

// The exponent may have a type of its own.
FailureOr<Types> power(Inference &in) {
  FailureOr<Dims> dims = broadcastAll(in);
  if (failed(dims))
    return failure();
  return in.one(*dims, in.element(0));
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
    if (in.has(i)) {
      if (failed(in.sameElements(0, i)))
        return failure();
      if (in.type(i).hasStaticShape() && in.type(i).getNumElements() != 1)
        return in.fail("min and max are scalars");
    }
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
                                          "Gelu",
                                          "Mish",
                                          "Swish",
                                          "HardSigmoid",
                                          "HardSwish",
                                          "Softplus",
                                          "Softsign",
                                          "Shrink",
                                          "Identity"};
  static const llvm::StringSet<> binaries = {
      "Add",        "Sub", "Mul", "Div",      "Mod",        "PRelu",
      "And",        "Or",  "Xor", "BitShift", "BitwiseAnd", "BitwiseOr",
      "BitwiseXor", "Max", "Min", "Sum",      "Mean"};
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
      .Case("Where", where)
      .Case("Clip", clip)
      .Case("Cast", castTo)
      .Case("CastLike", castLike)
      .Case("BitCast", bitCast)
      .Case("Dropout", dropout)
      .Default(nullptr);
}

} // namespace ingot::onnx
