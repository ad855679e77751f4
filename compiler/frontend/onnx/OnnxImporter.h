// From an ONNX file to the onnx dialect: names become values, each operator its
// one normal form, every type is inferred. Weights become symbols of where their
// bytes lie; nothing large is loaded.
#pragma once

#include "compiler/frontend/onnx/OnnxFile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ingot {

// A module with one func.func @main. Fails with a message that names file, node
// and field, or operator and version where an operator is not supported. Small
// tensors and all integers are onnx.Constant; others are onnx.Weight, whose
// `source` counts `file`'s sources. An input of the graph that has an
// initializer stays an argument, with its value in onnx.default.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnxGraph(mlir::MLIRContext &context, OnnxFile &file);

// The element type of the dialect for one of ONNX; null where there is none.
mlir::Type onnxElementType(mlir::MLIRContext *context, std::int32_t type);

// The values of a tensor as an attribute.
mlir::ElementsAttr onnxElements(mlir::MLIRContext *context,
                                const OnnxTensor &tensor);

} // namespace ingot
