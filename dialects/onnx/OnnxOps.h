// The operators of the onnx dialect, as TableGen writes them.
#pragma once

#include "dialects/onnx/OnnxDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/onnx/OnnxOps.h.inc"
