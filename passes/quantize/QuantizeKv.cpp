// --quantize-kv
//
// The operators do not say of which elements their state is; changing the state
// changes what cache writes store and attention reads.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"

namespace ingot {
#define GEN_PASS_DEF_QUANTIZEKVPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

struct QuantizeKv : ingot::impl::QuantizeKvPassBase<QuantizeKv> {
  void runOnOperation() override {
    Type codes = IntegerType::get(&getContext(), 8);
    for (auto state : getOperation().getOps<lm::StateOp>())
      if (state.getDtype() != codes) {
        state.setDtype(codes);
        ++numStates;
      }
  }
};

} // namespace
