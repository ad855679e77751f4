// Scales and zero points: one for all, one for each index of an axis, or one for
// each block along it.
#include "compiler/codegen/graph/Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace ingot::graph {
namespace {

// Where the parameter of an element lies.
struct Parameters {
  std::int64_t axis = 0, block = 0;

  Index at(Lowering &l, Tensor of, Indices element) const {
    if (of.type.getNumElements() == 1)
      return Index(of.rank(), l.index(0));
    if (block == 0)
      return {element[axis]};
    Index place(element);
    place[axis] = l.divIndex(place[axis], block);
    return place;
  }
};

FailureOr<Parameters> parameters(Lowering &l) {
  Tensor x = l.in(0), scale = l.in(1);
  Parameters p;
  p.axis = l.node.integer("axis", 1);
  p.axis = p.axis < 0 ? p.axis + x.rank() : p.axis;
  p.block = l.node.integer("block_size");
  if (l.has(2) && l.in(2).type.getNumElements() != scale.type.getNumElements())
    return l.refuse("scales and zero points have different shapes");
  if (scale.type.getNumElements() == 1 && p.block == 0)
    return p;
  if (p.axis < 0 || p.axis >= x.rank())
    return l.refuse("axis " + llvm::Twine(p.axis));
  if (p.block < 0)
    return l.refuse("block_size " + llvm::Twine(p.block));
  if (p.block == 0) {
    if (scale.rank() != 1 || scale.dim(0) != x.dim(p.axis))
      return l.refuse("a scale for each index of axis " + llvm::Twine(p.axis) +
                      " is expected");
  } else {
    Dims wanted(x.dims());
    wanted[p.axis] = (wanted[p.axis] + p.block - 1) / p.block;
    if (ArrayRef<std::int64_t>(wanted) != scale.dims())
      return l.refuse("a scale for each block of " + llvm::Twine(p.block) +
                      " along axis " + llvm::Twine(p.axis) + " is expected");
  }
  if (l.has(2) && l.in(2).dims() != scale.dims())
    return l.refuse("scales and zero points have different shapes");
  return p;
}

bool isCode(Type type) {
  return type.isInteger(8) || type.isInteger(16) || type.isUnsignedInteger(8) ||
         type.isUnsignedInteger(16) || type.isInteger(32);
}

Scalar saturated(Lowering &l, Scalar x, Type code) {
  unsigned width = code.getIntOrFloatBitWidth();
  const bool isPlain = !isUnsigned(code);
  double low = isPlain ? -std::ldexp(1.0, width - 1) : 0;
  double high = std::ldexp(1.0, isPlain ? width - 1 : width) - 1;
  Scalar clamped =
      l.min(l.max(x, l.number(low, x.type)), l.number(high, x.type));
  return l.cast(clamped, code);
}

LogicalResult quantize(Lowering &l) {
  Tensor x = l.in(0), scale = l.in(1), y = l.out(0);
  if (!isCode(y.element()) || y.element().isInteger(32))
    return l.refuse("codes of this type are not supported");
  if (l.node.integer("precision") > 1)
    return l.refuse("a precision is not supported");
  auto p = parameters(l);
  if (failed(p))
    return failure();
  Type type = x.element().isF64() ? x.element() : Type(l.b.getF32Type());
  const bool hasZero = l.has(2);
  Tensor zero = hasZero ? l.in(2) : Tensor();
  l.fill(y, [&](Indices at) {
    Scalar value = l.div(l.cast(l.load(x, at), type),
                         l.cast(l.load(scale, p->at(l, scale, at)), type));
    value = l.unary("round", value);
    if (hasZero)
      value = l.add(value, l.cast(l.load(zero, p->at(l, zero, at)), type));
    return saturated(l, value, y.element());
  });
  return success();
}

LogicalResult dequantize(Lowering &l) {
  Tensor x = l.in(0), scale = l.in(1), y = l.out(0);
  if (!isCode(x.element()))
    return l.refuse("codes of this type are not supported");
  auto p = parameters(l);
  if (failed(p))
    return failure();
  const bool hasZero = l.has(2);
  Tensor zero = hasZero ? l.in(2) : Tensor();
  Type i64 = l.b.getI64Type(), f32 = l.b.getF32Type();
  l.fill(y, [&](Indices at) {
    Scalar code = l.cast(l.load(x, at), i64);
    if (hasZero)
      code = l.sub(code, l.cast(l.load(zero, p->at(l, zero, at)), i64));
    Scalar value = l.mul(l.cast(code, f32),
                         l.cast(l.load(scale, p->at(l, scale, at)), f32));
    return l.cast(value, y.element());
  });
  return success();
}

LogicalResult dynamicQuantize(Lowering &l) {
  Tensor x = l.in(0), y = l.out(0), scaleOut = l.out(1), zeroOut = l.out(2);
  Type f32 = l.b.getF32Type();
  Scalars range = l.loop(x.dims(), {l.zero(f32), l.zero(f32)},
                         [&](Indices at, ArrayRef<Scalar> s) -> Scalars {
                           Scalar v = l.load(x, at);
                           return {l.min(s[0], v), l.max(s[1], v)};
                         });
  Scalar scale = l.div(l.sub(range[1], range[0]), l.number(255, f32));
  // A tensor of zeros: any scale will do.
  scale = l.select(l.compare(Compare::Equal, scale, l.zero(f32)),
                   l.number(1, f32), scale);
  Scalar zero = l.unary("round", l.div(l.neg(range[0]), scale));
  zero = l.min(l.max(zero, l.zero(f32)), l.number(255, f32));
  Tensor scaleAt = l.temporary({}, f32), zeroAt = l.temporary({}, f32);
  l.store(scaleAt, {}, scale);
  l.store(zeroAt, {}, zero);
  l.store(scaleOut, {}, scale);
  l.store(zeroOut, {}, l.cast(zero, zeroOut.element()));
  l.fill(y, [&](Indices at) {
    Scalar value = l.unary("round", l.div(l.load(x, at), l.load(scaleAt, {})));
    return saturated(l, l.add(value, l.load(zeroAt, {})), y.element());
  });
  return success();
}

} // namespace

LoweringRule lowerQuantization(llvm::StringRef name) {
  return llvm::StringSwitch<LoweringRule>(name)
      .Case("QuantizeLinear", quantize)
      .Case("DequantizeLinear", dequantize)
      .Case("DynamicQuantizeLinear", dynamicQuantize)
      .Default(nullptr);
}

} // namespace ingot::graph
