// Scalar arithmetic on elements of ONNX types, written as arith and math
// operators. A half or a bfloat16 is a float32 while it is computed with;
// signedness belongs to the element type, as MLIR's integers here have none.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>

namespace ingot::graph {

// `type` is the ONNX element type, `value` has its compute type.
struct Scalar {
  mlir::Value value;
  mlir::Type type;
};

inline bool isFloat(mlir::Type type) {
  return llvm::isa<mlir::FloatType>(type);
}
inline bool isBool(mlir::Type type) { return type.isInteger(1); }
inline bool isUnsigned(mlir::Type type) {
  return type.isUnsignedInteger() || isBool(type);
}
// What an element is in memory: integers without signs.
mlir::Type storageType(mlir::Type type);
// What it is computed as.
mlir::Type computeType(mlir::Type type);
// What it is summed up in, unrounded between steps: float32 for 16 bits.
mlir::Type sumType(mlir::Type type);
// What statistics of floats are computed in: float32 or float64.
mlir::Type wideType(mlir::Type type);

enum class Compare { Equal, Less, LessOrEqual };

class Emit {
public:
  Emit(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  Scalar number(double value, mlir::Type type);
  Scalar zero(mlir::Type type) { return number(0.0, type); }
  Scalar integer(std::int64_t value, mlir::Type type);
  // The least and greatest values; floats: the infinities.
  Scalar lowest(mlir::Type type);
  Scalar highest(mlir::Type type);
  Scalar fromIndex(mlir::Value index); // int64
  Scalar flag(mlir::Value bit) { return {bit, b.getI1Type()}; }

  Scalar add(Scalar x, Scalar y);
  Scalar sub(Scalar x, Scalar y);
  Scalar mul(Scalar x, Scalar y);
  // Integers truncate; a divisor of 0 gives 0.
  Scalar div(Scalar x, Scalar y);
  // With the sign of y, or with `likeX` of x.
  Scalar mod(Scalar x, Scalar y, bool likeX);
  Scalar pow(Scalar x, Scalar y);
  // NaN where one is, as numpy.
  Scalar max(Scalar x, Scalar y);
  Scalar min(Scalar x, Scalar y);
  Scalar neg(Scalar x);
  Scalar abs(Scalar x);
  Scalar sign(Scalar x);
  mlir::Value compare(Compare how, Scalar x, Scalar y);
  mlir::Value isNan(Scalar x);
  Scalar select(mlir::Value condition, Scalar x, Scalar y);
  Scalar cast(Scalar x, mlir::Type to);
  Scalar bitAnd(Scalar x, Scalar y);
  Scalar bitOr(Scalar x, Scalar y);
  Scalar bitXor(Scalar x, Scalar y);
  // Zero where as many bits as the type has are shifted out.
  Scalar shift(Scalar x, Scalar y, bool left);

  // Of floats: "exp", "log", "sqrt", "tanh" ... by their name in math.
  Scalar unary(llvm::StringRef name, Scalar x);

  // Between memory and registers.
  Scalar widen(mlir::Value stored, mlir::Type type);
  mlir::Value narrow(Scalar x);

  // Positions.
  mlir::Value index(std::int64_t value);
  mlir::Value addIndex(mlir::Value x, mlir::Value y);
  mlir::Value addIndex(mlir::Value x, std::int64_t y);
  mlir::Value mulIndex(mlir::Value x, std::int64_t y);
  mlir::Value divIndex(mlir::Value x, std::int64_t y); // of x >= 0
  mlir::Value remIndex(mlir::Value x, std::int64_t y); // of x >= 0
  mlir::Value less(mlir::Value x, mlir::Value y);      // signed
  mlir::Value bitAnd(mlir::Value x, mlir::Value y);
  // 0 <= x < size.
  mlir::Value within(mlir::Value x, std::int64_t size);
  // x, or 0 where x is outside [0, size).
  mlir::Value inside(mlir::Value x, std::int64_t size);
  // An ONNX index: negative ones count from the end, and what is outside is
  // taken to the nearest end.
  mlir::Value toIndex(Scalar x, std::int64_t size);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace ingot::graph
