// From tables of cosines and sines back to the rotary embedding they came from.
#pragma once

#include "compiler/frontend/ModelSpec.h"

#include <vector>

namespace ingot {

// Rows are those of `positions`, with `half` numbers each.
struct RotaryTables {
  std::vector<double> cosines, sines;
  std::vector<std::int64_t> positions;
  std::int64_t half = 0;
  // What one number may be off by: the rounding of the type that they were
  // stored in.
  double rounding = 0;
};

// Sets theta, inverse frequencies and attention factor of `rotary` (its dim is
// set), such that every entry of the tables is theirs. Plain frequencies of a
// short decimal base are computed from that base; others are taken from the
// tables. Fails where no frequencies give the tables.
Status recoverRotary(const RotaryTables &tables, RotarySpec &rotary);

// Whether the tables are those of a rotary embedding that is known already.
bool rotaryFits(const RotaryTables &tables, const RotarySpec &rotary);

} // namespace ingot
