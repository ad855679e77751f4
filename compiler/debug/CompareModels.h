// `debug compare`: opens the two sides, runs what can run and compares.
#pragma once

#include "compiler/debug/Comparison.h"
#include "compiler/debug/ModelSource.h"

#include <functional>
#include <string>
#include <vector>

namespace ingot::debug {

struct CompareRequest {
  std::string a, b; // artifacts, stages, models or tensors
  // Empty: those of the side that holds tensors.
  std::vector<std::int32_t> tokens;
  CompareOptions options;
  ArtifactRunOptions run;
  std::string sourceFolder; // of stages
  std::function<void(const std::string &)> diagnostic;
};

// Where a side is a module (B before A), it is the reference, and errors are
// local; else tensors are compared in the order of the run.
Result<Comparison> compareModels(const CompareRequest &request);

} // namespace ingot::debug
