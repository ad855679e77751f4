// What a launch of a plan reads, writes and is set to: for whoever observes it.
#pragma once

#include "compiler/stored/WeightConversion.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot::debug {

struct LaunchDetails {
  std::vector<std::int32_t> inputs; // buffers
  std::int32_t output = -1;         // the buffer that it writes; -1: none
  std::uint32_t firstColumn = 0;    // of it
  std::uint32_t columns = 0;        // 0: all of the buffer
  std::int32_t weight = -1;
  std::string settings; // "k = 64, n = 128, weight = layer.0.qkv (i8-g64)"
};

LaunchDetails detailsOf(const fbs::Plan &plan, const fbs::Launch &launch);

WeightEncoding encodingOf(const fbs::Weight &weight);
std::string encodingText(const WeightEncoding &encoding); // "i8-g64"

} // namespace ingot::debug
