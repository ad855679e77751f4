// What a person points the debug tool at: an artifact, a stage of the compiler, a
// model as it was imported, or tensors that another program has written.
#pragma once

#include "compiler/debug/RecordArtifact.h"
#include "compiler/debug/RecordModule.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ingot::debug {

enum class SourceKind { Artifact, Module, Tensors };

// Artifact: by its first bytes. Tensors: a .safetensors file, or a folder of
// them without a config.json. Module: an .mlir stage, a Hugging Face folder or a
// GGUF file.
Result<SourceKind> kindOf(const std::string &path);

// An lm module with its weights loaded, ready to run on the reference executor.
class LmModel {
public:
  // Weights of an imported model stay as they are stored, and its cache is
  // float32. `sourceFolder` is for stages that hide their paths.
  static Result<LmModel>
  open(const std::string &path, const std::string &sourceFolder,
       const std::function<void(const std::string &)> &diagnostic);
  const LmExecutor &executor() const { return *executor_; }
  mlir::ModuleOp module() const { return *module_; }

private:
  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::unique_ptr<LmExecutor> executor_;
};

// Every tensor of float numbers in a file or in the .safetensors files of a
// folder, under its own name: [rows, columns], or one row. A tensor of
// integers named "tokens" is left out (readTokens).
Result<Recording> readTensors(const std::string &path);
// The tokens that a dump was made with: its tensor "tokens", or NotFound.
Result<std::vector<std::int32_t>> readTokens(const std::string &path);

} // namespace ingot::debug
