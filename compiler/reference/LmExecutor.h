// Runs an lm module in plain float32 C++: what its text means, before and after
// any pass. An oracle for tests and tools, never a fallback: it is slow and
// holds all weights in memory.
#pragma once

#include "compiler/reference/LmMath.h"

#include "mlir/IR/BuiltinOps.h"

namespace ingot {

class LmExecutor {
public:
  // Loads the weights of a verified module with one program. `folder` holds the
  // source files where the module hides their paths.
  static Result<LmExecutor> create(mlir::ModuleOp module,
                                   const std::string &folder = "");

  // Runs one sequence from position 0 and returns the logits of the chosen
  // token rows (ascending), one row after another. Refuses ids outside the
  // embedding and rows outside the tokens. With the name of an exit, the
  // logits are those of its head.
  Result<std::vector<float>> run(std::span<const std::int32_t> tokens,
                                 std::span<const std::int64_t> rows,
                                 const std::string &exitName = {}) const;

private:
  lm::ProgramOp program_;
  std::map<std::string, LoadedWeight> weights_;
};

} // namespace ingot
