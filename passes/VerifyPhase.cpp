// --verify-phase
//
// 1. Take the promises of the phase by its name; an unknown name fails.
// 2. Check the module: one program, and lm.model.
// 3. Check each op of the program against the phase's promises.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"

namespace ingot {
#define GEN_PASS_DEF_VERIFYPHASEPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

struct Promises {
  bool imported = false;  // nothing fused, nothing quantised
  bool quantized = false; // integer encodings take quantised rows
  bool fused = false;     // attention reads the cache
};

std::optional<Promises> promisesOf(llvm::StringRef phase) {
  if (phase == "import" || phase == "simplify")
    return Promises{.imported = true};
  if (phase == "compress")
    return Promises{.quantized = true};
  if (phase == "fuse")
    return Promises{.quantized = true, .fused = true};
  return std::nullopt;
}

LogicalResult checkOp(Operation *op, const Promises &promises,
                      llvm::StringRef phase) {
  bool quantizes =
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<lm::QuantizedType>);
  if (promises.imported &&
      (quantizes || isa<lm::RopeCacheWriteOp, lm::CachedAttentionOp>(op)))
    return op->emitOpError("does not belong to a module after ") << phase;
  if (promises.quantized)
    if (auto linear = dyn_cast<lm::LinearOp>(op)) {
      lm::WeightOp weight = lm::lookupWeight(op, linear.getWeightAttr());
      if (weight.getEncoding().isInteger() &&
          !isa<lm::QuantizedType>(linear.getInput().getType()))
        return op->emitOpError("reads float32 rows with a weight of ")
               << weight.getEncoding().getShortName() << " after " << phase;
    }
  if (promises.quantized)
    if (auto linear = dyn_cast<lm::ExpertLinearOp>(op)) {
      lm::WeightOp weight = lm::lookupWeight(op, linear.getWeightAttr());
      if (weight.getEncoding().isInteger() &&
          !isa<lm::QuantizedType>(linear.getInput().getType()))
        return op->emitOpError("reads float32 rows with a weight of ")
               << weight.getEncoding().getShortName() << " after " << phase;
    }
  if (promises.fused && isa<lm::AttentionOp, lm::RotaryOp, lm::HeadNormOp>(op))
    return op->emitOpError("did not fuse into lm.rope_cache_write and has no "
                           "kernel of its own");
  return success();
}

struct VerifyPhase : ingot::impl::VerifyPhasePassBase<VerifyPhase> {
  using VerifyPhasePassBase::VerifyPhasePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<Promises> promises = promisesOf(after);
    if (!promises) {
      module.emitError("verify-phase: unknown phase \"")
          << after.getValue()
          << "\", expected import, simplify, compress or fuse";
      return signalPassFailure();
    }
    auto programs = llvm::to_vector(module.getOps<lm::ProgramOp>());
    if (programs.size() != 1) {
      module.emitError("verify-phase: expected one lm.program, found ")
          << programs.size();
      return signalPassFailure();
    }
    if (!module->hasAttr(lm::kModelAttr)) {
      module.emitError("verify-phase: the module lacks lm.model");
      return signalPassFailure();
    }
    programs.front().walk([&](Operation *op) {
      if (failed(checkOp(op, *promises, after)))
        signalPassFailure();
    });
    markAllAnalysesPreserved();
  }
};

} // namespace
