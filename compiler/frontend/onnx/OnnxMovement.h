// Where the elements of a value come from, through operators that only move them.
// Heads that were split, turned and cut out of a product of q, k and v are known by
// the columns that they came from, not by how an exporter wrote that.
#pragma once

#include "mlir/IR/Value.h"

#include <cstdint>
#include <vector>

namespace ingot {

struct Movement {
  mlir::Value source; // made by an operator that computes, or an argument
  // For each element of the value, row-major, its element of the source.
  std::vector<std::int64_t> from;
};

// Back through reshapes, transposes, splits, slices, gathers by constants and
// casts between floats. The value has a static shape.
Movement traceMovement(mlir::Value value);

} // namespace ingot
