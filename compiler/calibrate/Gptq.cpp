// 1. Columns by the size of their inputs, the largest first; H = moments + damping in
//    that order; H = L'L with L lower, from the last column on;
// 2. U = (L^-1)', so that H^-1 = U'U;
// 3. sixteen rows at a time: the scales of all groups from the weights as they are, those
//    of 4 bits by what an error of a column costs when the later ones have made it
//    good, 1 / U[q, q]^2 (of 8 bits nothing is gained by that);
//    then column by column in that order: the nearest code; the error, divided by
//    U[q, q], times U[q, j] is taken off each later column j, of the next ones at
//    once and of the rest for a block of columns together, in the same order.
#include "compiler/calibrate/Gptq.h"

#include "compiler/calibrate/GroupScales.h"
#include "compiler/calibrate/VectorClones.h"
#include "compiler/package/HalfFloat.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <string>

namespace ingot {
namespace {

constexpr std::int64_t kLanes = 16;
// Columns whose errors the later ones get together.
constexpr std::int64_t kBlock = 64;

// out[j] -= factor * row[j]
INGOT_VECTOR_CLONES
void subtract(double *out, const double *row, double factor,
              std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    out[j] = out[j] - factor * row[j];
}

// Row j of L into row j of `a`, the lower half of H; false where H is not
// positive.
bool factorFromTheEnd(std::vector<double> &a, std::int64_t n) {
  for (std::int64_t j = n; j-- > 0;) {
    double *row = &a[std::size_t(j * n)];
    if (!(row[j] > 0) || !std::isfinite(row[j]))
      return false;
    double root = std::sqrt(row[j]);
    row[j] = root;
    for (std::int64_t i = 0; i < j; ++i)
      row[i] /= root;
    for (std::int64_t i = 0; i < j; ++i)
      subtract(&a[std::size_t(i * n)], row, row[i], i + 1);
  }
  return true;
}

// L^-1 of lower L, row by row.
std::vector<double> invertLower(const std::vector<double> &lower,
                                std::int64_t n) {
  std::vector<double> inverse(lower.size(), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    double *row = &inverse[std::size_t(i * n)];
    row[i] = 1.0;
    for (std::int64_t k = 0; k < i; ++k)
      subtract(row, &inverse[std::size_t(k * n)], lower[std::size_t(i * n + k)],
               k + 1);
    double diagonal = lower[std::size_t(i * n + i)];
    for (std::int64_t j = 0; j <= i; ++j)
      row[j] /= diagonal;
  }
  return inverse;
}

// tile[j][lane] -= factors[j] * errors[lane]
INGOT_VECTOR_CLONES
void propagate(float *tile, const float *factors, const float *errors,
               std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      tile[j * kLanes + lane] =
          tile[j * kLanes + lane] - factors[j] * errors[lane];
}

// The same for `block` columns one after another, factors [block, stride] and
// errors [block, kLanes]; a tile's column stays in registers meanwhile.
INGOT_VECTOR_CLONES
void propagateBlock(float *tile, const float *factors, std::int64_t stride,
                    const float *errors, std::int64_t block,
                    std::int64_t count) {
  constexpr std::int64_t kColumns = 4;
  std::int64_t j = 0;
  for (; j + kColumns <= count; j += kColumns) {
    float sums[kColumns][kLanes];
    for (std::int64_t c = 0; c < kColumns; ++c)
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        sums[c][lane] = tile[(j + c) * kLanes + lane];
    for (std::int64_t q = 0; q < block; ++q)
      for (std::int64_t c = 0; c < kColumns; ++c)
        for (std::int64_t lane = 0; lane < kLanes; ++lane)
          sums[c][lane] = sums[c][lane] - factors[q * stride + j + c] *
                                              errors[q * kLanes + lane];
    for (std::int64_t c = 0; c < kColumns; ++c)
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        tile[(j + c) * kLanes + lane] = sums[c][lane];
  }
  for (; j < count; ++j)
    for (std::int64_t q = 0; q < block; ++q)
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        tile[j * kLanes + lane] =
            tile[j * kLanes + lane] -
            factors[q * stride + j] * errors[q * kLanes + lane];
}

} // namespace

Result<GptqFactor> GptqFactor::create(std::span<const float> moments,
                                      std::int64_t columns, double damping) {
  std::int64_t n = columns;
  double trace = 0;
  for (std::int64_t i = 0; i < n; ++i)
    trace += double(moments[std::size_t(i * n + i)]);
  // Inputs that are all zero say nothing: every column stands alone.
  double added = trace > 0 ? damping * trace / double(n) : 1.0;
  GptqFactor factor;
  auto cannot = [&] {
    return Status::invalid("the inputs' moments [" + std::to_string(n) + ", " +
                           std::to_string(n) +
                           "] are not finite or cannot be factored with a "
                           "damping of " +
                           std::to_string(damping));
  };
  if (!std::isfinite(trace))
    return cannot();
  factor.order_.resize(std::size_t(n));
  std::iota(factor.order_.begin(), factor.order_.end(), 0);
  std::sort(factor.order_.begin(), factor.order_.end(),
            [&](std::int64_t a, std::int64_t b) {
              float first = moments[std::size_t(a * n + a)];
              float second = moments[std::size_t(b * n + b)];
              return first != second ? first > second : a < b;
            });
  std::vector<double> lower(moments.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      lower[std::size_t(i * n + j)] = double(moments[std::size_t(
          factor.order_[std::size_t(i)] * n + factor.order_[std::size_t(j)])]);
  for (std::int64_t i = 0; i < n; ++i)
    lower[std::size_t(i * n + i)] += added;
  if (!factorFromTheEnd(lower, n))
    return cannot();
  std::vector<double> inverse = invertLower(lower, n);
  factor.columns_ = n;
  factor.factor_.resize(std::size_t(n * n), 0.0f);
  for (std::int64_t q = 0; q < n; ++q)
    for (std::int64_t j = q; j < n; ++j)
      factor.factor_[std::size_t(q * n + j)] =
          float(inverse[std::size_t(j * n + q)]);
  factor.importance_.resize(std::size_t(n));
  for (std::int64_t q = 0; q < n; ++q) {
    double own = inverse[std::size_t(q * n + q)];
    factor.importance_[std::size_t(factor.order_[std::size_t(q)])] =
        float(1.0 / (own * own));
  }
  return factor;
}

Result<GroupCodes> GptqFactor::apply(std::span<const float> weights,
                                     std::int64_t rows, const CodeShape &shape,
                                     unsigned threads) const {
  std::int64_t columns = columns_;
  if (std::ssize(weights) != rows * columns)
    return Status::internal("gptq: " + std::to_string(weights.size()) +
                            " weights, expected " + std::to_string(rows) +
                            " x " + std::to_string(columns));
  INGOT_RETURN_IF_ERROR(checkFiniteWeights(weights, columns));
  GroupCodes result;
  result.resize(rows, columns, shape);
  std::int64_t groups = shape.groups(columns);
  std::atomic<std::int64_t> next{0}, underflowed{0};
  std::mutex mutex;
  Status failure;
  std::int64_t failedRow = rows;
  auto work = [&] {
    std::vector<float> tile(static_cast<std::size_t>(columns * kLanes), 0.0f);
    std::vector<float> scales(static_cast<std::size_t>(groups * kLanes), 1.0f);
    for (std::int64_t first = next.fetch_add(kLanes); first < rows;
         first = next.fetch_add(kLanes)) {
      std::int64_t count = std::min(kLanes, rows - first);
      for (std::int64_t lane = 0; lane < count; ++lane) {
        std::int64_t row = first + lane;
        for (std::int64_t g = 0; g < groups; ++g) {
          std::int64_t q = g * shape.group;
          auto size = std::size_t(std::min(shape.group, columns - q));
          auto group = weights.subspan(std::size_t(row * columns + q), size);
          auto scale =
              shape.bits == 4
                  ? scaleByImportance(
                        group,
                        std::span(importance_).subspan(std::size_t(q), size))
                  : scaleOfGroup(group, shape);
          if (!scale) {
            std::lock_guard<std::mutex> lock(mutex);
            if (row < failedRow) {
              failedRow = row;
              failure =
                  scale.status().withContext("row " + std::to_string(row) +
                                             " column " + std::to_string(q));
            }
            return;
          }
          result.scales[std::size_t(row * groups + g)] = scale->scale;
          scales[std::size_t(g * kLanes + lane)] =
              package::halfToFloat(scale->scale);
          underflowed += scale->isUnderflowed;
        }
      }
      for (std::int64_t q = 0; q < columns; ++q)
        for (std::int64_t lane = 0; lane < kLanes; ++lane)
          tile[std::size_t(q * kLanes + lane)] =
              lane < count ? weights[std::size_t((first + lane) * columns +
                                                 order_[std::size_t(q)])]
                           : 0.0f;
      float errors[kBlock * kLanes] = {};
      for (std::int64_t q = 0; q < columns; ++q) {
        std::int64_t begin = q / kBlock * kBlock;
        std::int64_t end = std::min(begin + kBlock, columns);
        float *own = errors + (q - begin) * kLanes;
        std::int64_t column = order_[std::size_t(q)];
        const float *scale =
            &scales[std::size_t(column / shape.group * kLanes)];
        for (std::int64_t lane = 0; lane < count; ++lane) {
          float value = tile[std::size_t(q * kLanes + lane)];
          std::uint8_t code = nearestCode(value, 1.0f / scale[lane], shape);
          result.codes[std::size_t((first + lane) * columns + column)] = code;
          own[lane] = (value - scale[lane] *
                                   float(std::int64_t(code) - shape.offset())) /
                      factor_[std::size_t(q * columns + q)];
        }
        propagate(tile.data() + (q + 1) * kLanes,
                  factor_.data() + q * columns + q + 1, own, end - q - 1);
        if (q + 1 == end)
          propagateBlock(tile.data() + end * kLanes,
                         factor_.data() + begin * columns + end, columns,
                         errors, end - begin, columns - end);
      }
    }
  };
  runOnThreads(threads, work);
  if (!failure)
    return failure;
  result.underflowedGroups = underflowed;
  return result;
}

Result<GroupCodes> gptq(std::span<const float> weights, std::int64_t rows,
                        std::int64_t columns, std::span<const float> moments,
                        const CodeShape &shape, const GptqOptions &options) {
  INGOT_ASSIGN_OR_RETURN(GptqFactor factor,
                         GptqFactor::create(moments, columns, options.damping));
  return factor.apply(weights, rows, shape, options.threads);
}

} // namespace ingot
