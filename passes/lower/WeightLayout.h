// The plan's words for a weight in those of the packer.
#pragma once

#include "compiler/package/PackWeights.h"
#include "dialects/plan/Plan.h"

namespace ingot::plan {

package::WeightEncoding packedEncoding(EncodingAttr encoding);
package::StoredForm storedForm(Stored stored);

// The placement at `offset` that the packer makes of `weight`.
Result<PlacementAttr> placementOf(WeightOp weight, uint64_t offset);

} // namespace ingot::plan
