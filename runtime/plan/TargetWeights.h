// Which of a plan's weights the launches of one target read: targets may share
// weights or have packings of their own.
#pragma once

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <vector>

namespace ingot {

// One flag a weight of the plan, which has been verified.
std::vector<bool> weightsOfTarget(const fbs::Plan &plan,
                                  const fbs::Target &target);

// Their bytes together, each at a multiple of `alignment`.
std::uint64_t weightBytesOfTarget(const fbs::Plan &plan,
                                  const fbs::Target &target,
                                  std::uint64_t alignment);

} // namespace ingot
