// The parts that layers are made of, read from a probed graph: constants by where
// they lie in a file, projections, norms.
#pragma once

#include "compiler/frontend/ModelSpec.h"
#include "compiler/frontend/onnx/OnnxFile.h"
#include "dialects/onnx/OnnxOps.h"

#include <map>
#include <optional>

namespace ingot {

struct Linear {
  mlir::Value input;
  TensorSource weight; // [columns, input columns]
  std::optional<TensorSource> bias;
  std::int64_t columns = 0;
};

struct Norm {
  NormKind kind = NormKind::Rms;
  mlir::Value input;
  TensorSource weight;
  std::optional<TensorSource> bias;
  double eps = 0;
  double offset = 0; // added to the weights
};

// Accessors of ODS have no sign.
inline std::int64_t integerOf(mlir::Operation *op, llvm::StringRef name) {
  return op->getAttrOfType<mlir::IntegerAttr>(name).getInt();
}

// Rows `rows` of a matrix, or those elements of a vector.
std::optional<TensorSource> rowsOf(const TensorSource &source,
                                   llvm::ArrayRef<std::int64_t> rows);

// A number of a type's own as its author wrote it: the shortest decimal that is
// `number` once it is rounded to `element`. Any other number is itself.
double asWritten(double number, mlir::Type element);
// Whether `stored` is `number` once that is rounded to `element`, or to float32.
bool isRounded(double number, double stored, mlir::Type element);

class PartReader {
public:
  explicit PartReader(OnnxFile &file);

  // Past operators that keep every element.
  mlir::Value through(mlir::Value value);
  // From [batch, heads, positions, size] back to the heads side by side.
  mlir::Value throughHeads(mlir::Value value);
  // An initializer that lies in a file.
  std::optional<OnnxTensor> stored(mlir::Value value);
  // The same, of floats, as the source of a parameter.
  std::optional<TensorSource> constant(mlir::Value value);
  // x times a weight, as MatMul, Gemm or MatMulNBits, and a bias.
  std::optional<Linear> linear(mlir::Value value);
  // The columns of a product that `place` names: for each of `positions`, and
  // then for each column wanted, its element of `value`. None where positions
  // mix, or columns do not lie as a TensorSource can say.
  std::optional<Linear> linearPart(mlir::Value value,
                                   llvm::ArrayRef<std::int64_t> place,
                                   std::int64_t positions);
  // The same of a value whose elements were moved since they were computed.
  std::optional<Linear> movedLinear(mlir::Value value, std::int64_t positions);
  // A norm over the last dimension, of constant weights, or of those plus a number.
  // `isUnit`: whose weights are ones and not of the model.
  std::optional<Norm> norm(mlir::Value value, bool isUnit = false);

protected:
  OnnxFile &file_;

private:
  std::optional<TensorSource> codes(onnx::MatMulNBitsOp op);

  std::map<std::string, const onnxproto::TensorProto *> initializers_;
};

} // namespace ingot
