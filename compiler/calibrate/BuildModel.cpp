#include "compiler/calibrate/BuildModel.h"

#include "compiler/calibrate/PruneModel.h"
#include "compiler/driver/CalibratedWeights.h"
#include "compiler/driver/CompileSummary.h"
#include "compiler/package/ScratchFolder.h"
#include "dialects/lm/LmOps.h"
#include "dialects/plan/Plan.h"
#include "runtime/support/MappedFile.h"

#include "llvm/ADT/StringRef.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace ingot {
namespace {

Result<std::string> readWholeText(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  std::span<const std::uint8_t> bytes = file.bytes();
  return std::string(bytes.begin(), bytes.end());
}

// A stage that was saved may hold what was calibrated, or be past all of it.
Result<bool> isCalibratedStage(mlir::MLIRContext &context,
                               const CompileRequest &request) {
  if (!llvm::StringRef(request.modelPath).ends_with(".mlir"))
    return false;
  if (request.from.value_or(Phase::Import) > Phase::Compress)
    return true;
  CompileRequest look = request;
  look.outputPath.clear();
  look.stagesFolder.clear();
  look.until = Phase::Import;
  look.progress = nullptr;
  INGOT_ASSIGN_OR_RETURN(CompiledModel model, compileModel(context, look));
  return hasCalibratedWeights(*model.module) ||
         (*model.module).getOps<lm::ProgramOp>().empty();
}

// The output may not stand in the place of a file that it is made of.
Status checkOutput(const CompiledModel &compiled, const std::string &path) {
  for (auto source :
       mlir::ModuleOp(compiled.module.get()).getOps<plan::SourceOp>()) {
    std::error_code error;
    if (source.getPath() &&
        std::filesystem::equivalent(source.getPath()->str(), path, error) &&
        !error)
      return Status::invalid(path + ": is a source of the model");
  }
  return Status::ok();
}

// Can a ledger be made? Asked before hours of calibration.
Status checkMeasurable(const CompileRequest &compile) {
  if (compile.outputPath.empty() || compile.until != Phase::Lower)
    return Status::invalid("an evaluation text is for measuring an artifact, "
                           "and none is made");
  if (llvm::StringRef(compile.modelPath).ends_with(".mlir"))
    return Status::invalid(
        "the ledger measures each step from the import on; " +
        compile.modelPath + " is a stage");
  INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(compile.options));
  const std::string target = compile.options.target.value_or("cpu");
  if (!phases.targets.empty() &&
      std::find(phases.targets.begin(), phases.targets.end(), "cpu") ==
          phases.targets.end())
    return Status::invalid("the ledger is measured on the CPU, and target \"" +
                           target + "\" has no code for it; add cpu (\"" +
                           target +
                           ",cpu\"), or leave out the evaluation text");
  return Status::ok();
}

// Compiles and measures beside the output, then writes it with the ledger.
Status buildMeasured(mlir::MLIRContext &context, const CompileRequest &compile,
                     const std::string &calibrationText, BuiltModel &built) {
  const CompileOptions &options = compile.options;
  LedgerRequest ledger;
  INGOT_ASSIGN_OR_RETURN(ledger.text, readWholeText(*options.evaluate));
  ledger.calibrationText = calibrationText;
  if (options.evaluationTokens)
    ledger.maxTokens = *options.evaluationTokens;
  package::ScratchFolder scratch(compile.outputPath);
  ledger.compile = compile;
  ledger.compile.outputPath = scratch.file("final.ingot");
  INGOT_ASSIGN_OR_RETURN(built.ledger,
                         measureLedger(ledger, context, built.compiled));
  INGOT_RETURN_IF_ERROR(checkOutput(built.compiled, compile.outputPath));
  INGOT_ASSIGN_OR_RETURN(Artifact artifact,
                         Artifact::open(ledger.compile.outputPath));
  auto packed = artifact.segment(container::SegmentKind::Ledger);
  INGOT_ASSIGN_OR_RETURN(
      std::string json,
      ledgerJson(*built.ledger, {reinterpret_cast<const char *>(packed.data()),
                                 packed.size()}));
  INGOT_ASSIGN_OR_RETURN(built.compiled.artifact.fileBytes,
                         package::replaceLedger(ledger.compile.outputPath,
                                                compile.outputPath, json));
  return Status::ok();
}

} // namespace

Result<LearnedModel> learnFromText(mlir::MLIRContext &context,
                                   CompileRequest &compile,
                                   const std::string &cacheFolder) {
  LearnedModel learned;
  const CompileOptions &options = compile.options;
  INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(options));
  bool isNeeded = needsCalibration(phases);
  bool isCalibrated = false;
  if (isNeeded) {
    INGOT_ASSIGN_OR_RETURN(isCalibrated, isCalibratedStage(context, compile));
    isNeeded = !isCalibrated;
  }
  if (prunes(options) && llvm::StringRef(compile.modelPath).ends_with(".mlir"))
    return Status::invalid("what is left out is chosen at import; " +
                           compile.modelPath + " has been imported");
  if (options.calibrate && !isNeeded && !prunes(options))
    return Status::invalid(
        isCalibrated
            ? compile.modelPath + " has been calibrated, or needs it no more; "
                                  "a calibration text would change nothing"
            : "a calibration text is given, and nothing that uses one "
              "(--quantize ...-gptq or ...-awq, --prune-...)");
  CalibrationOptions calibration;
  if (isNeeded || prunes(options)) {
    if (!options.calibrate)
      return Status::invalid(
          (isNeeded ? "quantization \"" + options.quantize.value_or("none") +
                          "\" chooses codes"
                    : std::string("pruning chooses what to leave out")) +
          " by a text that is like what the model will read; name one with "
          "--calibrate FILE");
    INGOT_ASSIGN_OR_RETURN(calibration.text, readWholeText(*options.calibrate));
    calibration.cacheFolder =
        cacheFolder.empty() ? defaultCacheFolder() : cacheFolder;
    if (options.calibrationTokens)
      calibration.maxTokens = *options.calibrationTokens;
  }
  // Layers first: what is in a layer that goes need not be looked at.
  auto prune = [&](PruneKind kind, double amount) -> Status {
    PruneRequest wanted{kind, amount, options.heal.value_or(true)};
    INGOT_ASSIGN_OR_RETURN(Pruning pruning,
                           pruneModel(compile, wanted, calibration));
    compile.prunings.push_back(std::move(pruning));
    return Status::ok();
  };
  if (options.pruneLayers)
    INGOT_RETURN_IF_ERROR(
        prune(PruneKind::Layers, double(*options.pruneLayers)));
  if (options.pruneHeads)
    INGOT_RETURN_IF_ERROR(prune(PruneKind::Heads, double(*options.pruneHeads)));
  if (options.pruneFfn)
    INGOT_RETURN_IF_ERROR(prune(PruneKind::Ffn, *options.pruneFfn));
  if (isNeeded) {
    INGOT_ASSIGN_OR_RETURN(CalibratedModel calibrated,
                           calibrateWeights(compile, calibration));
    compile.calibratedWeights = calibrated.path;
    learned.calibrated = std::move(calibrated);
  }
  learned.calibrationText = std::move(calibration.text);
  return learned;
}

Result<BuiltModel> buildModel(mlir::MLIRContext &context,
                              const BuildRequest &request) {
  BuiltModel built;
  CompileRequest compile = request.compile;
  if (compile.options.evaluate)
    INGOT_RETURN_IF_ERROR(checkMeasurable(compile));
  INGOT_ASSIGN_OR_RETURN(LearnedModel learned,
                         learnFromText(context, compile, request.cacheFolder));
  built.calibrated = std::move(learned.calibrated);
  if (compile.options.evaluate) {
    INGOT_RETURN_IF_ERROR(
        buildMeasured(context, compile, learned.calibrationText, built));
  } else {
    INGOT_ASSIGN_OR_RETURN(built.compiled, compileModel(context, compile));
  }
  return built;
}

std::string builtTable(BuiltModel &built, const std::string &outputPath) {
  std::string text = summaryTable(built.compiled, outputPath);
  return built.ledger ? text + ledgerTable(*built.ledger) : text;
}

std::string builtJson(BuiltModel &built, const std::string &outputPath) {
  std::string text = summaryJson(built.compiled, outputPath);
  if (!built.ledger)
    return text;
  auto summary = nlohmann::ordered_json::parse(text);
  if (auto json = ledgerJson(*built.ledger, "{}"))
    summary["ledger"] = nlohmann::ordered_json::parse(*json);
  return summary.dump(2) + "\n";
}

} // namespace ingot
