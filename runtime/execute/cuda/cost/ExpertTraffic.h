// What the kernels of mixtures of experts move (KernelTraffic.h). It depends on the
// choice: weights of experts that nobody chose are not read, and rows lie where the
// choice puts them.
#pragma once

#include "runtime/execute/cuda/cost/KernelTraffic.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot::cuda {

// The experts of a step: of token t, chosen[t * topK] and those behind it.
struct ExpertChoice {
  std::int32_t experts = 0, topK = 0;
  std::vector<std::int32_t> chosen; // [tokens * topK]

  std::int32_t slots() const { return std::int32_t(chosen.size()); }
  std::int32_t tokens() const { return topK > 0 ? slots() / topK : 0; }
  std::vector<std::int32_t> rowsOfExperts() const; // [experts]
};

// Choices that a plan can be asked about: `used` experts in turn, at least topK of
// them; of `rows` tokens the last `padding` choose as the first one does.
ExpertChoice choiceOf(std::int32_t experts, std::int32_t topK,
                      std::int32_t used, std::int32_t rows,
                      std::int32_t padding);
// How many experts `tokens` tokens choose that choose evenly at random.
std::int32_t expertsOfEvenChoice(std::int32_t experts, std::int32_t topK,
                                 std::int32_t tokens);

LaunchTraffic routeTraffic(const ExpertChoice &choice, bool normalized);
LaunchTraffic orderTraffic(const ExpertChoice &choice);

// Float32 rows where parts are 0, else half rows.
struct DispatchWork {
  std::int32_t width = 0;
  std::int32_t fromParts = 0, toParts = 0;
};
LaunchTraffic dispatchTraffic(const ExpertChoice &choice,
                              const DispatchWork &work);

// `expert`: the product of one expert, whose tokens the choice says.
LaunchTraffic expertTraffic(const ExpertChoice &choice,
                            const LinearWork &expert);

LaunchTraffic combineTraffic(const ExpertChoice &choice, std::int32_t width);

} // namespace ingot::cuda
