// With D = W' - W:  (H + penalty) D' = (cross - W H)', by Cholesky, all rows of W
// at once: vectors run along them, so no sum crosses lanes.
#include "compiler/calibrate/LeastSquares.h"

#include "compiler/calibrate/VectorClones.h"

#include <cmath>
#include <string>

namespace ingot {
namespace {

INGOT_VECTOR_CLONES
void subtract(double *out, const double *row, double factor,
              std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    out[j] = out[j] - factor * row[j];
}

INGOT_VECTOR_CLONES
void addScaled(float *out, const float *row, float factor, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    out[j] = out[j] + factor * row[j];
}

// A = U'U with U upper, in place: row k of U, then its share off the later rows.
bool factorUpper(std::vector<double> &a, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) {
    double *row = &a[std::size_t(k * n)];
    if (!(row[k] > 0) || !std::isfinite(row[k]))
      return false;
    double root = std::sqrt(row[k]);
    for (std::int64_t j = k; j < n; ++j)
      row[j] /= root;
    for (std::int64_t i = k + 1; i < n; ++i)
      subtract(&a[std::size_t(i * n + i)], row + i, row[i], n - i);
  }
  return true;
}

// Solves U'U x = b in place for b [n, columns].
void solveUpper(const std::vector<double> &u, std::int64_t n,
                std::vector<double> &b, std::int64_t columns) {
  auto rowOf = [&](std::int64_t i) { return &b[std::size_t(i * columns)]; };
  auto divide = [&](std::int64_t i) {
    for (std::int64_t c = 0; c < columns; ++c)
      rowOf(i)[c] /= u[std::size_t(i * n + i)];
  };
  for (std::int64_t i = 0; i < n; ++i) {
    divide(i);
    for (std::int64_t k = i + 1; k < n; ++k)
      subtract(rowOf(k), rowOf(i), u[std::size_t(i * n + k)], columns);
  }
  for (std::int64_t i = n; i-- > 0;) {
    for (std::int64_t k = i + 1; k < n; ++k)
      subtract(rowOf(i), rowOf(k), u[std::size_t(i * n + k)], columns);
    divide(i);
  }
}

} // namespace

std::vector<float> multiply(std::span<const float> weights,
                            std::span<const float> moments, std::int64_t n) {
  std::vector<float> product(weights.size(), 0.0f);
  for (std::int64_t r = 0; r < std::ssize(weights) / n; ++r)
    for (std::int64_t k = 0; k < n; ++k)
      addScaled(&product[std::size_t(r * n)], moments.data() + k * n,
                weights[std::size_t(r * n + k)], n);
  return product;
}

Result<std::vector<float>> fitWeights(std::span<const float> moments,
                                      std::span<const float> cross,
                                      std::span<const float> weights,
                                      std::int64_t rows, std::int64_t columns,
                                      double strength) {
  std::int64_t n = columns;
  for (auto [what, matrix] : {std::pair("weight", weights),
                              std::pair("sum of outputs by inputs", cross)})
    for (std::size_t i = 0; i < matrix.size(); ++i)
      if (!std::isfinite(matrix[i]))
        return Status::invalid(
            "row " + std::to_string(std::int64_t(i) / n) + " column " +
            std::to_string(std::int64_t(i) % n) + ": expected a finite " +
            what + ", found " + (std::isnan(matrix[i]) ? "NaN" : "infinity"));
  double trace = 0;
  for (std::int64_t i = 0; i < n; ++i)
    trace += double(moments[std::size_t(i * n + i)]);
  double penalty = trace > 0 ? strength * trace / double(n) : 1.0;
  std::vector<double> upper(moments.begin(), moments.end());
  for (std::int64_t i = 0; i < n; ++i)
    upper[std::size_t(i * n + i)] += penalty;
  if (!std::isfinite(trace) || !factorUpper(upper, n))
    return Status::invalid("weights of " + std::to_string(n) +
                           " columns cannot be fitted: the inputs' moments are "
                           "not finite, or too few are independent");
  std::vector<float> image = multiply(weights, moments, n);
  std::vector<double> missing(std::size_t(n * rows));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < n; ++k)
      missing[std::size_t(k * rows + r)] =
          double(cross[std::size_t(r * n + k)]) -
          double(image[std::size_t(r * n + k)]);
  solveUpper(upper, n, missing, rows);
  std::vector<float> fitted(weights.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < n; ++k)
      fitted[std::size_t(r * n + k)] =
          float(double(weights[std::size_t(r * n + k)]) +
                missing[std::size_t(k * rows + r)]);
  return fitted;
}

std::vector<float> selectSquare(std::span<const float> matrix,
                                std::int64_t size,
                                std::span<const std::int64_t> kept) {
  std::vector<float> part;
  for (std::int64_t i : kept)
    for (std::int64_t j : kept)
      part.push_back(matrix[std::size_t(i * size + j)]);
  return part;
}

std::vector<float> selectColumns(std::span<const float> matrix,
                                 std::int64_t columns,
                                 std::span<const std::int64_t> kept) {
  std::vector<float> part;
  for (std::int64_t r = 0; r < std::ssize(matrix) / columns; ++r)
    for (std::int64_t k : kept)
      part.push_back(matrix[std::size_t(r * columns + k)]);
  return part;
}

std::vector<float> selectRows(std::span<const float> matrix,
                              std::int64_t columns,
                              std::span<const std::int64_t> kept) {
  std::vector<float> part;
  for (std::int64_t r : kept)
    part.insert(part.end(), matrix.begin() + r * columns,
                matrix.begin() + (r + 1) * columns);
  return part;
}

} // namespace ingot
