// 1. Start from the scale that rounding chooses.
// 2. Try those that map the largest weight to a code beyond the last one, so that it is
//    clipped, or to one within.
// 3. For the codes of the best, the scale of least squares; twice, since codes change.
#include "compiler/calibrate/GroupScales.h"

#include "compiler/calibrate/VectorClones.h"
#include "compiler/package/HalfFloat.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ingot {
namespace {

constexpr int kLanes = 16;
constexpr std::int64_t kLongestGroup = 128; // a multiple of kLanes

// Adds to sums [3, kLanes] of i * (v - s c)^2, of i v c and of i c c, for v in a lane.
// Sums of lanes vectorise without leave to reorder.
INGOT_VECTOR_CLONES
void addFit(float *sums, const float *values, const float *importance,
            std::int64_t count, float scale, float inverse) {
  for (std::int64_t i = 0; i < count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      float value = values[i + lane], weight = importance[i + lane];
      float scaled = value * inverse;
      scaled = scaled < -8.0f ? -8.0f : scaled;
      scaled = scaled > 7.0f ? 7.0f : scaled;
      // round_half_even for what is far below 2^22.
      float code = (scaled + 12582912.0f) - 12582912.0f;
      float error = value - scale * code;
      sums[lane] = sums[lane] + weight * (error * error);
      sums[kLanes + lane] = sums[kLanes + lane] + weight * (value * code);
      sums[2 * kLanes + lane] =
          sums[2 * kLanes + lane] + weight * (code * code);
    }
}

// What one scale comes to: the error, and the products of least squares.
struct Fit {
  float error, product, size;
};

class Search {
public:
  Search(std::span<const float> values, std::span<const float> importance)
      : padded_(std::ssize(values) + kLanes - 1) {
    padded_ -= padded_ % kLanes;
    std::copy(values.begin(), values.end(), values_);
    std::copy(importance.begin(), importance.end(), importance_);
    // Zeros add nothing.
    std::fill(values_ + values.size(), values_ + padded_, 0.0f);
    std::fill(importance_ + values.size(), importance_ + padded_, 0.0f);
  }

  Fit at(std::uint16_t half) const {
    float scale = package::halfToFloat(half);
    float sums[3 * kLanes] = {};
    addFit(sums, values_, importance_, padded_, scale, 1.0f / scale);
    Fit fit{0, 0, 0};
    for (int lane = 0; lane < kLanes; ++lane) {
      fit.error += sums[lane];
      fit.product += sums[kLanes + lane];
      fit.size += sums[2 * kLanes + lane];
    }
    return fit;
  }

private:
  std::int64_t padded_;
  float values_[kLongestGroup], importance_[kLongestGroup];
};

} // namespace

Result<GroupScale> scaleByImportance(std::span<const float> values,
                                     std::span<const float> importance) {
  if (std::ssize(values) > kLongestGroup || importance.size() != values.size())
    return Status::internal("a group of " + std::to_string(values.size()) +
                            " columns with " +
                            std::to_string(importance.size()) +
                            " importances, expected one each, at most " +
                            std::to_string(kLongestGroup));
  INGOT_ASSIGN_OR_RETURN(GroupScale best,
                         scaleOfGroup(values, {4, kLongestGroup}));
  float extreme = 0;
  for (float value : values)
    if (std::fabs(value) > std::fabs(extreme))
      extreme = value;
  if (extreme == 0 || best.isUnderflowed)
    return best;
  Search search(values, importance);
  Fit fit = search.at(best.scale);
  auto take = [&](float scale) {
    std::uint16_t half = package::floatToHalf(scale);
    if ((half & 0x7fff) == 0 || (half & 0x7c00) == 0x7c00)
      return;
    Fit other = search.at(half);
    if (!(other.error < fit.error))
      return;
    fit = other;
    best.scale = half;
  };
  // What the largest weight is mapped to.
  for (int step = -6; step <= 22; ++step)
    take(-extreme / (8.0f + 0.25f * float(step)));
  for (int step = -4; step <= 22; ++step)
    take(extreme / (7.0f + 0.25f * float(step)));
  for (int again = 0; again < 2 && fit.size > 0; ++again)
    take(fit.product / fit.size);
  return best;
}

} // namespace ingot
