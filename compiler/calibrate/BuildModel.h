// The whole of `ingot compile`: what has to be learned from texts before or
// measured on them after, around the way from a model to an artifact
// (compiler/driver/CompileModel.h).
#pragma once

#include "compiler/calibrate/AccuracyLedger.h"
#include "compiler/calibrate/CalibrateWeights.h"
#include "compiler/driver/CompileModel.h"

#include <optional>
#include <string>

namespace ingot {

struct BuildRequest {
  CompileRequest compile;
  std::string cacheFolder; // of calibrated weights; empty: defaultCacheFolder()
};

struct BuiltModel {
  CompiledModel compiled;
  std::optional<CalibratedModel> calibrated; // where a method asked for it
  std::optional<AccuracyLedger> ledger;      // where a text was given for it
};

struct LearnedModel {
  std::optional<CalibratedModel> calibrated; // where a method asked for it
  std::string calibrationText;               // empty: none was needed
};

// What the options ask to be learned from the calibration text (prunings and codes)
// is put into `compile`, as compileModel takes it. Fails where the text is missing,
// or nothing would use it.
Result<LearnedModel> learnFromText(mlir::MLIRContext &context,
                                   CompileRequest &compile,
                                   const std::string &cacheFolder);

// As compileModel. Where the options ask for a calibrated method, the text of
// `options.calibrate` is needed, unless the module of a stage holds what was
// calibrated already. With the text of `options.evaluate` each lossy step is
// measured and the artifact holds the ledger; where a limit is exceeded there is
// no artifact.
Result<BuiltModel> buildModel(mlir::MLIRContext &context,
                              const BuildRequest &request);

// The summary of compile (CompileSummary.h), with the ledger.
std::string builtTable(BuiltModel &built, const std::string &outputPath);
std::string builtJson(BuiltModel &built, const std::string &outputPath);

} // namespace ingot
