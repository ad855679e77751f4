// A model of random weights whose sizes are drawn from a seed, and the ways in
// which a test breaks it: in its tensors, in its lm module or in its artifact.
#pragma once

#include "compiler/debug/CompareModels.h"
#include "test/compiler/frontend/TempFolder.h"
#include "test/compiler/frontend/TinyModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace ingot::testing {

class FaultyModel {
public:
  // Family "llama", "qwen2" (biases), "mistral" (a window) or "gemma2" (soft
  // caps).
  FaultyModel(const std::string &family, std::uint32_t seed);

  std::int64_t draw(std::int64_t least, std::int64_t most);
  std::int64_t layers() const { return tiny.layers(); }
  std::string describe() const; // for the log of a failure

  // The folder of the model as it should be.
  std::string folder();
  // A folder of the model with tensors changed.
  std::string folder(const std::string &name,
                     const std::function<void(TinyModel &)> &change);
  // The artifact of a folder or stage; empty, with a failure, where none comes.
  std::string compile(const std::string &model, const std::string &name,
                      const std::string &quantize = "none",
                      const std::vector<std::int64_t> &exits = {},
                      const std::string &exitMaps = {},
                      const std::string &stages = {});
  // The artifact of the imported module, changed by its text's way.
  std::string compileChanged(const std::string &name,
                             const std::string &quantize,
                             const std::function<void(mlir::ModuleOp)> &change);
  // Of one position each: drawn, at most `most` of them.
  std::vector<std::int32_t> tokens(std::int64_t count);
  std::string drawEncoding();

  TinyModel tiny;
  std::int64_t window = 0; // of mistral
  TempFolder files;

private:
  void addTensors(const std::string &family);

  std::mt19937 random_;
};

} // namespace ingot::testing
