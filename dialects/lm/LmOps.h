// Operators of the lm dialect.
#pragma once

#include "dialects/lm/LmDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/lm/LmOps.h.inc"

namespace ingot::lm {

// The weight or state that an op names; null where there is none of that kind.
WeightOp lookupWeight(mlir::Operation *from, mlir::FlatSymbolRefAttr symbol);
StateOp lookupState(mlir::Operation *from, mlir::FlatSymbolRefAttr symbol);

} // namespace ingot::lm
