// Writes an artifact (runtime/plan/Container.h) from a plan module and the code
// of its targets. The file is written beside its destination and renamed when
// it is complete, so that a name never stands for half an artifact. Weights are
// packed from the mapped sources straight into the file, a few tiles at a time:
// the model is never in memory as a whole. The same module and sources give the
// same bytes, wherever they lie.
#pragma once

#include "compiler/package/PackWeights.h"
#include "compiler/package/PlanTranslation.h"
#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ingot::package {

struct WriteOptions {
  unsigned threads = 2;
  // Where sources without a path are looked for by name; empty: nowhere.
  std::string sourceFolder;
  // Called from the writing threads, one call at a time.
  std::function<void(const std::string &weight, uint64_t bytesDone,
                     uint64_t bytesTotal)>
      progress;
};

// Weights that went from one stored form to one encoding, and what that cost.
struct Conversion {
  std::string stored;     // "Q4_K", "gptq 4-bit", "F16+lora"
  std::string encoding;   // "i4-g32-min"
  bool keptCodes = false; // else rounded to nearest
  std::uint64_t tensors = 0;
  EncodingError error;
};

struct WrittenArtifact {
  uint64_t fileBytes = 0;
  uint64_t weightsBytes = 0;
  uint64_t codeBytes = 0;
  uint64_t planBytes = 0;
  uint64_t tokenizerBytes = 0;
  // Groups of weights too small for a float16 scale, stored as zero.
  std::vector<std::string> warnings;
  // What became of numbers that were not moved as they are; also in the ledger.
  std::vector<Conversion> conversions;
};

// `code` has the compiled levels of each target, in the module's order; their places
// are found here.
Result<WrittenArtifact> writeArtifact(const std::string &path,
                                      mlir::ModuleOp module,
                                      std::vector<TargetCode> code,
                                      const WriteOptions &options = {});

// Writes the artifact `from` again, with another ledger and else the same
// segments, to `to`, which may not be the same file. Gives its size.
Result<uint64_t> replaceLedger(const std::string &from, const std::string &to,
                               const std::string &ledger);

} // namespace ingot::package
