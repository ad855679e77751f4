// --merge-gate-up
//
// 1. For each gate, find the concat of two linear operators that it reads.
// 2. Where they can be merged, merge them, gate rows first.
// 3. The concat of all parts of the merged result is the merged result.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "passes/simplify/MergeLinears.h"

namespace ingot {
#define GEN_PASS_DEF_MERGEGATEUPPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

struct MergeGateUp : ingot::impl::MergeGateUpPassBase<MergeGateUp> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::SmallVector<lm::GateOp> gates;
    getOperation().walk([&](lm::GateOp op) { gates.push_back(op); });
    for (lm::GateOp gate : gates) {
      auto concat = gate.getGateUp().getDefiningOp<lm::ConcatOp>();
      if (!concat || concat.getParts().size() != 2)
        continue;
      llvm::SmallVector<lm::LinearOp, 2> linears;
      for (Value part : concat.getParts())
        linears.push_back(part.getDefiningOp<lm::LinearOp>());
      if (!linears[0] || !linears[1] || !canMergeLinears(linears, symbols))
        continue;
      lm::LinearOp merged = mergeLinears(linears, "gate_up", symbols);
      numMerged += linears.size();

      auto split = concat.getParts().front().getDefiningOp<lm::SplitOp>();
      concat.getResult().replaceAllUsesWith(merged.getResult());
      concat->erase();
      if (split->use_empty())
        split->erase();
    }
  }
};

} // namespace
