#include "compiler/calibrate/BuildModel.h"

#include "compiler/driver/CalibratedWeights.h"
#include "dialects/lm/LmOps.h"
#include "runtime/support/MappedFile.h"

#include "llvm/ADT/StringRef.h"

namespace ingot {
namespace {

Result<std::string> readCalibrationText(const std::string &path) {
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

} // namespace

Result<BuiltModel> buildModel(mlir::MLIRContext &context,
                              const BuildRequest &request) {
  BuiltModel built;
  CompileRequest compile = request.compile;
  const CompileOptions &options = compile.options;
  INGOT_ASSIGN_OR_RETURN(PhaseOptions phases, phaseOptions(options));
  bool isNeeded = needsCalibration(phases);
  if (isNeeded) {
    INGOT_ASSIGN_OR_RETURN(bool isDone, isCalibratedStage(context, compile));
    isNeeded = !isDone;
    if (isDone && options.calibrate)
      return Status::invalid(compile.modelPath +
                             " has been calibrated, or needs it no more; a "
                             "calibration text would change nothing");
  } else if (options.calibrate) {
    return Status::invalid("a calibration text is given, and no method that "
                           "uses one (--quantize ...-gptq or ...-awq)");
  }
  if (isNeeded) {
    if (!options.calibrate)
      return Status::invalid(
          "quantization \"" + options.quantize.value_or("none") +
          "\" chooses codes by a text that is like what the model will read; "
          "name one with --calibrate FILE");
    CalibrationOptions calibration;
    INGOT_ASSIGN_OR_RETURN(calibration.text,
                           readCalibrationText(*options.calibrate));
    calibration.cacheFolder = request.cacheFolder.empty() ? defaultCacheFolder()
                                                          : request.cacheFolder;
    if (options.calibrationTokens)
      calibration.maxTokens = *options.calibrationTokens;
    INGOT_ASSIGN_OR_RETURN(CalibratedModel calibrated,
                           calibrateWeights(compile, calibration));
    compile.calibratedWeights = calibrated.path;
    built.calibrated = std::move(calibrated);
  }
  INGOT_ASSIGN_OR_RETURN(built.compiled, compileModel(context, compile));
  return built;
}

} // namespace ingot
