#include "compiler/codegen/graph/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSwitch.h"

#include <limits>

using namespace mlir;

namespace ingot::graph {

Type storageType(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? IntegerType::get(type.getContext(), integer.getWidth())
                 : type;
}

Type computeType(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  return storageType(type);
}

Type sumType(Type type) {
  return type.isF16() || type.isBF16()
             ? Type(Float32Type::get(type.getContext()))
             : type;
}

Type wideType(Type type) {
  return type.isF64() ? type : Type(Float32Type::get(type.getContext()));
}

Scalar Emit::number(double value, Type type) {
  Type compute = computeType(type);
  if (isa<FloatType>(compute))
    return {b.create<arith::ConstantOp>(loc, b.getFloatAttr(compute, value)),
            type};
  return integer(static_cast<std::int64_t>(value), type);
}

Scalar Emit::integer(std::int64_t value, Type type) {
  Type compute = computeType(type);
  if (isa<FloatType>(compute))
    return number(static_cast<double>(value), type);
  unsigned width = compute.getIntOrFloatBitWidth();
  return {b.create<arith::ConstantOp>(
              loc, b.getIntegerAttr(compute, APInt(64, value).trunc(width))),
          type};
}

Scalar Emit::lowest(Type type) {
  if (isFloat(type))
    return number(-std::numeric_limits<double>::infinity(), type);
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value =
      isUnsigned(type) ? APInt(width, 0) : APInt::getSignedMinValue(width);
  return {b.create<arith::ConstantOp>(
              loc, b.getIntegerAttr(storageType(type), value)),
          type};
}

Scalar Emit::highest(Type type) {
  if (isFloat(type))
    return number(std::numeric_limits<double>::infinity(), type);
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = isUnsigned(type) ? APInt::getMaxValue(width)
                                 : APInt::getSignedMaxValue(width);
  return {b.create<arith::ConstantOp>(
              loc, b.getIntegerAttr(storageType(type), value)),
          type};
}

Scalar Emit::fromIndex(Value value) {
  return {b.create<arith::IndexCastOp>(loc, b.getI64Type(), value),
          b.getI64Type()};
}

Scalar Emit::add(Scalar x, Scalar y) {
  if (isFloat(x.type))
    return {b.createOrFold<arith::AddFOp>(loc, x.value, y.value), x.type};
  return {b.createOrFold<arith::AddIOp>(loc, x.value, y.value), x.type};
}
Scalar Emit::sub(Scalar x, Scalar y) {
  if (isFloat(x.type))
    return {b.createOrFold<arith::SubFOp>(loc, x.value, y.value), x.type};
  return {b.createOrFold<arith::SubIOp>(loc, x.value, y.value), x.type};
}
Scalar Emit::mul(Scalar x, Scalar y) {
  if (isFloat(x.type))
    return {b.createOrFold<arith::MulFOp>(loc, x.value, y.value), x.type};
  return {b.createOrFold<arith::MulIOp>(loc, x.value, y.value), x.type};
}

Scalar Emit::div(Scalar x, Scalar y) {
  if (isFloat(x.type))
    return {b.createOrFold<arith::DivFOp>(loc, x.value, y.value), x.type};
  // Neither 0 nor, where the quotient overflows, -1 reaches the instruction.
  Scalar none = integer(0, x.type), one = integer(1, x.type);
  Value isZero = compare(Compare::Equal, y, none);
  if (isUnsigned(x.type)) {
    Scalar safe = select(isZero, one, y);
    Scalar q{b.create<arith::DivUIOp>(loc, x.value, safe.value), x.type};
    return select(isZero, none, q);
  }
  Value isMinus = compare(Compare::Equal, y, integer(-1, x.type));
  Scalar safe = select(isMinus, one, select(isZero, one, y));
  Scalar q{b.create<arith::DivSIOp>(loc, x.value, safe.value), x.type};
  return select(isZero, none, select(isMinus, sub(none, x), q));
}

Scalar Emit::mod(Scalar x, Scalar y, bool likeX) {
  if (isFloat(x.type)) {
    Scalar r{b.create<arith::RemFOp>(loc, x.value, y.value), x.type};
    if (likeX)
      return r;
    Scalar none = zero(x.type);
    Value isZero = compare(Compare::Equal, r, none);
    Value signs = b.create<arith::XOrIOp>(loc, compare(Compare::Less, r, none),
                                          compare(Compare::Less, y, none));
    return select(isZero, r, select(signs, add(r, y), r));
  }
  Scalar r = sub(x, mul(div(x, y), y));
  if (likeX || isUnsigned(x.type))
    return r;
  Scalar none = integer(0, x.type);
  Value isZero = compare(Compare::Equal, r, none);
  Value signs = b.create<arith::XOrIOp>(loc, compare(Compare::Less, r, none),
                                        compare(Compare::Less, y, none));
  return select(isZero, r, select(signs, add(r, y), r));
}

// Integers: by squaring, exact modulo the type's width. A negative exponent
// gives what the fraction truncates to.
Scalar Emit::pow(Scalar x, Scalar y) {
  if (isFloat(x.type)) {
    Scalar exponent = cast(y, x.type);
    return {b.create<math::PowFOp>(loc, x.value, exponent.value), x.type};
  }
  if (isFloat(y.type)) {
    Type f64 = b.getF64Type();
    Scalar wide{
        b.create<math::PowFOp>(loc, cast(x, f64).value, cast(y, f64).value),
        f64};
    return cast(wide, x.type);
  }
  Type i64 = b.getI64Type();
  Scalar exponent = cast(y, i64);
  Scalar one = integer(1, x.type), none = integer(0, x.type);
  auto loop = b.create<scf::ForOp>(
      loc, index(0), index(64), index(1), ValueRange{one.value, x.value},
      [&](OpBuilder &inner, Location, Value bit, ValueRange state) {
        Emit e(inner, loc);
        Scalar result{state[0], x.type}, base{state[1], x.type};
        Value at = inner.create<arith::IndexCastOp>(loc, i64, bit);
        Value shifted = inner.create<arith::ShRUIOp>(loc, exponent.value, at);
        Value set =
            inner.create<arith::TruncIOp>(loc, inner.getI1Type(), shifted);
        Scalar next = e.select(set, e.mul(result, base), result);
        inner.create<scf::YieldOp>(
            loc, ValueRange{next.value, e.mul(base, base).value});
      });
  Scalar power{loop.getResult(0), x.type};
  Value negative = compare(Compare::Less, exponent, integer(0, i64));
  // 1 ^ -n is 1, (-1) ^ -n is 1 or -1 (the loop's result), others are 0.
  Scalar small = select(compare(Compare::Equal, x, one), one, none);
  if (!isUnsigned(x.type))
    small =
        select(compare(Compare::Equal, x, integer(-1, x.type)), power, small);
  return select(negative, small, power);
}

Scalar Emit::max(Scalar x, Scalar y) {
  if (isFloat(x.type))
    return {b.create<arith::MaximumFOp>(loc, x.value, y.value), x.type};
  return select(compare(Compare::Less, x, y), y, x);
}
Scalar Emit::min(Scalar x, Scalar y) {
  if (isFloat(x.type))
    return {b.create<arith::MinimumFOp>(loc, x.value, y.value), x.type};
  return select(compare(Compare::Less, y, x), y, x);
}

Scalar Emit::neg(Scalar x) {
  if (isFloat(x.type))
    return {b.create<arith::NegFOp>(loc, x.value), x.type};
  return sub(integer(0, x.type), x);
}
Scalar Emit::abs(Scalar x) {
  if (isFloat(x.type))
    return {b.create<math::AbsFOp>(loc, x.value), x.type};
  if (isUnsigned(x.type))
    return x;
  return select(compare(Compare::Less, x, integer(0, x.type)), neg(x), x);
}
Scalar Emit::sign(Scalar x) {
  Scalar none = zero(x.type);
  Scalar positive = select(compare(Compare::Less, none, x), number(1, x.type),
                           isFloat(x.type) ? mul(x, none) : none);
  if (isUnsigned(x.type))
    return positive;
  return select(compare(Compare::Less, x, none), number(-1, x.type), positive);
}

Value Emit::compare(Compare how, Scalar x, Scalar y) {
  if (isFloat(x.type)) {
    arith::CmpFPredicate predicate =
        how == Compare::Equal  ? arith::CmpFPredicate::OEQ
        : how == Compare::Less ? arith::CmpFPredicate::OLT
                               : arith::CmpFPredicate::OLE;
    return b.create<arith::CmpFOp>(loc, predicate, x.value, y.value);
  }
  const bool isPlain = !isUnsigned(x.type);
  arith::CmpIPredicate predicate =
      how == Compare::Equal ? arith::CmpIPredicate::eq
      : how == Compare::Less
          ? (isPlain ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult)
          : (isPlain ? arith::CmpIPredicate::sle : arith::CmpIPredicate::ule);
  return b.create<arith::CmpIOp>(loc, predicate, x.value, y.value);
}

Value Emit::isNan(Scalar x) {
  return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x.value,
                                 x.value);
}

Scalar Emit::select(Value condition, Scalar x, Scalar y) {
  return {b.create<arith::SelectOp>(loc, condition, x.value, y.value), x.type};
}

Scalar Emit::cast(Scalar x, Type to) {
  if (x.type == to)
    return x;
  Type from = x.value.getType(), compute = computeType(to);
  if (isFloat(x.type) && isFloat(to)) {
    Value value = x.value;
    // A double becomes a half in one rounding.
    if (to.isF16() && from.isF64()) {
      value = b.create<arith::TruncFOp>(loc, to, value);
      return {b.create<arith::ExtFOp>(loc, compute, value), to};
    }
    if (from.getIntOrFloatBitWidth() < compute.getIntOrFloatBitWidth())
      value = b.create<arith::ExtFOp>(loc, compute, value);
    else if (from != compute)
      value = b.create<arith::TruncFOp>(loc, compute, value);
    Scalar result{value, to};
    return to.isF16() || to.isBF16() ? widen(narrow(result), to) : result;
  }
  if (isFloat(x.type)) {
    if (isBool(to))
      return {b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNE, x.value,
                                      zero(x.type).value),
              to};
    // Through int64, as numpy; what does not fit it, and NaN, goes to its ends
    // and to 0.
    Type wide = b.getI64Type();
    if (to.isUnsignedInteger(64)) {
      Scalar low = max(x, zero(x.type));
      Scalar high = min(low, number(18446742974197923840.0, x.type));
      Scalar sane = select(isNan(x), zero(x.type), high);
      return {b.create<arith::FPToUIOp>(loc, wide, sane.value), to};
    }
    const bool isDouble = from.isF64();
    Scalar low = max(x, number(-9223372036854775808.0, x.type));
    Scalar high = min(
        low, number(isDouble ? 9223372036854774784.0 : 9223371487098961920.0,
                    x.type));
    Scalar sane = select(isNan(x), zero(x.type), high);
    Value value = b.create<arith::FPToSIOp>(loc, wide, sane.value);
    if (compute != wide)
      value = b.create<arith::TruncIOp>(loc, compute, value);
    return {value, to};
  }
  if (isFloat(to)) {
    Value value =
        isUnsigned(x.type)
            ? b.create<arith::UIToFPOp>(loc, compute, x.value).getResult()
            : b.create<arith::SIToFPOp>(loc, compute, x.value).getResult();
    Scalar result{value, to};
    return to.isF16() || to.isBF16() ? widen(narrow(result), to) : result;
  }
  if (isBool(to))
    return {b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, x.value,
                                    integer(0, x.type).value),
            to};
  unsigned width = from.getIntOrFloatBitWidth(),
           wanted = compute.getIntOrFloatBitWidth();
  Value value = x.value;
  if (width > wanted)
    value = b.create<arith::TruncIOp>(loc, compute, value);
  else if (width < wanted && isUnsigned(x.type))
    value = b.create<arith::ExtUIOp>(loc, compute, value);
  else if (width < wanted)
    value = b.create<arith::ExtSIOp>(loc, compute, value);
  return {value, to};
}

Scalar Emit::bitAnd(Scalar x, Scalar y) {
  return {b.create<arith::AndIOp>(loc, x.value, y.value), x.type};
}
Scalar Emit::bitOr(Scalar x, Scalar y) {
  return {b.create<arith::OrIOp>(loc, x.value, y.value), x.type};
}
Scalar Emit::bitXor(Scalar x, Scalar y) {
  return {b.create<arith::XOrIOp>(loc, x.value, y.value), x.type};
}
Scalar Emit::shift(Scalar x, Scalar y, bool left) {
  unsigned width = x.value.getType().getIntOrFloatBitWidth();
  Value fits = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, y.value,
                                       integer(width, y.type).value);
  Scalar by = select(fits, y, integer(0, y.type));
  Value value =
      left ? b.create<arith::ShLIOp>(loc, x.value, by.value).getResult()
           : b.create<arith::ShRUIOp>(loc, x.value, by.value).getResult();
  return select(fits, {value, x.type}, integer(0, x.type));
}

Scalar Emit::unary(llvm::StringRef name, Scalar x) {
  using Maker = Value (*)(OpBuilder &, Location, Value);
#define INGOT_UNARY(NAME, OP)                                                  \
  .Case(NAME, [](OpBuilder &b, Location loc, Value v) -> Value {               \
    return b.create<math::OP>(loc, v);                                         \
  })
  Maker maker =
      llvm::StringSwitch<Maker>(name)
      // clang-format off
      INGOT_UNARY("exp", ExpOp) INGOT_UNARY("expm1", ExpM1Op)
      INGOT_UNARY("log", LogOp) INGOT_UNARY("log1p", Log1pOp)
      INGOT_UNARY("sqrt", SqrtOp) INGOT_UNARY("tanh", TanhOp)
      INGOT_UNARY("erf", ErfOp) INGOT_UNARY("sin", SinOp)
      INGOT_UNARY("cos", CosOp) INGOT_UNARY("tan", TanOp)
      INGOT_UNARY("asin", AsinOp) INGOT_UNARY("acos", AcosOp)
      INGOT_UNARY("atan", AtanOp) INGOT_UNARY("sinh", SinhOp)
      INGOT_UNARY("cosh", CoshOp) INGOT_UNARY("asinh", AsinhOp)
      INGOT_UNARY("acosh", AcoshOp) INGOT_UNARY("atanh", AtanhOp)
      INGOT_UNARY("floor", FloorOp) INGOT_UNARY("ceil", CeilOp)
      INGOT_UNARY("round", RoundEvenOp)
                                              // clang-format on
                                              .Default(nullptr);
#undef INGOT_UNARY
  assert(maker && "a function of math");
  return {maker(b, loc, x.value), x.type};
}

Scalar Emit::widen(Value stored, Type type) {
  if (type.isBF16()) {
    // By hand: without bfloat16 instructions LLVM calls a library.
    Value bits = b.create<arith::BitcastOp>(loc, b.getI16Type(), stored);
    bits = b.create<arith::ExtUIOp>(loc, b.getI32Type(), bits);
    bits =
        b.create<arith::ShLIOp>(loc, bits, integer(16, b.getI32Type()).value);
    return {b.create<arith::BitcastOp>(loc, b.getF32Type(), bits), type};
  }
  if (type.isF16())
    return {b.create<arith::ExtFOp>(loc, b.getF32Type(), stored), type};
  return {stored, type};
}

Value Emit::narrow(Scalar x) {
  if (x.type.isF16())
    return b.create<arith::TruncFOp>(loc, x.type, x.value);
  if (!x.type.isBF16())
    return x.value;
  // Round to nearest even; a NaN stays quiet.
  Type i32 = b.getI32Type();
  Value bits = b.create<arith::BitcastOp>(loc, i32, x.value);
  Value sixteen = integer(16, i32).value;
  Value odd = b.create<arith::AndIOp>(
      loc, b.create<arith::ShRUIOp>(loc, bits, sixteen), integer(1, i32).value);
  Value bias = b.create<arith::AddIOp>(loc, odd, integer(0x7fff, i32).value);
  Value rounded = b.create<arith::AddIOp>(loc, bits, bias);
  Value quiet = b.create<arith::OrIOp>(loc, bits, integer(1 << 22, i32).value);
  Value chosen = b.create<arith::SelectOp>(loc, isNan(x), quiet, rounded);
  Value high = b.create<arith::TruncIOp>(
      loc, b.getI16Type(), b.create<arith::ShRUIOp>(loc, chosen, sixteen));
  return b.create<arith::BitcastOp>(loc, x.type, high);
}

Value Emit::index(std::int64_t value) {
  return b.create<arith::ConstantIndexOp>(loc, value);
}
Value Emit::addIndex(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value Emit::addIndex(Value x, std::int64_t y) {
  return y == 0 ? x : addIndex(x, index(y));
}
Value Emit::mulIndex(Value x, std::int64_t y) {
  return y == 1 ? x : b.createOrFold<arith::MulIOp>(loc, x, index(y));
}
Value Emit::divIndex(Value x, std::int64_t y) {
  return y == 1 ? x : b.createOrFold<arith::DivUIOp>(loc, x, index(y));
}
Value Emit::remIndex(Value x, std::int64_t y) {
  return y == 1 ? index(0) : b.createOrFold<arith::RemUIOp>(loc, x, index(y));
}
Value Emit::less(Value x, Value y) {
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, y);
}
Value Emit::bitAnd(Value x, Value y) {
  return b.create<arith::AndIOp>(loc, x, y);
}
Value Emit::within(Value x, std::int64_t size) {
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, x,
                                 index(size));
}
Value Emit::inside(Value x, std::int64_t size) {
  return b.create<arith::SelectOp>(loc, within(x, size), x, index(0));
}
Value Emit::toIndex(Scalar x, std::int64_t size) {
  Value at = b.create<arith::IndexCastOp>(loc, b.getIndexType(),
                                          cast(x, b.getI64Type()).value);
  Value negative = less(at, index(0));
  Value counted =
      b.create<arith::SelectOp>(loc, negative, addIndex(at, size), at);
  Value low = b.create<arith::MaxSIOp>(loc, counted, index(0));
  return b.create<arith::MinSIOp>(loc, low,
                                  index(std::max<std::int64_t>(size - 1, 0)));
}

} // namespace ingot::graph
