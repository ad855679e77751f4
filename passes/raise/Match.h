// What the patterns are written with.
#pragma once

#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/OpMaker.h"
#include "passes/raise/Raise.h"

namespace ingot::raise {

// Past casts between floats of 16 bits and more, and identities. A cast to a
// narrower float is the rounding of somebody's codes, and stays.
mlir::Value throughCasts(mlir::Value value);
// The one number of a constant; none for a constant of several.
std::optional<double> number(mlir::Value value);
// Whether a value is a constant of the model, of any type and place.
bool isConstant(mlir::Value value);

template <typename Op> Op as(mlir::Value value) {
  return throughCasts(value).getDefiningOp<Op>();
}

// The other operand of a product or sum whose one operand is a number.
struct WithNumber {
  mlir::Value other;
  double number = 0;
};
// Of a Mul (either side) or a Div by a number, which counts as its inverse.
std::optional<WithNumber> scaled(mlir::Value value);
// Of an Add, either side.
std::optional<WithNumber> shifted(mlir::Value value);

// A value cast to the element type of another, where it has not got it.
mlir::Value castTo(onnx::OpMaker &maker, mlir::Value value, mlir::Type element);

// Calls `rewrite` on each operator of type Op, in order; it answers with the
// value that takes the place of the operator's first result, or none.
template <typename Op>
unsigned
rewriteEach(mlir::ModuleOp module,
            llvm::function_ref<mlir::Value(Op, onnx::OpMaker &)> rewrite) {
  llvm::SmallVector<Op> all;
  module.walk([&](Op op) { all.push_back(op); });
  unsigned count = 0;
  for (Op op : all) {
    mlir::OpBuilder builder(op);
    onnx::OpMaker maker(builder, op->getLoc());
    mlir::Value value = rewrite(op, maker);
    if (!value || value.getType() != op->getResult(0).getType())
      continue;
    op->getResult(0).replaceAllUsesWith(value);
    ++count;
  }
  return count;
}

// Erases operators without uses.
void eraseUnused(mlir::ModuleOp module);

} // namespace ingot::raise
