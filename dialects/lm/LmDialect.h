// The lm dialect: what a model means. Its operators are in LmOps.h.
#pragma once

#include "compiler/stored/WeightConversion.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"

#include <cstdint>
#include <string>

#include "dialects/lm/LmDialect.h.inc"
#include "dialects/lm/LmEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/lm/LmTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/lm/LmAttrs.h.inc"

namespace ingot::lm {

// The module attribute that holds what is known of the model as a whole.
inline constexpr llvm::StringLiteral kModelAttr = "lm.model";

// tensor<?xHxf32>: a row of H float32 for each token.
bool isActivation(mlir::Type type);
// tensor<?xi32>.
bool isTokenRow(mlir::Type type);
mlir::RankedTensorType activationType(mlir::MLIRContext *context,
                                      std::int64_t columns);
// Columns of an activation or of quantised rows.
std::int64_t columnsOf(mlir::Type type);

// The dialect's words in those of compiler/stored, and back.
StoredForm storedForm(Stored stored);
Stored storedOf(StoredForm form);
WeightEncoding weightEncoding(EncodingAttr encoding);
EncodingAttr encodingAttr(mlir::MLIRContext *context,
                          const WeightEncoding &encoding);
// The encoding of a weight that nothing else is asked of.
EncodingAttr nativeEncoding(PartAttr part);
// The method of a conversion of these parts: null where all are exact.
mlir::StringAttr conversionMethod(llvm::ArrayRef<PartAttr> parts,
                                  EncodingAttr encoding);

// The name that a location carries ("layer.3.attn_norm"), empty where it has
// none. A fused location answers with the first name in it.
llvm::StringRef locationName(mlir::Location location);
mlir::Location nameLocation(mlir::MLIRContext *context, llvm::StringRef name);

// Checks the dictionary of kModelAttr: every key known, none missing, each of
// its type and range.
mlir::LogicalResult
verifyModelAttr(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                mlir::Attribute attr);

} // namespace ingot::lm
