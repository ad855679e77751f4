#include "runtime/plan/TargetWeights.h"

namespace ingot {
namespace {

void addOperands(const fbs::Launch &launch, std::vector<bool> &used) {
  auto add = [&](std::int32_t index) {
    if (index >= 0)
      used[std::size_t(index)] = true;
  };
  if (auto *op = launch.params_as_Embed()) {
    add(op->table());
    add(op->bias());
  }
  if (auto *op = launch.params_as_RopeTable())
    add(op->inv_freq());
  if (auto *op = launch.params_as_RmsNorm())
    add(op->weight());
  if (auto *op = launch.params_as_LayerNorm()) {
    add(op->weight());
    add(op->bias());
  }
  if (auto *op = launch.params_as_Linear()) {
    add(op->weight());
    add(op->bias());
  }
  if (auto *op = launch.params_as_RopeCacheWrite()) {
    add(op->q_norm());
    add(op->k_norm());
  }
  if (auto *op = launch.params_as_ExpertLinear())
    add(op->weight());
}

} // namespace

std::vector<bool> weightsOfTarget(const fbs::Plan &plan,
                                  const fbs::Target &target) {
  std::vector<bool> used(plan.weights()->size());
  auto addSegment = [&](const fbs::ProgramSegment *segment) {
    if (segment)
      for (const fbs::Launch *launch : *segment->launches())
        addOperands(*launch, used);
  };
  for (const fbs::ProgramSegment *segment : *target.segments())
    addSegment(segment);
  if (target.exits())
    for (const fbs::Exit *exit : *target.exits()) {
      addSegment(exit->head());
      addSegment(exit->fill());
    }
  return used;
}

std::uint64_t weightBytesOfTarget(const fbs::Plan &plan,
                                  const fbs::Target &target,
                                  std::uint64_t alignment) {
  std::vector<bool> used = weightsOfTarget(plan, target);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i])
      bytes += (plan.weights()->Get(unsigned(i))->size() + alignment - 1) /
               alignment * alignment;
  return bytes;
}

} // namespace ingot
