#include "compiler/calibrate/RidgeMap.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ingot {
namespace {

// Factors the lower half of a positive matrix in place; false where it is not.
bool factor(std::vector<double> &a, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    double *row = a.data() + i * n;
    for (std::int64_t j = 0; j <= i; ++j) {
      const double *other = a.data() + j * n;
      double sum = row[j];
      for (std::int64_t k = 0; k < j; ++k)
        sum -= row[k] * other[k];
      if (j < i)
        row[j] = sum / other[j];
      else if (!(sum > 0) || !std::isfinite(sum))
        return false;
      else
        row[i] = std::sqrt(sum);
    }
  }
  return true;
}

// Solves with the factor, in place, for the columns of b [n, columns] at once.
void substitute(const std::vector<double> &a, std::int64_t n,
                std::vector<double> &b, std::int64_t columns) {
  auto subtract = [&](std::int64_t to, std::int64_t from, double factor) {
    for (std::int64_t c = 0; c < columns; ++c)
      b[to * columns + c] -= factor * b[from * columns + c];
  };
  auto divide = [&](std::int64_t row) {
    for (std::int64_t c = 0; c < columns; ++c)
      b[row * columns + c] /= a[row * n + row];
  };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < i; ++k)
      subtract(i, k, a[i * n + k]);
    divide(i);
  }
  for (std::int64_t i = n; i-- > 0;) {
    for (std::int64_t k = i + 1; k < n; ++k)
      subtract(i, k, a[k * n + i]);
    divide(i);
  }
}

} // namespace

RidgeSums::RidgeSums(std::int64_t width)
    : width_(width), gram_(std::size_t((width + 1) * (width + 1)), 0.0),
      cross_(std::size_t((width + 1) * width), 0.0) {}

void RidgeSums::add(std::span<const float> inputs,
                    std::span<const float> targets) {
  std::int64_t rows = std::ssize(inputs) / width_, n = width_ + 1;
  std::vector<float> x(std::size_t(n), 1.0f);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(inputs.begin() + r * width_, width_, x.begin());
    const float *y = targets.data() + r * width_;
    for (std::int64_t i = 0; i < n; ++i) {
      double factor = x[std::size_t(i)];
      double *gram = gram_.data() + i * n;
      for (std::int64_t j = 0; j <= i; ++j)
        gram[j] += factor * x[std::size_t(j)];
      double *cross = cross_.data() + i * width_;
      for (std::int64_t j = 0; j < width_; ++j)
        cross[j] += factor * y[j];
    }
    for (std::int64_t j = 0; j < width_; ++j)
      squares_ += double(y[j]) * y[j];
  }
  numRows_ += rows;
}

Result<AffineMap> RidgeSums::solve(double strength) const {
  if (numRows_ == 0)
    return Status::invalid("a map cannot be fitted to no rows");
  std::int64_t n = width_ + 1;
  double trace = 0;
  for (std::int64_t i = 0; i < width_; ++i)
    trace += gram_[std::size_t(i * n + i)];
  double penalty = strength * trace / double(width_);
  std::vector<double> gram = gram_, solution = cross_;
  for (std::int64_t i = 0; i < width_; ++i)
    gram[std::size_t(i * n + i)] += penalty;
  if (!std::isfinite(trace) || !factor(gram, n))
    return Status::invalid("a map of " + std::to_string(width_) +
                           " columns cannot be fitted to " +
                           std::to_string(numRows_) +
                           " rows: their sums are not finite, or too few are "
                           "independent for a penalty of " +
                           std::to_string(strength));
  substitute(gram, n, solution, width_);
  AffineMap map;
  map.width = width_;
  map.matrix.resize(std::size_t(width_ * width_));
  for (std::int64_t i = 0; i < width_; ++i)
    for (std::int64_t o = 0; o < width_; ++o)
      map.matrix[std::size_t(o * width_ + i)] =
          float(solution[std::size_t(i * width_ + o)]);
  for (std::int64_t o = 0; o < width_; ++o)
    map.bias.push_back(float(solution[std::size_t(width_ * width_ + o)]));
  return map;
}

// sum |y - W'x|^2 = sum |y|^2 - 2 <W, cross> + <W, gram W>.
double RidgeSums::unexplained(const AffineMap &map) const {
  std::int64_t n = width_ + 1;
  double error = squares_;
  std::vector<double> column(std::size_t(n), 0.0), image(std::size_t(n), 0.0);
  for (std::int64_t o = 0; o < width_; ++o) {
    for (std::int64_t i = 0; i < width_; ++i)
      column[std::size_t(i)] = map.matrix[std::size_t(o * width_ + i)];
    column[std::size_t(width_)] = map.bias[std::size_t(o)];
    std::fill(image.begin(), image.end(), 0.0);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) {
        double entry = gram_[std::size_t(i * n + j)];
        image[std::size_t(i)] += entry * column[std::size_t(j)];
        if (i != j)
          image[std::size_t(j)] += entry * column[std::size_t(i)];
      }
    for (std::int64_t i = 0; i < n; ++i)
      error +=
          column[std::size_t(i)] *
          (image[std::size_t(i)] - 2 * cross_[std::size_t(i * width_ + o)]);
  }
  return squares_ > 0 ? std::max(error, 0.0) / squares_ : 0.0;
}

} // namespace ingot
