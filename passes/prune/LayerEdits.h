// What the passes of pruning share: weights that shrink, the facts of a layer in
// lm.model, and states that follow the geometry of their layers.
#pragma once

#include "dialects/lm/LmOps.h"

namespace ingot {

// What takes the place of @NAME stands beside it as @NAME.pruned.
inline constexpr llvm::StringLiteral kPrunedSuffix = ".pruned";

// @NAME becomes what @NAME.pruned holds, which goes; fails with an error that
// names `pass` where that is missing or not of `shape`.
mlir::LogicalResult takePruned(mlir::ModuleOp module, llvm::StringRef name,
                               llvm::ArrayRef<std::int64_t> shape,
                               llvm::StringRef pass);

// Each @NAME.pruned that is left takes the place of @NAME, whose shape it has:
// healing made it of what reads a smaller operator's output. One of another shape
// is an error: it was made for other options.
mlir::LogicalResult takeHealed(mlir::ModuleOp module, llvm::StringRef pass);

// The layers of lm.model.
llvm::SmallVector<mlir::DictionaryAttr> modelLayers(mlir::ModuleOp module);
// Sets them again, and counts the parameters of the weights that are used.
void setModelLayers(mlir::ModuleOp module,
                    llvm::ArrayRef<mlir::DictionaryAttr> layers);
mlir::DictionaryAttr withInteger(mlir::DictionaryAttr layer,
                                 llvm::StringRef key, std::int64_t value);

// One state for each geometry of attention, in the order of the program, as
// import makes them.
void regroupStates(mlir::ModuleOp module);

} // namespace ingot
