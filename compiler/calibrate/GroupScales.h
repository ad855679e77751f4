// The scale of a group of 4-bit codes that the inputs mind least, each column counting
// by an importance: what its error costs the output.
#pragma once

#include "compiler/calibrate/GroupCodes.h"

namespace ingot {

// Of the scale that rounding chooses, of a list that clips the largest weight less or
// more, and of what least squares makes of the best of those: the one with the least
// sum of importance * (value - scale * code)^2 over the group, codes being the nearest.
// `importance` is not negative, one for each value; all zeros give rounding's scale, and
// so does a group that becomes zero. Fails where scaleOfGroup does.
Result<GroupScale> scaleByImportance(std::span<const float> values,
                                     std::span<const float> importance);

} // namespace ingot
