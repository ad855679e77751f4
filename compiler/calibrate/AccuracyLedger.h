// What each lossy step of a compilation costs: behind each an ordinary plan of
// the module is run on a text, on the kernels that will be deployed, and compared
// with the model as it was imported. Steps are cumulative; the last one is the
// artifact itself.
#pragma once

#include "compiler/calibrate/MeasureText.h"
#include "compiler/driver/CompileModel.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

struct LedgerEntry {
  std::string step;     // "quantize-weights"; "import" for the model itself
  std::string settings; // the passes' text, or the option
  TextMeasure measure;
  double compileSeconds = 0;
};

struct AccuracyLedger {
  std::string textHash; // XXH3-64 of the evaluation text
  std::int64_t tokens = 0;
  std::int32_t windowTokens = 0;
  std::string calibrationHash; // of the calibration text; empty: none was used
  std::vector<LedgerEntry> entries; // the first is the imported model
};

struct LedgerRequest {
  // What is compiled; its output path is the artifact that will be measured last
  // and lies in a scratch folder.
  CompileRequest compile;
  std::string text;            // to measure on
  std::string calibrationText; // empty: none was used
  std::int32_t windowTokens = 512;
  std::int64_t maxTokens = 65536; // of the text
};

// Compiles the steps and measures them; `final` gets the last compilation.
// Where a limit of the options is exceeded the status names the step, and the
// layer with the largest share where layers can be told apart. Refuses an
// evaluation text that is part of the calibration text, or holds it.
Result<AccuracyLedger> measureLedger(const LedgerRequest &request,
                                     mlir::MLIRContext &context,
                                     CompiledModel &final);

// The ledger segment: what packing found (`packed`, the segment of an artifact
// without measurements), with the measurements in it.
Result<std::string> ledgerJson(const AccuracyLedger &ledger,
                               std::string_view packed);
// For people; ends with a line break.
std::string ledgerTable(const AccuracyLedger &ledger);

} // namespace ingot
