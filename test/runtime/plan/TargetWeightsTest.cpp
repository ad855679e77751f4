// Which weights a target reads: what is not among them is not copied to a device.
#include "runtime/plan/TargetWeights.h"
#include "test/runtime/plan/TinyArtifact.h"

#include <gtest/gtest.h>

using namespace ingot;
using namespace ingot::test;

namespace {

std::vector<bool> used(const TinyArtifact &tiny) {
  std::vector<std::uint8_t> bytes = tiny.planBytes();
  const fbs::Plan &plan = *fbs::GetPlan(bytes.data());
  return weightsOfTarget(plan, *plan.targets()->Get(0));
}

} // namespace

TEST(TargetWeightsTest, everyOperandIsCounted) {
  TinyArtifact tiny = TinyArtifact::make();
  std::vector<bool> all = used(tiny);
  EXPECT_EQ(all, std::vector<bool>(tiny.plan.weights.size(), true));

  // One more, which only the embedding adds to its rows.
  auto row = std::make_unique<fbs::WeightT>(*tiny.plan.weights[1]);
  row->name = "token_types";
  tiny.plan.weights.push_back(std::move(row));
  EXPECT_FALSE(used(tiny).back());
  for (auto &launch : tiny.plan.targets[0]->segments[0]->launches)
    if (auto *embed = launch->params.AsEmbed())
      embed->bias = int(tiny.plan.weights.size()) - 1;
  EXPECT_TRUE(used(tiny).back());
}
