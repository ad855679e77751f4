// Which experts a CUDA device chose, and what the lm module's plain float32 run makes of
// the same choice. Where two experts are nearly equal, a device may choose the other
// one, which is another path and not an error of numbers: each such choice must be as
// near as the routers' own error, and what follows is compared on the device's path.
#pragma once

#include "compiler/reference/LmExecutor.h"
#include "runtime/engine/Engine.h"

#include <string>
#include <vector>

namespace ingot::test {

// Of one sequence, scored from position 0.
struct ExpertChoices {
  struct Layer {
    std::string name; // of the launch
    std::int32_t experts = 0, topK = 0;
    std::vector<float> logits; // [positions, experts]
    std::vector<float> routes; // [positions, 2 * topK]
  };
  std::vector<Layer> layers; // as they run

  // Adds what every step of the engine chooses from now on. Outlives its last step.
  void record(Engine &engine);
};

// How a reference's own choices differ from those that it was given.
struct ChoiceErrors {
  double logits = 0; // largest difference of two logits of a router
  int others = 0;    // choices of another set of experts
  double lead =
      0; // largest lead of an expert that was not taken over one that was
};

// The logits of all positions, with the experts of `choices`, whose probabilities are
// the reference's own.
Result<std::vector<std::vector<float>>>
logitsOfChoices(const LmExecutor &executor, const ExpertChoices &choices,
                std::span<const std::int32_t> tokens, mlir::ModuleOp module,
                ChoiceErrors &errors);

} // namespace ingot::test
