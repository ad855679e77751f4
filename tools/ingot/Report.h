// What the commands share when they tell: numbers for people, JSON, and colour
// where a person watches.
#pragma once

#include "runtime/execute/Executor.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::cli {

std::string bytesText(double bytes);         // "1.2 GiB"
std::string format(const char *pattern, ...) // printf into a string
    __attribute__((format(printf, 1, 2)));

// JSON for people and programs; a name that is not UTF-8 does not stop it.
// Characters that a terminal would obey are escaped. `indent` -1: on one line.
std::string jsonText(const nlohmann::ordered_json &value, int indent = 1);

// Escape sequences of standard error, empty where it is not a terminal or
// NO_COLOR is set.
struct Colour {
  const char *bold = "";
  const char *dim = "";
  const char *red = "";
  const char *off = "";
};
const Colour &errorColour();

// The launches of a profile by operation and kernel, the slowest first, with
// GB/s and the share of `bandwidth` (bytes a second; 0: unknown).
std::string profileTable(const std::vector<LaunchProfile> &profile,
                         double bandwidth);

} // namespace ingot::cli
