// Provenance: which operators of the imported model an operator stands for, kept
// in its location through every pass and, as the origins of a launch, in the plan.
//
//   loc("layer.0.q"("model.layers.0.self_attn.q_proj.weight"))   imported
//   loc("layer.0.qkv"(fused<array<i64: 64, 32, 32>>[loc.., loc.., loc..]))
//                        side by side: columns of the result, part by part
//   loc("layer.0.cache_write"(fused<"from">[loc.., loc.., ...]))
//                        one after another: the result is that of the last
//
// The outer name is the operator's own: what launches and diagnostics are
// called. A pass that makes an operator of others gives it one of these.
#pragma once

#include "mlir/IR/Location.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::lm {

// An operator of the imported model in one that was made from it.
struct Origin {
  std::string name;     // "layer.0.q"
  std::string imported; // the tensor or node it came from; may be empty
  // Its columns of the result; 0 columns: it has none of its own, since the
  // next origin goes on from it, or it is the result as a whole.
  std::int64_t first = 0;
  std::int64_t columns = 0;
};

// An operator that was imported from the tensor or node `imported`; without a
// name for that, the plain location of `name`.
mlir::Location importedLocation(mlir::MLIRContext *context,
                                llvm::StringRef name, llvm::StringRef imported);
// An operator that does what those of `from` did, one after another.
mlir::Location derivedLocation(mlir::MLIRContext *context, llvm::StringRef name,
                               llvm::ArrayRef<mlir::Location> from);
// An operator whose result holds the results of those of `from` side by side,
// `columns` of each.
mlir::Location columnsLocation(mlir::MLIRContext *context, llvm::StringRef name,
                               llvm::ArrayRef<mlir::Location> from,
                               llvm::ArrayRef<std::int64_t> columns);
// The same provenance under another name.
mlir::Location renamedLocation(mlir::Location location, llvm::StringRef name);

// In order; an operator that was made from no other is its own only origin.
// Empty where the location has no name.
std::vector<Origin> originsOf(mlir::Location location);

} // namespace ingot::lm
