// Merges linear operators of one input into one whose weight holds the rows of
// all. Shared by merge-qkv and merge-gate-up.
#pragma once

#include "dialects/lm/LmOps.h"

namespace ingot {

// Whether one operator can compute all of `linears` with the same bits: one
// input, no residual, all or none with a bias, and weights that only they use,
// of parts in one encoding, method and layout.
bool canMergeLinears(llvm::ArrayRef<lm::LinearOp> linears,
                     mlir::SymbolTable &symbols);

// Merges into an operator named as the first one with its last component
// replaced ("layer.0.q" and "qkv" give "layer.0.qkv"), followed by an lm.split
// whose results replace those of `linears`. Old operators and weights are
// erased. Requires canMergeLinears.
lm::LinearOp mergeLinears(llvm::ArrayRef<lm::LinearOp> linears,
                          llvm::StringRef lastComponent,
                          mlir::SymbolTable &symbols);

} // namespace ingot
