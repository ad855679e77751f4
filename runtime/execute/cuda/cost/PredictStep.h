// What a step of a plan's cuda target costs on a chip: each launch's traffic
// (KernelTraffic.h) over the rates of the chip (Chips.h). Nothing runs.
//
//   seconds of a launch = max(bytes / bandwidth, flops / (tensor rate * fill))
//
// is a bound from below: bytes are different sectors of weights, cache, activations and
// arrays, as if nothing were in the caches yet; `fill` is the share of multiprocessors
// that its blocks keep busy. Between launches a device waits, which is not in the sum.
// Which experts tokens choose nobody knows beforehand: a step is counted as if they chose
// evenly at random, and its bounds are told beside it.
#pragma once

#include "runtime/execute/cuda/cost/Chips.h"
#include "runtime/execute/cuda/cost/KernelTraffic.h"
#include "runtime/plan/plan_generated.h"

#include <optional>
#include <string>
#include <vector>

namespace ingot::cuda {

// A kernel of the artifact on a chip: what ptxas said, and what follows.
struct KernelFacts {
  std::string name, op;
  BlockNeeds needs;
  std::uint32_t spillBytes = 0;
  Occupancy occupancy;
};

struct KernelCost {
  std::uint32_t kernel = 0; // of the target; facts of the same index
  std::uint32_t launches = 0;
  LaunchTraffic traffic;   // summed
  double seconds = 0;      // bound from below, summed
  double idealSeconds = 0; // the same of what the operations cannot do without
  double fill = 0;         // weighted by seconds
  // How near to the chip's roof the launches can come.
  double roofline() const { return seconds > 0 ? idealSeconds / seconds : 0; }
};

// Of a mixture of experts: how many of a layer's experts a step is counted with, and
// what the whole step takes at least with the fewest and the most that there can be.
struct ExpertCost {
  std::int32_t experts = 0; // of the layer with most; 0: none has any
  std::int32_t used = 0;    // as if tokens chose evenly at random
  std::int32_t fewest = 0, most = 0;
  double fewestSeconds = 0, mostSeconds = 0;
};

struct StepCost {
  std::string name;         // "decode 16"
  std::int32_t rows = 0;    // of the step
  std::int32_t context = 0; // positions that the last row of a sequence sees
  std::uint32_t launches = 0;
  // Products that are left to a library (LibraryUse.h), of which nothing is known:
  // they are in no other figure, so what is a bound stays one.
  std::uint32_t libraryProducts = 0;
  std::vector<KernelCost> kernels; // most seconds first
  LaunchTraffic traffic;
  double seconds = 0;
  double idealSeconds = 0;
  ExpertCost experts;
  // What a step pays beside all that where the device chooses its tokens, the most
  // likely ones: no launch of the plan, and not in every step.
  std::optional<KernelCost> choosing;
};

struct CostRequest {
  std::string level;              // "sm_90a"
  std::vector<std::int32_t> rows; // decode steps of so many sequences
  std::int32_t context = 0;       // of each of them
  std::int32_t prompt = 0;        // rows of a prompt's chunk; 0: none
};

struct PredictedCost {
  Chip chip;
  std::string level;
  double weightsBytes = 0;          // that a decode step reads
  std::vector<KernelFacts> kernels; // of the target, by index
  std::vector<StepCost> steps;
};

// NotFound, naming the levels that the target has, where `level` is none of its cubins;
// Unsupported for a chip without a table, and for what has no model.
Result<PredictedCost> predictCost(const fbs::Plan &plan,
                                  const fbs::Target &target,
                                  const CostRequest &request);

} // namespace ingot::cuda
