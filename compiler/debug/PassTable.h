// `debug passes`: what each pass of a compilation did to the module, in figures and
// line by line; each stage saved, and a compilation taken up from one.
#pragma once

#include "compiler/driver/CompileModel.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ingot::debug {

struct PassesRequest {
  CompileRequest compile;
  std::string diffPass;     // whose changes are shown; empty: none
  std::string stagesFolder; // the module behind each pass; empty: not kept
  // A stage that such a folder holds, to go on from; compile.modelPath is then
  // empty.
  std::string fromStage;
  // An artifact, or a JSON file like its ledger, whose measurements are shown
  // beside the passes that they are of.
  std::string ledger;
};

// What a step of the ledger measured, against the imported model.
struct LedgerFigures {
  double perplexity = 0, meanKl = 0, p99Kl = 0, agreement = 0;
};

struct PassRow {
  std::string phase;
  std::string pass;              // "quantize-weights{encoding=int8 ...}"
  std::uint64_t operators = 0;   // of programs in lm, those of exits too
  std::uint64_t launches = 0;    // of plans
  std::uint64_t weightBytes = 0; // in their encodings, without padding
  double seconds = 0;
  bool changed = true; // the module's text
  std::optional<LedgerFigures> ledger;
};

// What a pass changed of layers that it changed alike.
struct LayerDiff {
  std::vector<std::int64_t> layers; // -1: what belongs to no layer
  std::string text; // of the first of them: lines with "-", "+" or " " before
};

struct PassReport {
  std::vector<PassRow> rows;
  std::vector<LayerDiff> diff;
  // Of the ledger, what no pass is named like.
  std::vector<std::pair<std::string, LedgerFigures>> otherSteps;
};

// Refuses a pass to show that does not run, and one that runs more than once
// unless it is named with its number: "merge-qkv#2".
Result<PassReport> tabulatePasses(mlir::MLIRContext &context,
                                  const PassesRequest &request);

// Each ends with a line break.
std::string passesText(const PassReport &report, const PassesRequest &request);
std::string passesJson(const PassReport &report, const PassesRequest &request);

} // namespace ingot::debug
