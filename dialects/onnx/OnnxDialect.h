// The onnx dialect: what came in. Its operators are in OnnxOps.h; how their
// types follow from each other is TypeInference.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"

#include <cstdint>

#include "dialects/onnx/OnnxDialect.h.inc"

namespace ingot::onnx {

// Written by TableGen in as many parts as there are OnnxOps<i>.cpp.
void registerOnnxDialectOperations(OnnxDialect *dialect);
void registerOnnxDialectOperations0(OnnxDialect *dialect);
void registerOnnxDialectOperations1(OnnxDialect *dialect);
void registerOnnxDialectOperations2(OnnxDialect *dialect);

// What an importer must know to make an operator from a node.
struct OperatorInfo {
  llvm::StringRef domain;
  llvm::SmallVector<std::int64_t> versions; // that are read, ascending
  unsigned numInputs;
  bool variadicInputs;
  unsigned numOutputs;
  bool variadicOutputs;
};

// By the operator's name without the dialect's; null for an unknown one.
const OperatorInfo *findOperator(llvm::StringRef name);
// All names, sorted.
llvm::ArrayRef<llvm::StringRef> operatorNames();

// The argument attributes that name an input and its unknown dimensions, and
// the result attribute that names an output.
inline constexpr llvm::StringLiteral kNameAttr = "onnx.name";
inline constexpr llvm::StringLiteral kDimsAttr = "onnx.dims";
// On a module: the files that onnx.Weight points into, paths by index.
inline constexpr llvm::StringLiteral kSourcesAttr = "onnx.sources";

bool isNumberTensor(mlir::Type type);
bool isFloatTensor(mlir::Type type);
bool isIntTensor(mlir::Type type);
bool isBoolTensor(mlir::Type type);

// Whether an operand or result is not there.
inline bool isAbsent(mlir::Value value) {
  return llvm::isa<mlir::NoneType>(value.getType());
}

// The location of a node: its name in the model.
mlir::Location nodeLocation(mlir::MLIRContext *context, llvm::StringRef name);
// "MatMul \"/model/q_proj\"", for messages.
std::string describe(mlir::Operation *op);

// Result types are what TypeInference says of operands and attributes, or know
// more of a dimension.
mlir::LogicalResult verifyInferredTypes(mlir::Operation *op);

template <typename ConcreteOp>
class InferredTypes
    : public mlir::OpTrait::TraitBase<ConcreteOp, InferredTypes> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    return verifyInferredTypes(op);
  }
};

} // namespace ingot::onnx
