// The phases of the compiler, by name, and the pass pipeline text of each. A
// command-line shorthand is only a spelling of this text; ingot-opt runs it.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

enum class Phase {
  // Files to lm: done by the frontend, then checked.
  Import,
  // Algebraic rewrites that keep every bit.
  Simplify,
  // What loses accuracy to save bytes: the encodings of weights and
  // activations.
  Compress,
  // Fewer launches and fewer bytes between them, with the same bits.
  Fuse,
  // From lm to plan: kernels, buffers and places of weights are chosen.
  Lower,
};

inline constexpr Phase kPhases[] = {Phase::Import, Phase::Simplify,
                                    Phase::Compress, Phase::Fuse, Phase::Lower};

const char *phaseName(Phase phase);

// Everything a pipeline can be told.
struct PhaseOptions {
  // Options of quantize-weights (passes/Passes.td).
  std::string encoding = "none";
  std::int64_t group = 64;
  std::string table = "auto";
  std::vector<std::string> skip;
  std::string method = "rtn";
  std::vector<std::string> overrides; // "layer.0.*=int8-g64-rtn"
  bool quantizesKv = false; // keys and values as codes of 8 bits
  // Exits, by the number of layers that run before them; empty: none.
  std::vector<std::int64_t> exits;
  bool cutFinal = false; // and a cut behind the last layer, to observe there
  // Targets in the order of the plan: "cpu", "cuda"; empty: the cpu alone.
  std::vector<std::string> targets;
  // Feature levels of the CPU target, best first; empty takes all.
  std::vector<std::string> levels;
  // Chips of the CUDA target, "sm_90"; empty takes the usual ones.
  std::vector<std::string> chips;
  // Products of prompts are left to cuBLASLt, in the CUDA target.
  bool allowLibraryGemm = false;
};

// Reads a shorthand such as "int8", "int4-g32", "int4-g128-awq", "f16" or "none"
// into the encoding, group and method of `options`. Words behind commas choose
// for the matrices that a glob pattern names: "int4-g32-gptq,layer.0.*=int8".
Status applyQuantizeShorthand(const std::string &text, PhaseOptions &options);

// The same encodings with codes by rounding: what has their size and kernels.
Result<std::string> roundedShorthand(const std::string &text);

// Does a matrix get its codes from calibration?
bool needsCalibration(const PhaseOptions &options);

// The text of quantize-weights alone.
std::string quantizeWeightsText(const PhaseOptions &options,
                                bool markOnly = false);
// Reads targets such as "cpu", "cuda", "cuda:sm_80,sm_90a" or "cuda:sm_90,cpu" into
// the targets and chips of `options`.
Status applyTargetShorthand(const std::string &text, PhaseOptions &options);

// The passes of a phase, separated by commas.
std::string phasePipeline(Phase phase, const PhaseOptions &options);

// The passes of phases `first` to `last`: "builtin.module(...)".
std::string pipelineText(const PhaseOptions &options,
                         Phase first = Phase::Import,
                         Phase last = Phase::Lower);

// Registers `--ingot-import`, `--ingot-simplify` ... with the options above,
// for ingot-opt. The passes themselves are registered elsewhere.
void registerPhasePipelines();

} // namespace ingot
