// What every executor is: it runs a StepPlan over the cache and hands out the
// logits that the step asked for. It never chooses what to run.
#pragma once

#include "runtime/memory/KvCache.h"
#include "runtime/schedule/StepPlan.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ingot {

// Where the time of a launch went, summed over the steps since the last reset.
struct LaunchProfile {
  std::string name;   // "layer.3.qkv"
  std::string op;     // "linear"
  std::string kernel; // of the latest step
  std::int32_t layer = -1;
  std::uint64_t calls = 0;
  double seconds = 0;
  double bytes = 0; // read and written, by the shapes
};

// How often one variant of a launch has run.
struct VariantUse {
  std::string launch;
  std::string kernel;
  std::uint64_t uses = 0;
};

class TokenChooser;

class Executor {
public:
  virtual ~Executor() = default;

  virtual const StepLimits &limits() const = 0;

  // Runs the step to its end. The cache must have blocks reserved for every
  // row. On failure nothing that was committed has changed.
  virtual Status run(const StepPlan &plan, const KvCache &cache) = 0;

  // Logits of plan.logitRows[row] of the latest step; valid until the next.
  virtual std::span<const float> logits(std::int32_t row) const = 0;

  // Who chooses tokens where the logits are; null where that is for the host.
  virtual TokenChooser *chooser() { return nullptr; }

  // Of all steps so far, the seconds that went into attention over the cache: the
  // part of a step that grows with context. 0 where it is not told apart.
  virtual double attentionSeconds() const { return 0; }

  // Bytes of weight matrices that one step reads, each once; 0 where not told.
  virtual double weightBytesPerStep() const { return 0; }
  // And one that ends with the head of an exit.
  virtual double weightBytesToExit(std::int32_t exit) const { return 0; }
  // Every variant of every launch.
  virtual std::vector<VariantUse> variantUses() const { return {}; }

  // Profiling costs two clock reads a launch; off at first.
  virtual void setProfiling(bool enabled) = 0;
  virtual std::vector<LaunchProfile> profile() const = 0;
};

} // namespace ingot
