// How much memory this process may still take: what the system has free or can
// free, and what the control group's limit leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ingot {

// Nothing where the system does not say. `root` is "" but in tests.
std::optional<std::uint64_t> availableMemoryBytes(const std::string &root = "");

} // namespace ingot
