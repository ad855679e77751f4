// Places the weights one after another in the weights segment, in the order of
// the module, each on a cache line.
#include "passes/lower/Passes.h"
#include "passes/lower/WeightLayout.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ingot {
#define GEN_PASS_DEF_ASSIGNWEIGHTSPASS
#include "passes/lower/Passes.h.inc"
} // namespace ingot

namespace ingot::plan {

namespace {

class AssignWeights : public ingot::impl::AssignWeightsPassBase<AssignWeights> {
  void runOnOperation() override {
    uint64_t offset = 0;
    for (auto weight : getOperation().getOps<WeightOp>()) {
      Result<PlacementAttr> placement = placementOf(weight, offset);
      if (!placement) {
        weight.emitOpError()
            << "cannot be packed: " << placement.status().message();
        return signalPassFailure();
      }
      weight.setPlacementAttr(*placement);
      uint64_t end = 0;
      if (__builtin_add_overflow(
              offset, llvm::alignTo(placement->getSize(), 64), &end) ||
          end > (uint64_t(1) << 62)) {
        weight.emitOpError() << "ends past 2^62 bytes of weights";
        return signalPassFailure();
      }
      offset = end;
    }
    numBytes += offset;
  }
};

} // namespace
} // namespace ingot::plan
