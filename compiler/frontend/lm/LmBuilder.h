// From the effective model to the lm dialect: one generic decoder for every
// family, since a ModelSpec leaves nothing to guess. Weights are symbols that
// point into the source files; nothing is loaded.
#pragma once

#include "compiler/frontend/ModelSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ingot {

enum class KvDtype { F16, F32, I8 };

struct LmBuildOptions {
  // Longest sequence to serve; 0 takes the model's own, a longer one is
  // refused.
  std::int64_t context = 0;
  // F32 is for models that are compiled with float32 weights.
  KvDtype kvDtype = KvDtype::F16;
  // Leaves the folders of files out of the module, so that it (and what is
  // made from it) does not tell where it was built. Tools that read the weights
  // then need the folder.
  bool hidePaths = false;
  // Off: sources get a hash of zeros and are not read. The writer refuses them.
  bool hashSources = true;
  // For people; empty takes the name of the model's folder or GGUF file.
  std::string name = {};
};

// Reports what cannot be built as diagnostics of `context`. Reads each source
// file once, for its hash. Loads the lm dialect.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
buildLm(mlir::MLIRContext &context, const ModelSpec &spec,
        const LmBuildOptions &options = {});

} // namespace ingot
