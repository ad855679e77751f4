// The whole way from a model to an artifact: import, the phases, code, file.
// A stage of it can be saved as text and taken up again: the artifact made from
// the text is the same, byte by byte.
#pragma once

#include "compiler/driver/CompileOptions.h"
#include "compiler/package/ArtifactWriter.h"
#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ingot {

// A part of the model that is left out when it has been imported: the pass that
// does it, and the file of the weights that become smaller by it
// (compiler/calibrate/PruneModel.h).
struct Pruning {
  std::string weights;
  std::string pass; // "prune-ffn{columns=384,384}"
};

struct CompileRequest {
  std::string modelPath;  // a folder, a GGUF or ONNX file, or an .mlir stage
  std::string outputPath; // empty: stop before code and file
  CompileOptions options;
  // Family descriptors of the user, tried before the built-in ones.
  std::vector<std::string> descriptorPaths;
  // For an .mlir stage in lm: the first phase that is still to run. A stage in
  // plan has none left, unless the options name the passes that are left of the
  // last one.
  std::optional<Phase> from;
  // The last phase to run.
  Phase until = Phase::Lower;
  // In their order, each on what those before it left.
  std::vector<Pruning> prunings;
  // What calibration has made for this module (CalibratedWeights.h); empty: none.
  std::string calibratedWeights;
  std::string calibratedPrefix; // of the weights to take from it; empty: all
  std::string stagesFolder;     // write the module after each phase into it
  std::string sourceFolder;     // of a stage whose sources have no paths
  unsigned threads = 2;
  // Off: the sources are not read for their hashes. For looking only; what was
  // imported so cannot be made into an artifact.
  bool hashSources = true;

  // A line for each part of an ONNX graph that was recognised or left alone.
  std::function<void(const std::string &)> explainFusion;
  // Called with the module behind each pass: "quantize-weights{...}", and the
  // seconds that it took.
  std::function<void(Phase phase, const std::string &pass,
                     mlir::ModuleOp module, double seconds)>
      afterPass;

  // One diagnostic of the compiler, ready to print: "error: layer.3.qkv: ...".
  std::function<void(const std::string &)> diagnostic;
  // A step begins; done and total count bytes, 0 where they are not known.
  std::function<void(const std::string &step, std::uint64_t done,
                     std::uint64_t total)>
      progress;
};

struct CompiledModel {
  mlir::OwningOpRef<mlir::ModuleOp> module; // after the last phase that ran
  package::WrittenArtifact artifact;        // zeros without an output path
  std::vector<std::pair<std::string, double>> seconds; // by step, in order
  std::vector<std::string> notes; // what import left out, by rule
};

// Loads the dialects and registers the passes that the phases name. Once for a
// context.
void prepareContext(mlir::MLIRContext &context);

Result<CompiledModel> compileModel(mlir::MLIRContext &context,
                                   const CompileRequest &request);

// The text of a module from which the compiler goes on as if it had never
// stopped.
std::string stageText(mlir::ModuleOp module);

} // namespace ingot
