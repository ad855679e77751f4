// What is left of a linear operator's inputs makes up for what is gone: the
// weights that come nearest to its outputs, in closed form from sums alone.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

// The W' that minimises the mean of |y - W' x|^2 + penalty * |W' - W|^2, with
//   moments [columns, columns]  the mean of x x'
//   cross   [rows, columns]     the mean of y x'
//   weights [rows, columns]     W, where the penalty pulls to
// and the penalty `strength` times the mean of the moments' diagonal. Sums and
// solution are float64. Fails where moments, cross or weights are not finite.
Result<std::vector<float>> fitWeights(std::span<const float> moments,
                                      std::span<const float> cross,
                                      std::span<const float> weights,
                                      std::int64_t rows, std::int64_t columns,
                                      double strength = 1e-3);

// Rows and columns `kept` of a square matrix [size, size].
std::vector<float> selectSquare(std::span<const float> matrix,
                                std::int64_t size,
                                std::span<const std::int64_t> kept);
// Columns `kept` of [rows, columns].
std::vector<float> selectColumns(std::span<const float> matrix,
                                 std::int64_t columns,
                                 std::span<const std::int64_t> kept);
// Rows `kept` of [rows, columns].
std::vector<float> selectRows(std::span<const float> matrix,
                              std::int64_t columns,
                              std::span<const std::int64_t> kept);

// The product weights [rows, n] times moments [n, n]: the mean of y x' of an
// operator with these weights.
std::vector<float> multiply(std::span<const float> weights,
                            std::span<const float> moments, std::int64_t n);

} // namespace ingot
