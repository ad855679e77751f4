// The plan's words for a weight in those of the packer.
#pragma once

#include "compiler/package/PackWeights.h"
#include "dialects/plan/Plan.h"

namespace ingot::plan {

package::WeightEncoding packedEncoding(EncodingAttr encoding);

// What a part's numbers are, for people: "Q4_K", "gptq 4-bit", "F16+lora".
std::string describeStored(PartAttr part);
// Whether every number of the weight is moved as it is stored.
bool isMovedExactly(WeightOp weight);

// The placement at `offset` that the packer makes of `weight`.
Result<PlacementAttr> placementOf(WeightOp weight, uint64_t offset);

} // namespace ingot::plan
