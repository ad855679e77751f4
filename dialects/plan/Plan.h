// The plan dialect: include this to use it. The reference is in the .td files.
#pragma once

#include "compiler/stored/StoredForm.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cstdint>
#include <optional>
#include <string>

#include "dialects/plan/Dialect.h.inc"
#include "dialects/plan/Enums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/plan/Types.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/Attrs.h.inc"

#include "dialects/plan/Interfaces.h.inc"

namespace ingot::plan {
namespace detail {
// The names among `names` of attributes that `op` has.
llvm::SmallVector<mlir::StringAttr, 3>
presentNames(mlir::Operation *op, llvm::ArrayRef<llvm::StringRef> names);
} // namespace detail

// The dialect's word for a form in that of compiler/stored.
StoredForm storedForm(Stored stored);

// Whether a level of the target @cuda may be called so: "sm_90a", "compute_80".
bool isCudaLevelName(llvm::StringRef name);

// 3 of "layer.3.qkv"; nothing where the name is not of that form.
std::optional<int32_t> locationLayer(llvm::StringRef name);
} // namespace ingot::plan

#define GET_OP_CLASSES
#include "dialects/plan/Ops.h.inc"
