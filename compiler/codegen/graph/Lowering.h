// What the rules that lower onnx operators are written with. All shapes are
// static here: a graph is lowered for given input shapes (Specialize). A tensor
// is a buffer; a rule says what each element of its results is, as a
// linalg.generic over the result, or stores elements in loops.
#pragma once

#include "compiler/codegen/graph/Emit.h"
#include "dialects/onnx/Inference.h"

#include "mlir/IR/Operation.h"

#include <functional>

namespace ingot::graph {

using onnx::Dims;

struct Tensor {
  mlir::Value memref;          // row-major, of the storage type
  mlir::RankedTensorType type; // of the ONNX type

  llvm::ArrayRef<std::int64_t> dims() const { return type.getShape(); }
  std::int64_t dim(std::int64_t i) const { return type.getDimSize(i); }
  std::int64_t rank() const { return type.getRank(); }
  mlir::Type element() const { return type.getElementType(); }
};

// The buffer of a tensor. One without elements gets a single one, which nobody
// reads: LLVM's lowering has no strides for none.
mlir::MemRefType bufferType(mlir::RankedTensorType type);

using Index = llvm::SmallVector<mlir::Value>;
using Indices = llvm::ArrayRef<mlir::Value>;
using Scalars = llvm::SmallVector<Scalar>;

// Where values live: fixed places in one arena, reused once a value is dead.
class Arena {
public:
  // Bytes at the returned offset (a multiple of 64) until they are freed.
  std::int64_t take(std::int64_t sizeBytes);
  void free(std::int64_t offset);
  std::int64_t sizeBytes() const { return size_; }

private:
  llvm::SmallVector<std::pair<std::int64_t, std::int64_t>> used_; // by offset
  std::int64_t size_ = 0;
};

class Lowering : public Emit {
public:
  Lowering(mlir::OpBuilder &b, mlir::Operation *op, Arena &arena,
           mlir::Value arenaBuffer,
           llvm::function_ref<Tensor(mlir::Value)> lookup)
      : Emit(b, op->getLoc()), op(op), node(op), arena_(arena),
        arenaBuffer_(arenaBuffer), lookup_(lookup) {}

  // Operands and results by the standard's place.
  bool has(unsigned i) const { return node.has(i); }
  Tensor in(unsigned i) const { return lookup_(op->getOperand(i)); }
  bool wants(unsigned i) const {
    return i < op->getNumResults() && !onnx::isAbsent(op->getResult(i));
  }
  // The attribute `axis` within [0, rank), or `otherwise` where it is not there.
  std::int64_t axis(std::int64_t rank, std::int64_t otherwise) const {
    const std::int64_t axis = node.integer("axis", otherwise);
    return axis < 0 ? axis + rank : axis;
  }
  // The buffer of result i, made on first use.
  Tensor out(unsigned i);
  // Lives until the operator's rule ends.
  Tensor temporary(llvm::ArrayRef<std::int64_t> dims, mlir::Type element);
  // The same bytes in another shape.
  Tensor reshaped(Tensor tensor, llvm::ArrayRef<std::int64_t> dims);

  // to[i...] = value(i...) for every element.
  void fill(Tensor to, llvm::function_ref<Scalar(Indices)> value);
  // body(i...) for every index below `dims`, in order.
  void forEach(llvm::ArrayRef<std::int64_t> dims,
               llvm::function_ref<void(Indices)> body);
  // State after body(i..., state) for every index below `dims`, in order.
  Scalars
  loop(llvm::ArrayRef<std::int64_t> dims, Scalars state,
       llvm::function_ref<Scalars(Indices, llvm::ArrayRef<Scalar>)> body);
  // As `loop` with one value.
  Scalar reduce(llvm::ArrayRef<std::int64_t> dims, Scalar state,
                llvm::function_ref<Scalar(Indices, Scalar)> body);
  void ifThen(mlir::Value condition, llvm::function_ref<void()> body);
  // value() where the condition holds, else `otherwise`; value is not computed
  // where it does not.
  Scalar ifElse(mlir::Value condition, llvm::function_ref<Scalar()> value,
                Scalar otherwise);

  Scalar load(Tensor from, Indices at);
  // `at` is an index of a tensor that `from` broadcasts to.
  Scalar loadBroadcast(Tensor from, Indices at);
  Scalar loadScalar(Tensor from); // of one element
  void store(Tensor to, Indices at, Scalar value);

  mlir::LogicalResult refuse(const llvm::Twine &why) {
    return op->emitError() << onnx::describe(op) << ": " << why;
  }
  // Buffers of results that were made, and places to free after the rule.
  llvm::ArrayRef<std::pair<unsigned, Tensor>> made() const { return made_; }
  llvm::ArrayRef<std::int64_t> temporaries() const { return temporaries_; }
  std::int64_t placeOf(unsigned result) const { return places_.at(result); }

  mlir::Operation *op;
  onnx::Inference node;

private:
  std::pair<Tensor, std::int64_t> allocate(mlir::RankedTensorType type);

  Arena &arena_;
  mlir::Value arenaBuffer_;
  llvm::function_ref<Tensor(mlir::Value)> lookup_;
  llvm::SmallVector<std::pair<unsigned, Tensor>> made_;
  llvm::SmallVector<std::int64_t> temporaries_;
  std::map<unsigned, std::int64_t> places_;
};

using LoweringRule = mlir::LogicalResult (*)(Lowering &);

// The rules of a family by operator name; null where it is of another.
LoweringRule lowerElementwise(llvm::StringRef name);
LoweringRule lowerMovement(llvm::StringRef name);
LoweringRule lowerIndexing(llvm::StringRef name);
LoweringRule lowerReductions(llvm::StringRef name);
LoweringRule lowerProducts(llvm::StringRef name);
LoweringRule lowerWindows(llvm::StringRef name);
LoweringRule lowerNorms(llvm::StringRef name);
LoweringRule lowerAttention(llvm::StringRef name);
LoweringRule lowerQuantization(llvm::StringRef name);

// Any of them.
LoweringRule findLowering(llvm::StringRef name);

} // namespace ingot::graph
