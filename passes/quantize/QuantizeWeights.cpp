// --quantize-weights
//
// 1. Read the options; an unknown encoding or group fails.
// 2. Find the matrices that linear and embed operators use, and what for: a
//    head gives the logits, a table serves embed.
//    A router keeps its encoding where the target is one of integers.
// 3. Leave those that a skip pattern names; a pattern without a match fails.
// 4. Give each of the others its target encoding, and the method that its parts
//    ask for: none where all are stored in that encoding already, `stored` where
//    their codes can be kept, else rtn.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"

#include "llvm/Support/GlobPattern.h"

namespace ingot {
#define GEN_PASS_DEF_QUANTIZEWEIGHTSPASS
#include "passes/Passes.h.inc"
} // namespace ingot

using namespace mlir;
using namespace ingot;

namespace {

// What a matrix is used for.
struct Uses {
  bool table = false;  // by lm.embed
  bool router = false; // by the linear operator whose result lm.route reads
  bool head = false; // by the linear operator whose result the program returns
};

llvm::MapVector<lm::WeightOp, Uses> findMatrices(ModuleOp module) {
  llvm::MapVector<lm::WeightOp, Uses> matrices;
  // In the order of the weights, so that diagnostics and counts are stable.
  llvm::DenseMap<lm::WeightOp, Uses> found;
  module.walk([&](Operation *op) {
    if (auto embed = dyn_cast<lm::EmbedOp>(op))
      found[lm::lookupWeight(op, embed.getTableAttr())].table = true;
    if (auto experts = dyn_cast<lm::ExpertLinearOp>(op))
      (void)found[lm::lookupWeight(op, experts.getWeightAttr())];
    if (auto linear = dyn_cast<lm::LinearOp>(op)) {
      Uses &uses = found[lm::lookupWeight(op, linear.getWeightAttr())];
      uses.router |=
          llvm::any_of(linear->getUsers(), llvm::IsaPred<lm::RouteOp>);
      uses.head |= llvm::any_of(linear->getUsers(), [](Operation *user) {
        return isa<lm::ReturnOp>(user) ||
               (isa<lm::CapOp>(user) &&
                llvm::any_of(user->getUsers(), llvm::IsaPred<lm::ReturnOp>));
      });
    }
  });
  for (lm::WeightOp weight : module.getOps<lm::WeightOp>())
    if (auto it = found.find(weight); it != found.end())
      matrices.insert({weight, it->second});
  return matrices;
}

struct QuantizeWeights : ingot::impl::QuantizeWeightsPassBase<QuantizeWeights> {
  using QuantizeWeightsPassBase::QuantizeWeightsPassBase;

  // Null for none. Fails with an error for an unknown name.
  FailureOr<lm::EncodingAttr> parseEncoding(llvm::StringRef option,
                                            llvm::StringRef name) {
    if (name == "none")
      return lm::EncodingAttr();
    auto code = llvm::StringSwitch<std::optional<lm::WeightCode>>(name)
                    .Case("int8", lm::WeightCode::I8)
                    .Case("int4", lm::WeightCode::I4)
                    .Case("f32", lm::WeightCode::F32)
                    .Case("f16", lm::WeightCode::F16)
                    .Case("bf16", lm::WeightCode::BF16)
                    .Default(std::nullopt);
    if (!code)
      return getOperation().emitError("quantize-weights: unknown ")
             << option << " \"" << name
             << "\", expected int8, int4, f32, f16, bf16 or none";
    bool integer = *code == lm::WeightCode::I8 || *code == lm::WeightCode::I4;
    return lm::EncodingAttr::get(&getContext(), *code, integer ? group : 0,
                                 false);
  }

  LogicalResult readOptions() {
    if (group != 32 && group != 64 && group != 128)
      return getOperation().emitError("quantize-weights: group ")
             << group.getValue() << " is not 32, 64 or 128";
    FailureOr<lm::EncodingAttr> main = parseEncoding("encoding", encoding);
    if (failed(main))
      return failure();
    target = headTarget = embedTarget = *main;
    if (table == "auto") {
      // The error of the logits is not averaged by any later layer.
      if (target && target.getCode() == lm::WeightCode::I4)
        headTarget = lm::EncodingAttr::get(&getContext(), lm::WeightCode::I8,
                                           group, false);
      return success();
    }
    FailureOr<lm::EncodingAttr> tables = parseEncoding("table", table);
    if (failed(tables))
      return failure();
    headTarget = embedTarget = *tables;
    return success();
  }

  LogicalResult readSkip(llvm::ArrayRef<lm::WeightOp> matrices,
                         llvm::DenseSet<lm::WeightOp> &skipped) {
    for (const std::string &text : skip) {
      llvm::Expected<llvm::GlobPattern> pattern =
          llvm::GlobPattern::create(text);
      if (!pattern)
        return getOperation().emitError("quantize-weights: skip pattern \"")
               << text << "\": " << llvm::toString(pattern.takeError());
      bool matched = false;
      for (lm::WeightOp weight : matrices)
        if (pattern->match(weight.getSymName())) {
          skipped.insert(weight);
          matched = true;
        }
      if (!matched)
        return getOperation().emitError("quantize-weights: skip pattern \"")
               << text << "\" matches no weight matrix";
    }
    return success();
  }

  void convert(lm::WeightOp weight, lm::EncodingAttr encoding) {
    StringAttr method = lm::conversionMethod(weight.getPartList(), encoding);
    if (!weight.getPartsAttr())
      method = StringAttr::get(&getContext(), "rtn");
    weight.setEncodingAttr(encoding);
    weight.setMethodAttr(method);
    if (!method)
      ++numExact;
    else
      ++numConverted;
  }

  void runOnOperation() override {
    if (failed(readOptions()))
      return signalPassFailure();
    llvm::MapVector<lm::WeightOp, Uses> matrices = findMatrices(getOperation());
    llvm::DenseSet<lm::WeightOp> skipped;
    if (failed(readSkip(llvm::to_vector(llvm::make_first_range(matrices)),
                        skipped)))
      return signalPassFailure();
    for (auto [weight, uses] : matrices) {
      lm::EncodingAttr encoding = uses.head    ? headTarget
                                  : uses.table ? embedTarget
                                               : target;
      // Few bytes, and an error there is another expert: no integers.
      if (uses.router && encoding && encoding.isInteger())
        continue;
      if (encoding && !skipped.contains(weight))
        convert(weight, encoding);
    }
  }

  lm::EncodingAttr target, headTarget, embedTarget;
};

} // namespace
