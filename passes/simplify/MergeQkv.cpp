// --merge-qkv
//
// 1. For each attention, walk from its q, k and v back through rotation and
//    head norms to the linear operators that made them.
// 2. Where all three are found and can be merged, merge them in this order.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "passes/simplify/MergeLinears.h"

namespace ingot {
#define GEN_PASS_DEF_MERGEQKVPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

lm::LinearOp projectionBehind(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto linear = dyn_cast<lm::LinearOp>(op))
      return linear;
    if (auto rotary = dyn_cast<lm::RotaryOp>(op))
      value = rotary.getInput();
    else if (auto norm = dyn_cast<lm::HeadNormOp>(op))
      value = norm.getInput();
    else
      break;
  }
  return nullptr;
}

struct MergeQkv : ingot::impl::MergeQkvPassBase<MergeQkv> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::SmallVector<lm::AttentionOp> attentions;
    getOperation().walk([&](lm::AttentionOp op) { attentions.push_back(op); });
    for (lm::AttentionOp attention : attentions) {
      llvm::SmallVector<lm::LinearOp, 3> linears{
          projectionBehind(attention.getQuery()),
          projectionBehind(attention.getKey()),
          projectionBehind(attention.getValue())};
      if (!llvm::all_of(linears,
                        [](lm::LinearOp op) { return op != nullptr; }) ||
          !canMergeLinears(linears, symbols))
        continue;
      mergeLinears(linears, "qkv", symbols);
      numMerged += linears.size();
    }
  }
};

} // namespace
