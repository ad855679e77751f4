// What a compilation can be told, from flags or from a recipe. A recipe is a
// JSON object of the same options and, for a phase, the text of its pipeline:
//
//   { "quantize": "int4-g64", "table": "int8", "kv": "f16", "context": 2048,
//     "exits": [8, 16], "target": "cpu", "levels": ["x86-64-v3"], "skip": ["layer.0.*"],
//     "pipelines": { "fuse": "fuse-quantize,fuse-epilogues" } }
//
// Unknown keys are refused. Flags win over the recipe.
#pragma once

#include "compiler/frontend/ImportOptions.h"
#include "compiler/frontend/ModelSpec.h"
#include "compiler/pipeline/Phases.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ingot {

struct CompileOptions {
  std::optional<std::string> quantize;  // none, f16, int8, int4-g64-gptq ...
  std::optional<std::string> calibrate; // file of the text to calibrate on
  std::optional<std::int64_t> calibrationTokens; // of it, at most
  // What to leave out of the model: whole layers, key heads, the share of the
  // feed-forward's columns; and whether the rest is healed (default: yes).
  std::optional<std::int64_t> pruneLayers, pruneHeads;
  std::optional<double> pruneFfn;
  std::optional<bool> heal;
  std::optional<std::string> evaluate; // file of the text to measure on
  std::optional<std::int64_t> evaluationTokens; // of it, at most
  // What the measured accuracy may cost at most: nats, and a share.
  std::optional<double> maxKl, maxPplIncrease;
  std::optional<std::string> table; // encoding of embedding and head
  // Elements of the cache: f16, f32, or int8, which is f16 with quantizeKv int8.
  std::optional<std::string> kv;
  std::optional<std::string> quantizeKv; // none or int8: the pass quantize-kv
  std::optional<std::int64_t> context;   // longest sequence
  std::optional<std::string> name;       // of the model, for people
  std::optional<std::string> target;     // "cpu", "cuda:sm_80,sm_90a,cpu"
  std::optional<bool> allowLibraryGemm;  // in the CUDA target; lossy
  std::optional<std::string> pooling;    // mean, cls, last; with :raw
  std::optional<std::vector<std::string>> levels;
  std::optional<std::vector<std::string>> skip; // weights to leave as they are
  std::optional<std::vector<std::string>> lora; // FOLDER[:scale], in order
  std::optional<std::vector<std::int64_t>> exits; // layers before each exit
  std::optional<std::string> exitMaps;            // what fit-exits has written
  std::map<std::string, std::string> pipelines;   // by phase
};

// Fills what `options` leaves open from the JSON text of a recipe. `name`
// stands for the file in messages.
Status applyRecipe(const std::string &json, const std::string &name,
                   CompileOptions &options);

// The recipe that gives the same options again.
std::string recipeText(const CompileOptions &options);

// Are keys and values to become codes, by either option?
bool quantizesKv(const CompileOptions &options);

// Is something to be left out?
bool prunes(const CompileOptions &options);

// Checks the values and turns them into those of the pipelines.
Result<PhaseOptions> phaseOptions(const CompileOptions &options);

// The text of one phase, and of all phases: "builtin.module(...)".
std::string phaseText(Phase phase, const PhaseOptions &phaseOptions,
                      const CompileOptions &options);
std::string wholePipelineText(const PhaseOptions &phaseOptions,
                              const CompileOptions &options);

// "mean", "cls" or "last", of length 1, or with ":raw" as long as it is.
Result<EmbeddingSpec> parsePooling(const std::string &text);

// "FOLDER" or "FOLDER:0.5".
Result<LoraRequest> parseLora(const std::string &text);

// "simplify" and so on.
std::optional<Phase> phaseByName(const std::string &name);

} // namespace ingot
