// The metrics of one model: what the loop observes as tokens come, and what the
// engine counts by itself, copied when /metrics is read.
#pragma once

#include "runtime/engine/EngineMetrics.h"
#include "runtime/serve/Metrics.h"

#include <map>
#include <string>

namespace ingot::serve {

class ModelMetrics {
public:
  ModelMetrics(MetricRegistry &registry, const std::string &model);

  // Touched as it happens.
  Histogram &firstToken;
  Histogram &interToken;
  Histogram &endToEnd;
  Histogram &queueTime;
  Histogram &promptLength;
  Histogram &outputLength;
  // By how a choice ended: "stop", "length", "abort", "error".
  Counter &finished(const std::string &reason);

  void copy(const EngineMetrics &engine);

private:
  MetricRegistry &registry_;
  Labels labels_;
};

} // namespace ingot::serve
