// --fuse-quantize
//
// 1. For each quantize operator, look at the op that makes its input.
// 2. Where that is a norm, a gate or an attention over the cache, all uses of
//    its result are quantize operators of one type, and (attention) the group
//    divides the head:
// 3. let it give the quantised rows, and erase the quantize operators.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"

namespace ingot {
#define GEN_PASS_DEF_FUSEQUANTIZEPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

// Whether `op` has a form that writes rows quantised as `type`.
bool canQuantize(Operation *op, lm::QuantizedType type) {
  if (auto attention = dyn_cast<lm::CachedAttentionOp>(op))
    return attention.getHeadDim() % type.getGroup() == 0;
  return isa<lm::RmsNormOp, lm::LayerNormOp, lm::GateOp, lm::ActivateOp>(op);
}

struct FuseQuantize : ingot::impl::FuseQuantizePassBase<FuseQuantize> {
  void runOnOperation() override {
    llvm::SmallVector<Operation *> producers;
    getOperation().walk([&](Operation *op) {
      if (isa<lm::RmsNormOp, lm::LayerNormOp, lm::GateOp, lm::ActivateOp,
              lm::CachedAttentionOp>(op))
        producers.push_back(op);
    });
    for (Operation *op : producers)
      fuse(op);
  }

  void fuse(Operation *op) {
    Value result = op->getResult(0);
    auto users = llvm::to_vector(result.getUsers());
    auto first =
        users.empty() ? nullptr : dyn_cast<lm::QuantizeOp>(users.front());
    if (!first)
      return;
    auto type = cast<lm::QuantizedType>(first.getType());
    bool uniform = llvm::all_of(users, [&](Operation *user) {
      return isa<lm::QuantizeOp>(user) && user->getResult(0).getType() == type;
    });
    if (!uniform || !canQuantize(op, type))
      return;
    result.setType(type);
    for (Operation *user : users) {
      user->getResult(0).replaceAllUsesWith(result);
      user->erase();
      ++numFused;
    }
  }
};

} // namespace
