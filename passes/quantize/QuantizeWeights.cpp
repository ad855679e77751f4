// --quantize-weights
//
// 1. Read the options; an unknown encoding, group or method fails.
// 2. Find the matrices that linear and embed operators use, and what for: a
//    head gives the logits, a table serves embed.
//    A router keeps its encoding where the target is one of integers, and no
//    override says otherwise.
// 3. Leave those that a skip pattern names, and let the last override whose
//    pattern names a matrix choose for it; a pattern without a match fails, and so
//    does one that asks for calibrated codes of rounded matrices alone.
// 4. Where the method is calibrated, the matrix becomes what @NAME.calibrated
//    holds (or, with mark-only, is marked as one that needs it).
// 5. Give each of the others its target encoding, and the method that its parts
//    ask for: none where all are stored in that encoding already, `stored` where
//    their codes can be kept, else rtn.
// 6. What belongs to calibrated matrices (norms, biases) becomes what was
//    calibrated with them; a calibrated weight that nothing takes fails.
#include "passes/Passes.h"

#include "dialects/lm/LmOps.h"
#include "passes/quantize/Calibrated.h"
#include "passes/quantize/QuantizeSpec.h"

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
  bool linear = false; // by a linear operator of the program itself

  // Tables are looked up, not multiplied, and experts see few rows each.
  bool canCalibrate() const { return linear && !head && !table; }
};

using Matrices = llvm::MapVector<lm::WeightOp, Uses>;

Matrices findMatrices(ModuleOp module) {
  Matrices matrices;
  // In the order of the weights, so that diagnostics and counts are stable.
  llvm::DenseMap<lm::WeightOp, Uses> found;
  module.walk([&](Operation *op) {
    if (auto embed = dyn_cast<lm::EmbedOp>(op))
      found[lm::lookupWeight(op, embed.getTableAttr())].table = true;
    if (auto experts = dyn_cast<lm::ExpertLinearOp>(op))
      (void)found[lm::lookupWeight(op, experts.getWeightAttr())];
    if (auto linear = dyn_cast<lm::LinearOp>(op)) {
      Uses &uses = found[lm::lookupWeight(op, linear.getWeightAttr())];
      // The map of an exit has no inputs that calibration sees.
      uses.linear |= isa<lm::ProgramOp>(linear->getParentOp());
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
    if (method != "rtn" && method != "gptq" && method != "awq")
      return getOperation().emitError("quantize-weights: unknown method \"")
             << method << "\", expected rtn, gptq or awq";
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

  // The matrices that each override chooses for.
  LogicalResult readOverrides(const Matrices &matrices) {
    for (const std::string &text : overrides) {
      auto fail = [&](const llvm::Twine &why) -> LogicalResult {
        return getOperation().emitError("quantize-weights: override \"")
               << text << "\": " << why;
      };
      auto [patternText, specText] = llvm::StringRef(text).rsplit('=');
      if (specText.empty())
        return fail("expected PATTERN=ENCODING");
      Result<QuantizeSpec> spec = parseQuantizeSpec(specText.str());
      if (!spec)
        return fail(spec.status().message());
      llvm::Expected<llvm::GlobPattern> pattern =
          llvm::GlobPattern::create(patternText);
      if (!pattern)
        return fail(llvm::toString(pattern.takeError()));
      bool matched = false, canCalibrate = false;
      for (auto [weight, uses] : matrices)
        if (pattern->match(weight.getSymName())) {
          chosen[weight] = *spec;
          matched = true;
          canCalibrate |= uses.canCalibrate();
        }
      if (!matched)
        return fail("matches no weight matrix");
      if (spec->isInteger() && spec->method != "rtn" && !canCalibrate)
        return fail("expected the method rtn, found " + spec->method +
                    ": tables, heads and experts are rounded");
    }
    return success();
  }

  lm::EncodingAttr encodingOf(const QuantizeSpec &spec) {
    if (spec.encoding == "none")
      return {};
    auto code = spec.encoding == "int8"   ? lm::WeightCode::I8
                : spec.encoding == "int4" ? lm::WeightCode::I4
                : spec.encoding == "f32"  ? lm::WeightCode::F32
                : spec.encoding == "f16"  ? lm::WeightCode::F16
                                          : lm::WeightCode::BF16;
    return lm::EncodingAttr::get(&getContext(), code,
                                 spec.isInteger() ? spec.group : 0, false);
  }

  // From what was calibrated for it.
  LogicalResult take(lm::WeightOp weight, lm::EncodingAttr encoding,
                     llvm::StringRef how) {
    if (markOnly) {
      weight->setAttr(kCalibrateAttr, StringAttr::get(&getContext(), how));
      weight->setAttr(kCalibrateEncodingAttr, encoding);
      return success();
    }
    lm::WeightOp codes = calibratedOf(weight);
    if (!codes)
      return weight.emitError("quantize-weights: method ")
             << how << " needs @" << calibratedName(weight.getSymName())
             << ", which the module lacks; compile makes it from the text of "
                "--calibrate";
    if (codes.getEncoding() != encoding ||
        codes.getShape() != weight.getShape())
      return codes.emitError("quantize-weights: is ")
             << codes.getEncoding().getShortName() << " of ["
             << codes.getShape() << "], expected " << encoding.getShortName()
             << " of [" << weight.getShape() << "] as the options ask";
    replaceByCalibrated(weight, codes);
    ++numCalibrated;
    return success();
  }

  // Vectors that were changed together with calibrated matrices; matrices among
  // them were not asked for by the options.
  LogicalResult takeRest() {
    llvm::SmallVector<lm::WeightOp> rest;
    for (lm::WeightOp weight : getOperation().getOps<lm::WeightOp>())
      if (isCalibratedName(weight.getSymName()))
        rest.push_back(weight);
    for (lm::WeightOp codes : rest) {
      auto weight = getOperation().lookupSymbol<lm::WeightOp>(
          calibratedBase(codes.getSymName()));
      if (!weight || weight.isMatrix() || codes.getShape() != weight.getShape())
        return codes.emitError("quantize-weights: was calibrated for other "
                               "options: nothing takes it");
      replaceByCalibrated(weight, codes);
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
    Matrices matrices = findMatrices(getOperation());
    llvm::DenseSet<lm::WeightOp> skipped;
    if (failed(readSkip(llvm::to_vector(llvm::make_first_range(matrices)),
                        skipped)))
      return signalPassFailure();
    if (failed(readOverrides(matrices)))
      return signalPassFailure();
    for (auto [weight, uses] : matrices) {
      lm::EncodingAttr encoding = uses.head    ? headTarget
                                  : uses.table ? embedTarget
                                               : target;
      std::string how = method;
      if (auto own = chosen.find(weight); own != chosen.end()) {
        encoding = encodingOf(own->second);
        how = own->second.method;
      } else if (uses.router && encoding && encoding.isInteger()) {
        // Few bytes, and an error there is another expert: none unasked.
        continue;
      }
      if (!encoding || skipped.contains(weight))
        continue;
      bool isCalibrated =
          how != "rtn" && encoding.isInteger() && uses.canCalibrate();
      if (!isCalibrated)
        convert(weight, encoding);
      else if (failed(take(weight, encoding, how)))
        return signalPassFailure();
    }
    if (!markOnly && failed(takeRest()))
      return signalPassFailure();
  }

  llvm::DenseMap<lm::WeightOp, QuantizeSpec> chosen;
  lm::EncodingAttr target, headTarget, embedTarget;
};

} // namespace
