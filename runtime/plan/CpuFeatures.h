// What instructions this processor has and the operating system lets us use,
// under the names that levels of an artifact carry (LLVM's feature names).
#pragma once

#include <set>
#include <string>
#include <vector>

namespace ingot {

// Sorted names of the features that are present and enabled.
const std::set<std::string> &hostCpuFeatures();

// The names in `needed` that `present` lacks, in the order of `needed`.
std::vector<std::string> missingFeatures(const std::vector<std::string> &needed,
                                         const std::set<std::string> &present);

} // namespace ingot
