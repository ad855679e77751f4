// Makes operators of the dialect by name, with their types.
#pragma once

#include "dialects/onnx/OnnxDialect.h"

#include "mlir/IR/Builders.h"

namespace ingot::onnx {

// Makes operators at the builder's place and infers their types.
class OpMaker {
public:
  OpMaker(mlir::OpBuilder &builder, mlir::Location location)
      : builder(builder), location(location) {}

  // The operator `name` with default attributes added, absent inputs filled in
  // and `numOutputs` results (0: as many as it has). Diagnoses what is wrong.
  mlir::FailureOr<mlir::Operation *>
  make(llvm::StringRef name, mlir::ValueRange inputs,
       llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
       unsigned numOutputs = 0);
  // The first result.
  mlir::FailureOr<mlir::Value>
  value(llvm::StringRef name, mlir::ValueRange inputs,
        llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  mlir::Value none();
  mlir::Value ints(llvm::ArrayRef<std::int64_t> values);
  mlir::NamedAttribute attr(llvm::StringRef name, std::int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  }

  mlir::OpBuilder &builder;
  mlir::Location location;
};

} // namespace ingot::onnx
