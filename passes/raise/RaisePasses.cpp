#include "passes/raise/Passes.h"
#include "passes/raise/Raise.h"

namespace ingot {

#define GEN_PASS_DEF_RAISENORMSPASS
#define GEN_PASS_DEF_RAISEROTARYPASS
#define GEN_PASS_DEF_RAISEGATEDMLPPASS
#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "passes/raise/Passes.h.inc"

namespace {

raise::Explain remarks(mlir::ModuleOp module, bool wanted) {
  if (!wanted)
    return nullptr;
  return [module](const std::string &line) mutable {
    mlir::emitRemark(module.getLoc()) << line;
  };
}

struct RaiseNorms : impl::RaiseNormsPassBase<RaiseNorms> {
  using RaiseNormsPassBase::RaiseNormsPassBase;
  void runOnOperation() override {
    numRaised += raise::raiseNorms(getOperation(),
                                   remarks(getOperation(), explainFusion));
  }
};

struct RaiseRotary : impl::RaiseRotaryPassBase<RaiseRotary> {
  using RaiseRotaryPassBase::RaiseRotaryPassBase;
  void runOnOperation() override {
    numRaised += raise::raiseRotary(getOperation(),
                                    remarks(getOperation(), explainFusion));
  }
};

struct RaiseGatedMlp : impl::RaiseGatedMlpPassBase<RaiseGatedMlp> {
  using RaiseGatedMlpPassBase::RaiseGatedMlpPassBase;
  void runOnOperation() override {
    numRaised += raise::raiseGatedMlp(getOperation(),
                                      remarks(getOperation(), explainFusion));
  }
};

struct FuseAttention : impl::FuseAttentionPassBase<FuseAttention> {
  using FuseAttentionPassBase::FuseAttentionPassBase;
  void runOnOperation() override {
    numRaised += raise::fuseAttention(getOperation(),
                                      remarks(getOperation(), explainFusion));
  }
};

} // namespace
} // namespace ingot
