// `debug trace`: the intermediates of a run as a safetensors file, and the first
// one that holds a number which is not finite.
#pragma once

#include "compiler/debug/ModelSource.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot::debug {

struct TraceRequest {
  std::string path; // artifact, stage or model
  std::vector<std::int32_t> tokens;
  std::string outputPath; // empty: only watch
  std::string ops; // a regular expression that names must match; empty: all
  std::optional<std::pair<std::int32_t, std::int32_t>> layers; // inclusive
  bool watchNonFinite = false;
  ArtifactRunOptions run;
  std::string sourceFolder;
  std::function<void(const std::string &)> diagnostic;
};

struct TracedTensor {
  std::string name;
  std::int64_t rows = 0, columns = 0;
  std::string launch, op, kernel;
  double rms = 0, largest = 0; // root of the mean square; largest magnitude
};

struct Trace {
  std::vector<TracedTensor> tensors; // in the order of the run
  std::optional<NonFinite> nonFinite;
};

// Tensors are float32 [rows, columns]; the tokens are the tensor "tokens". Refuses
// a choice that no tensor meets.
Result<Trace> traceModel(const TraceRequest &request);

// For people and for programs; each ends with a line break.
std::string traceText(const Trace &trace, const TraceRequest &request);
std::string traceJson(const Trace &trace, const TraceRequest &request);

// "3", "3-5" or "3-": the layers of `--layers`.
Result<std::pair<std::int32_t, std::int32_t>>
readLayers(const std::string &text);

} // namespace ingot::debug
