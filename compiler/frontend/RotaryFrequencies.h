// The inverse frequencies of a rotary embedding, in float32 and in the order of
// operations that the transformers package uses. Only the power differs: here
// it is correctly rounded, there it is within one unit in the last place,
// depending on the vector unit. All but a few values in a thousand are equal.
#pragma once

#include "compiler/frontend/ModelSpec.h"

#include <span>

namespace ingot {

// Fills `rotary.invFreq` from the other fields; `factors` (one for each
// frequency) is read for RotaryKind::FrequencyFactors only.
Status computeInverseFrequencies(RotarySpec &rotary,
                                 std::span<const float> factors = {});

} // namespace ingot
