// lm to plan:
//   1. check the module: one program, its model, known targets;
//   2. make each target (TargetLowering.h);
//   3. turn sources, used weights and states into their plan twins;
//   4. erase what is left of lm.
#include "compiler/codegen/cpu/CpuCodegen.h"
#include "passes/lower/CudaVariants.h"
#include "passes/lower/Passes.h"
#include "passes/lower/TargetLowering.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ingot {
#define GEN_PASS_DEF_SELECTKERNELSPASS
#include "passes/lower/Passes.h.inc"
} // namespace ingot

namespace ingot::plan {

namespace {

EncodingAttr convert(lm::EncodingAttr encoding) {
  return EncodingAttr::get(
      encoding.getContext(),
      *symbolizeCode(lm::stringifyWeightCode(encoding.getCode())),
      encoding.getGroup(), encoding.getMinimum());
}

//===----------------------------------------------------------------------===//
// Symbols of the module
//===----------------------------------------------------------------------===//

// Steps 3 and 4, after all targets have been made.
class SymbolConversion {
public:
  SymbolConversion(ModuleOp module, const UsedWeights &usedWeights)
      : module(module), usedWeights(usedWeights), context(module.getContext()),
        moduleBuilder(context) {}

  void run() {
    convertSymbols();
    eraseLm();
  }
  int64_t numUnusedWeights = 0;

private:
  // Step 3. Twins replace the lm ops where they stand.
  void convertSymbols() {
    for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
      moduleBuilder.setInsertionPoint(&op);
      if (auto source = dyn_cast<lm::SourceOp>(op)) {
        moduleBuilder.create<SourceOp>(
            op.getLoc(), source.getSymNameAttr(), source.getNameAttr(),
            source.getPathAttr(), source.getSizeAttr(), source.getHashAttr());
      } else if (auto state = dyn_cast<lm::StateOp>(op)) {
        moduleBuilder.create<StateOp>(
            op.getLoc(), state.getSymNameAttr(), state.getLayersAttr(),
            state.getKvHeadsAttr(), state.getHeadDimAttr(),
            StateDTypeAttr::get(context,
                                state.getDtype().isF16()   ? StateDType::F16
                                : state.getDtype().isF32() ? StateDType::F32
                                                           : StateDType::I8),
            state.getWindowAttr());
      } else if (auto weight = dyn_cast<lm::WeightOp>(op)) {
        auto used = usedWeights.layouts.find(weight.getSymNameAttr());
        if (used == usedWeights.layouts.end())
          ++numUnusedWeights;
        else
          for (Layout layout : used->second)
            convertWeight(weight, layout);
      }
    }
  }

  void convertWeight(lm::WeightOp weight, Layout layout) {
    ArrayAttr parts;
    if (weight.getParts()) {
      SmallVector<Attribute> converted;
      for (lm::PartAttr part : weight.getPartList())
        converted.push_back(PartAttr::get(
            context, part.getSource(), part.getName(), part.getOffset(),
            part.getSize(),
            *symbolizeStored(lm::stringifyStored(part.getStored())),
            part.getRows(), part.getColumns(), part.getPermute(),
            part.getStoredRows(), part.getFirst(), part.getRun(),
            part.getStride(), part.getTransposed(), part.getDetails()));
      parts = ArrayAttr::get(context, converted);
    }
    moduleBuilder.create<WeightOp>(
        weight.getLoc(),
        StringAttr::get(context,
                        usedWeights.nameOf(weight.getSymName(), layout)),
        convert(weight.getEncoding()), LayoutAttr::get(context, layout),
        moduleBuilder.getI64IntegerAttr(weight.getRows()),
        moduleBuilder.getI64IntegerAttr(weight.getColumns()),
        weight.getMethodAttr(), parts, weight.getValueAttr(), PlacementAttr());
  }

  void eraseLm() {
    Attribute model = module->removeAttr(lm::kModelAttr);
    module->setAttr(PlanDialect::getModelAttrName(), model);
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (isa<lm::SourceOp, lm::WeightOp, lm::StateOp, lm::ProgramOp>(op))
        op.erase();
  }

  ModuleOp module;
  const UsedWeights &usedWeights;
  MLIRContext *context;
  OpBuilder moduleBuilder;
};

class SelectKernels : public ingot::impl::SelectKernelsPassBase<SelectKernels> {
public:
  using SelectKernelsPassBase::SelectKernelsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::vector<std::string> names(targets.begin(), targets.end());
    if (names.empty())
      names.push_back("cpu");
    UsedWeights used;
    for (const std::string &name : names) {
      if (name != "cpu" && name != "cuda") {
        module.emitError() << "target \"" << name
                           << "\" is unknown (cpu, cuda)";
        return signalPassFailure();
      }
      if (llvm::count(names, name) != 1) {
        module.emitError() << "target \"" << name << "\" stands twice";
        return signalPassFailure();
      }
    }
    used.hasBoth = names.size() == 2;
    auto programs = module.getOps<lm::ProgramOp>();
    if (std::distance(programs.begin(), programs.end()) != 1) {
      module.emitError() << "expected one lm.program, found "
                         << std::distance(programs.begin(), programs.end());
      return signalPassFailure();
    }
    if (!module->hasAttr(lm::kModelAttr)) {
      module.emitError() << "expected the attribute " << lm::kModelAttr;
      return signalPassFailure();
    }
    for (const std::string &name : names) {
      FailureOr<std::vector<std::string>> chosen =
          name == "cuda" ? chooseChips(module) : chooseLevels(module);
      if (failed(chosen))
        return signalPassFailure();
      auto make = name == "cuda" ? makeCudaLowering : makeCpuLowering;
      std::unique_ptr<TargetLowering> lowering =
          make(module, *programs.begin(), used);
      if (failed(lowering->run(*chosen)))
        return signalPassFailure();
      numLaunches += lowering->numLaunches;
      numKernels += lowering->numKernels;
    }
    SymbolConversion conversion(module, used);
    conversion.run();
    numUnusedWeights += conversion.numUnusedWeights;
  }

private:
  FailureOr<std::vector<std::string>> chooseChips(ModuleOp module) {
    std::vector<std::string> wanted(chips.begin(), chips.end());
    if (wanted.empty())
      wanted = {"sm_80", "sm_86", "sm_89", "sm_90"};
    Result<std::vector<std::string>> found = cudaLevels(wanted);
    if (found)
      return *found;
    module.emitError() << found.status().message();
    return failure();
  }

  FailureOr<std::vector<std::string>> chooseLevels(ModuleOp module) {
    std::vector<std::string> known = codegen::cpuLevelNames(); // slowest first
    if (levels.empty())
      return std::vector<std::string>(known.rbegin(), known.rend());
    std::vector<std::string> chosen(levels.begin(), levels.end());
    for (const std::string &name : chosen)
      if (!llvm::is_contained(known, name)) {
        module.emitError() << "level \"" << name << "\" is unknown ("
                           << llvm::join(known, ", ") << ")";
        return failure();
      }
    return chosen;
  }
};

} // namespace
} // namespace ingot::plan
