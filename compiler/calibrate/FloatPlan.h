// A model compiled as an ordinary plan with float weights, and the windows of a
// text that it is run on: what calibration observes.
#pragma once

#include "compiler/calibrate/WindowRunner.h"
#include "compiler/driver/CompileModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>
#include <vector>

namespace ingot {

class FloatPlan {
public:
  // Compiles the model of `request` to `path` without its lossy encodings (float16
  // where `imported`, its module, has integers), and cuts the text. Fails where
  // that has fewer than four windows. With `cutLayers`, the number of the
  // model's layers (two or more), the plan has a segment for each and one for what
  // follows them, so that it can be run layer by layer.
  static Result<FloatPlan>
  create(const CompileRequest &request, mlir::ModuleOp imported,
         const std::string &path, const std::string &text,
         std::int32_t windowTokens, std::int64_t maxTokens,
         std::int64_t cutLayers = 0);

  // Runs all windows; `observe` sees each launch before it runs. `progress` is
  // told the windows done and of all.
  Status run(const std::function<Status(const BoundLaunch &launch,
                                        std::int32_t rows)> &observe,
             const std::function<void(std::int64_t, std::int64_t)> &progress);

  WindowRunner &runner() { return *runner_; }
  const std::vector<std::vector<std::int32_t>> &windows() const {
    return windows_;
  }
  std::int64_t numRows() const { return std::ssize(windows_) * windowTokens_; }

private:
  std::optional<WindowRunner> runner_;
  std::vector<std::vector<std::int32_t>> windows_;
  std::int32_t windowTokens_ = 0;
};

} // namespace ingot
