// What the rules of type inference are written with.
#pragma once

#include "dialects/onnx/OnnxOps.h"
#include "dialects/onnx/ShapeValues.h"

#include <optional>

namespace ingot::onnx {

using Dims = llvm::SmallVector<std::int64_t>;
constexpr std::int64_t kUnknown = mlir::ShapedType::kDynamic;

// Whether two dimensions are known and not the same.
inline bool differ(std::int64_t a, std::int64_t b) {
  return a != kUnknown && b != kUnknown && a != b;
}
// "[2, ?, 4]".
std::string dimsText(llvm::ArrayRef<std::int64_t> dims);

class Inference;
using Types = llvm::SmallVector<mlir::Type>;
using InferenceRule = mlir::FailureOr<Types> (*)(Inference &);

// The view of one operator. Accessors by operand index; a rule runs only where
// every operand that is there has a rank, unless the operator is one of those
// that say otherwise (TypeInference.cpp).
class Inference {
public:
  explicit Inference(mlir::Operation *op) : op(op) {}

  bool has(unsigned index) const {
    return index < op->getNumOperands() && !isAbsent(op->getOperand(index));
  }
  mlir::Value value(unsigned index) const { return op->getOperand(index); }
  mlir::TensorType type(unsigned index) const {
    return llvm::cast<mlir::TensorType>(value(index).getType());
  }
  mlir::Type element(unsigned index) const {
    return type(index).getElementType();
  }
  llvm::ArrayRef<std::int64_t> dims(unsigned index) const {
    return type(index).getShape();
  }
  std::int64_t rank(unsigned index) const { return type(index).getRank(); }

  // Attributes by name, or a default.
  std::int64_t integer(llvm::StringRef name, std::int64_t otherwise = 0) const;
  llvm::StringRef text(llvm::StringRef name,
                       llvm::StringRef otherwise = {}) const;
  std::optional<Dims> integers(llvm::StringRef name) const;

  // `axis` within [0, rank), counted from the end where negative.
  mlir::FailureOr<std::int64_t> axis(std::int64_t axis,
                                     std::int64_t rank) const;
  // A list of distinct axes, ascending.
  mlir::FailureOr<Dims> axes(llvm::ArrayRef<std::int64_t> axes,
                             std::int64_t rank) const;

  // The result of a broadcast; reports shapes that do not go together.
  mlir::FailureOr<Dims> broadcast(llvm::ArrayRef<Dims> shapes) const;

  mlir::FailureOr<Types> one(llvm::ArrayRef<std::int64_t> dims,
                             mlir::Type element) const {
    return Types{mlir::RankedTensorType::get(dims, element)};
  }
  mlir::FailureOr<Types> unranked(mlir::Type element) const {
    return Types{mlir::UnrankedTensorType::get(element)};
  }
  mlir::FailureOr<Types> fail(const llvm::Twine &message) const {
    op->emitError() << describe(op) << ": " << message;
    return mlir::failure();
  }
  // Two operands of one element type.
  mlir::LogicalResult sameElements(unsigned a, unsigned b) const;

  // Operand `index`, where it is given, has these dimensions as far as both are
  // known; or broadcasts to them; or has one element. `what` is its name.
  mlir::LogicalResult hasDims(unsigned index, llvm::StringRef what,
                              llvm::ArrayRef<std::int64_t> expected) const;
  mlir::LogicalResult broadcastsTo(unsigned index, llvm::StringRef what,
                                   llvm::ArrayRef<std::int64_t> target) const;
  mlir::LogicalResult isScalar(unsigned index, llvm::StringRef what) const;

  mlir::Operation *op;
};

// The rules of a family by operator name; null where it is of another.
InferenceRule elementwiseRule(llvm::StringRef name);
InferenceRule shapeRule(llvm::StringRef name);
InferenceRule linearRule(llvm::StringRef name);
InferenceRule modelRule(llvm::StringRef name);

} // namespace ingot::onnx
