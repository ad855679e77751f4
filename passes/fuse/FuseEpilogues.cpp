// --fuse-epilogues
//
// 1. For each add without scale, find an operand that is the result of a linear operator
//    without residual and with no other use; the update comes first.
// 2. Make that linear operator again in the add's place, with the add's other
//    operand as its residual, under its own name.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "dialects/lm/Provenance.h"

namespace ingot {
#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

lm::LinearOp fusableLinear(Value value) {
  auto linear = value.getDefiningOp<lm::LinearOp>();
  return linear && !linear.getResidual() && value.hasOneUse() ? linear
                                                              : nullptr;
}

bool fuse(lm::AddOp add) {
  if (!add.getScale().isExactlyValue(1.0f))
    return false;
  Value residual = add.getResidual();
  lm::LinearOp linear = fusableLinear(add.getUpdate());
  if (!linear) {
    linear = fusableLinear(add.getResidual());
    residual = add.getUpdate();
  }
  if (!linear)
    return false;
  OpBuilder builder(add);
  auto fused = builder.create<lm::LinearOp>(
      lm::derivedLocation(add.getContext(), lm::locationName(linear.getLoc()),
                          {linear.getLoc(), add.getLoc()}),
      linear.getType(), linear.getInput(), linear.getWeightAttr(),
      linear.getBiasAttr(), residual);
  add.getResult().replaceAllUsesWith(fused.getResult());
  add->erase();
  linear->erase();
  return true;
}

struct FuseEpilogues : ingot::impl::FuseEpiloguesPassBase<FuseEpilogues> {
  void runOnOperation() override {
    llvm::SmallVector<lm::AddOp> adds;
    getOperation().walk([&](lm::AddOp add) { adds.push_back(add); });
    for (lm::AddOp add : adds)
      if (fuse(add))
        ++numFused;
  }
};

} // namespace
