// The `details` of a part, in either dialect: scales, zero points and groups of
// codes, and adapters, as a dictionary whose text names every tensor. Strict:
// what it does not know is an error.
#pragma once

#include "compiler/stored/StoredDetails.h"
#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"

#include <functional>
#include <string>

namespace ingot {

// Null for empty details. `symbolOf` names the source of a file index.
mlir::DictionaryAttr
storedDetailsAttr(mlir::MLIRContext *context, const StoredDetails &details,
                  llvm::function_ref<std::string(std::uint32_t)> symbolOf);

// Of a null attribute: empty details. Planes have their `source` set.
Result<StoredDetails> readStoredDetails(mlir::DictionaryAttr attr);

// Checks what PartAttr::verify of both dialects asks: that the attribute can be
// read and its planes have the sizes of `rows` x `columns`. Gives the bytes of
// the codes, 0 where there are none.
Result<std::uint64_t> verifyStoredDetails(mlir::DictionaryAttr attr,
                                          llvm::StringRef name,
                                          std::int64_t rows,
                                          std::int64_t columns);

} // namespace ingot
