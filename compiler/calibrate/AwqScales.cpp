#include "compiler/calibrate/AwqScales.h"

#include "compiler/package/HalfFloat.h"
#include "runtime/support/RunOnThreads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>

namespace ingot {
namespace {

// Powers of what is nearly never met would be noise.
constexpr double kLeastMagnitude = 1e-4;

// The output's error for some rows of a weight whose columns were scaled by
// `scales` before rounding.
Result<double> errorOf(const AwqWeight &weight, std::span<const float> moments,
                       std::span<const float> scales, std::int64_t step) {
  std::int64_t columns = std::ssize(scales);
  std::vector<float> scaled(static_cast<std::size_t>(columns));
  std::vector<float> difference(static_cast<std::size_t>(columns));
  double sum = 0;
  for (std::int64_t row = 0; row < weight.rows; row += step) {
    const float *values = weight.values.data() + row * columns;
    for (std::int64_t k = 0; k < columns; ++k)
      scaled[std::size_t(k)] = values[k] * scales[std::size_t(k)];
    INGOT_ASSIGN_OR_RETURN(GroupCodes codes,
                           roundToNearest(scaled, 1, columns, weight.shape));
    codes.decode(0, difference);
    for (std::int64_t k = 0; k < columns; ++k)
      difference[std::size_t(k)] =
          values[k] - difference[std::size_t(k)] / scales[std::size_t(k)];
    sum += rowError(difference, moments);
  }
  return sum;
}

// The shares of a group's range that are tried.
constexpr double kClipStep = 0.04;
constexpr int kClipSteps = 14;

// The best scale of one group, and its codes.
class GroupSearch {
public:
  GroupSearch(const CodeShape &shape)
      : shape_(shape), difference_(std::size_t(shape.group)),
        codes_(std::size_t(shape.group)) {}

  // `block` [size, size] is the part of the moments.
  Result<GroupScale> run(std::span<const float> values,
                         std::span<const float> block, std::uint8_t *codes) {
    INGOT_ASSIGN_OR_RETURN(GroupScale best, scaleOfGroup(values, shape_));
    double least = errorAt(values, block, best.scale);
    std::copy_n(codes_.begin(), values.size(), codes);
    float extreme = 0;
    for (float value : values)
      if (std::fabs(value) > std::fabs(extreme))
        extreme = value;
    for (int step = 0; step < kClipSteps; ++step)
      for (float target : shape_.bits == 8
                              ? std::initializer_list<float>{127.0f}
                              : std::initializer_list<float>{-8.0f, 7.0f}) {
        float kept = float(1.0 - kClipStep * step) *
                     (shape_.bits == 8 ? std::fabs(extreme) : extreme);
        std::uint16_t scale = package::floatToHalf(kept / target);
        if ((scale & 0x7fff) == 0 || (scale & 0x7c00) == 0x7c00)
          continue;
        double error = errorAt(values, block, scale);
        if (error >= least)
          continue;
        least = error;
        best.scale = scale;
        std::copy_n(codes_.begin(), values.size(), codes);
      }
    return best;
  }

private:
  double errorAt(std::span<const float> values, std::span<const float> block,
                 std::uint16_t half) {
    float scale = package::halfToFloat(half), inverse = 1.0f / scale;
    for (std::size_t i = 0; i < values.size(); ++i) {
      codes_[i] = nearestCode(values[i], inverse, shape_);
      difference_[i] =
          values[i] - scale * float(std::int64_t(codes_[i]) - shape_.offset());
    }
    return rowError(std::span(difference_).first(values.size()), block);
  }

  CodeShape shape_;
  std::vector<float> difference_;
  std::vector<std::uint8_t> codes_;
};

} // namespace

Result<GroupCodes> roundToInputs(std::span<const float> weights,
                                 std::int64_t rows, std::int64_t columns,
                                 const CodeShape &shape,
                                 std::span<const float> moments,
                                 unsigned threads) {
  INGOT_RETURN_IF_ERROR(checkFiniteWeights(weights, columns));
  GroupCodes result;
  result.resize(rows, columns, shape);
  std::int64_t groups = shape.groups(columns);
  std::vector<std::vector<float>> blocks;
  for (std::int64_t g = 0; g < groups; ++g) {
    std::int64_t begin = g * shape.group;
    std::int64_t end = std::min(begin + shape.group, columns);
    std::vector<float> &block = blocks.emplace_back();
    for (std::int64_t i = begin; i < end; ++i)
      block.insert(block.end(), moments.begin() + i * columns + begin,
                   moments.begin() + i * columns + end);
  }
  std::atomic<std::int64_t> next{0}, underflowed{0};
  std::mutex mutex;
  Status failure;
  std::int64_t failedRow = rows;
  runOnThreads(threads, [&] {
    GroupSearch search(shape);
    for (std::int64_t row = next.fetch_add(1); row < rows;
         row = next.fetch_add(1))
      for (std::int64_t g = 0; g < groups; ++g) {
        std::int64_t begin = row * columns + g * shape.group;
        std::int64_t size = std::min(shape.group, columns - g * shape.group);
        auto scale = search.run(
            weights.subspan(std::size_t(begin), std::size_t(size)),
            blocks[std::size_t(g)], &result.codes[std::size_t(begin)]);
        if (!scale) {
          std::lock_guard<std::mutex> lock(mutex);
          if (row < failedRow) {
            failedRow = row;
            failure = scale.status().withContext(
                "row " + std::to_string(row) + " column " +
                std::to_string(g * shape.group));
          }
          return;
        }
        result.scales[std::size_t(row * groups + g)] = scale->scale;
        underflowed += scale->isUnderflowed;
      }
  });
  if (!failure)
    return failure;
  result.underflowedGroups = underflowed;
  return result;
}

std::vector<float> awqScales(std::span<const float> meanMagnitude, double power,
                             std::span<const std::int64_t> ties) {
  std::vector<double> sizes;
  for (float size : meanMagnitude)
    sizes.push_back(std::max(double(size), kLeastMagnitude));
  if (!ties.empty()) {
    std::map<std::int64_t, std::pair<double, std::int64_t>> shared;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      shared[ties[k]].first += sizes[k];
      ++shared[ties[k]].second;
    }
    for (std::size_t k = 0; k < sizes.size(); ++k)
      sizes[k] = shared[ties[k]].first / double(shared[ties[k]].second);
  }
  double least = INFINITY, most = 0;
  for (double &size : sizes) {
    size = std::pow(size, power);
    least = std::min(least, size);
    most = std::max(most, size);
  }
  std::vector<float> scales;
  for (double size : sizes)
    scales.push_back(float(size / std::sqrt(least * most)));
  return scales;
}

Result<AwqChoice> searchAwqScales(std::span<const AwqWeight> weights,
                                  std::span<const float> moments,
                                  std::span<const float> meanMagnitude,
                                  const AwqOptions &options) {
  for (const AwqWeight &weight : weights)
    INGOT_RETURN_IF_ERROR(
        checkFiniteWeights(weight.values, std::ssize(meanMagnitude)));
  std::vector<double> errors(std::size_t(options.steps), 0.0);
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  Status failure;
  runOnThreads(options.threads, [&] {
    for (std::int64_t s = next.fetch_add(1); s < options.steps;
         s = next.fetch_add(1)) {
      std::vector<float> scales = awqScales(
          meanMagnitude, double(s) / double(options.steps), options.ties);
      for (const AwqWeight &weight : weights) {
        std::int64_t step =
            std::max<std::int64_t>(1, weight.rows / options.searchRows);
        auto error = errorOf(weight, moments, scales, step);
        if (!error) {
          std::lock_guard<std::mutex> lock(mutex);
          failure = error.status();
          return;
        }
        // Of all rows, so that a weight counts by its size.
        errors[std::size_t(s)] += *error * double(step);
      }
    }
  });
  if (!failure)
    return failure;
  std::size_t best = 0;
  for (std::size_t s = 1; s < errors.size(); ++s)
    if (errors[s] < errors[best])
      best = s;
  AwqChoice choice;
  choice.power = double(best) / double(options.steps);
  choice.scales = awqScales(meanMagnitude, choice.power, options.ties);
  choice.errorWithout = errors[0];
  choice.error = errors[best];
  return choice;
}

} // namespace ingot
