// Runs an lm module in plain float32 C++: what its text means, before and after
// any pass. An oracle for tests and tools, never a fallback: it is slow and
// holds all weights in memory.
#pragma once

#include "compiler/reference/LmMath.h"

#include "mlir/IR/BuiltinOps.h"

namespace ingot {

// What attention reads: [positions, kvHeads * headDim], as the state's dtype
// keeps it.
struct LmCache {
  std::vector<float> keys, values;
};

// Of a run that is under way, for whoever observes it.
class LmRun {
public:
  virtual ~LmRun() = default;
  // May be replaced: what follows goes on from there. Null: not computed.
  virtual LmRows *rows(mlir::Value value) = 0;
  // A weight by its symbol.
  virtual const LoadedWeight &weight(llvm::StringRef name) const = 0;
};

class LmObserver {
public:
  virtual ~LmObserver() = default;
  // `op` (lm.attention, lm.rope_cache_write) has written its keys and values,
  // which may be replaced, and has not attended yet.
  virtual Status stored(mlir::Operation &op, LmCache &cache, LmRun &run) = 0;
  // `op` has run.
  virtual Status ran(mlir::Operation &op, LmRun &run) = 0;
};

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

  // The same for all rows, with the heads of all exits where they stand; the
  // observer sees every operator.
  Status observe(std::span<const std::int32_t> tokens,
                 LmObserver &observer) const;
  // A weight of the module as it would be in another encoding, or in its own.
  Result<LoadedWeight> load(lm::WeightOp weight,
                            lm::EncodingAttr encoding) const;

private:
  Status checkTokens(std::span<const std::int32_t> tokens) const;

  lm::ProgramOp program_;
  LmSourceFiles files_;
  std::map<std::string, LoadedWeight> weights_;
};

} // namespace ingot
