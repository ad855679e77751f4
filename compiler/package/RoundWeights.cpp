#include "compiler/package/RoundWeights.h"

#include "compiler/package/HalfFloat.h"

#include <algorithm>
#include <cmath>

namespace ingot::package {
namespace {

constexpr std::uint16_t kHalfOne = 0x3c00;
constexpr std::uint16_t kHalfInfinity = 0x7c00;

bool isHalfZero(std::uint16_t half) { return (half & 0x7fff) == 0; }
bool isHalfInfinite(std::uint16_t half) {
  return (half & 0x7fff) == kHalfInfinity;
}

// round_half_even(x) for |x| < 2^22, as one addition.
float roundEven(float x) { return (x + 12582912.0f) - 12582912.0f; }

// Codes of values / scale + offset, clamped to [least, most].
void roundTo(std::span<const float> values, float scale, float least,
             float most, float offset, std::uint8_t *codes) {
  const float inverse = 1.0f / scale;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float scaled = std::min(std::max(values[i] * inverse, least), most);
    codes[i] = static_cast<std::uint8_t>(
        static_cast<std::int32_t>(roundEven(scaled) + offset));
  }
}

float squaredError(std::span<const float> values, float scale) {
  const float inverse = 1.0f / scale;
  // Eight partial sums: vectorises without leave to reorder.
  float sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const float x = values[i + lane];
      const float code =
          roundEven(std::min(std::max(x * inverse, -8.0f), 7.0f));
      const float error = x - code * scale;
      sums[lane] += error * error;
    }
  for (; i < values.size(); ++i) {
    const float error =
        values[i] -
        roundEven(std::min(std::max(values[i] * inverse, -8.0f), 7.0f)) * scale;
    sums[0] += error * error;
  }
  float sum = 0.0f;
  for (float part : sums)
    sum += part;
  return sum;
}

float largestMagnitude(std::span<const float> values) {
  float most = 0.0f;
  for (float value : values)
    most = std::max(most, std::fabs(value));
  return most;
}

RoundResult storeZero(std::size_t count, std::uint8_t offset, bool wasZero,
                      std::uint8_t *codes, std::uint16_t &scale) {
  std::fill_n(codes, count, offset);
  scale = kHalfOne;
  return wasZero ? RoundResult::Exactly : RoundResult::Underflowed;
}

} // namespace

RoundResult roundInt8(std::span<const float> values, std::uint8_t *codes,
                      std::uint16_t &scale) {
  const float most = largestMagnitude(values);
  scale = floatToHalf(most / 127.0f);
  if (isHalfInfinite(scale))
    return RoundResult::TooLarge;
  if (isHalfZero(scale))
    return storeZero(values.size(), 128, most == 0.0f, codes, scale);
  roundTo(values, halfToFloat(scale), -127.0f, 127.0f, 128.0f, codes);
  return RoundResult::Exactly;
}

RoundResult roundInt4(std::span<const float> values, std::uint8_t *codes,
                      std::uint16_t &scale) {
  const float most = largestMagnitude(values);
  float extreme = most;
  for (float value : values)
    if (std::fabs(value) == most) {
      extreme = value;
      break;
    }
  // What the extreme value is mapped to; -8 first, so that it wins ties.
  constexpr float targets[] = {-8.0f,  -7.75f, -7.5f,  -7.25f, -7.0f,
                               -8.25f, -8.5f,  -8.75f, 7.0f};
  float leastError = INFINITY;
  std::uint16_t best = 0;
  for (float target : targets) {
    const std::uint16_t candidate = floatToHalf(extreme / target);
    if (isHalfZero(candidate) || isHalfInfinite(candidate))
      continue;
    const float error = squaredError(values, halfToFloat(candidate));
    if (error < leastError || best == 0) {
      leastError = error;
      best = candidate;
    }
  }
  if (best == 0) {
    if (most > 1.0f)
      return RoundResult::TooLarge;
    return storeZero(values.size(), 8, most == 0.0f, codes, scale);
  }
  scale = best;
  roundTo(values, halfToFloat(scale), -8.0f, 7.0f, 8.0f, codes);
  return RoundResult::Exactly;
}

RoundResult roundInt4Minimum(std::span<const float> values, std::uint8_t *codes,
                             std::uint16_t &scale, std::uint16_t &minimum) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  minimum = floatToHalf(*least);
  if (isHalfInfinite(minimum))
    return RoundResult::TooLarge;
  const float base = halfToFloat(minimum);
  const float range = *most / 15.0f - base / 15.0f;
  scale = range > 0.0f ? floatToHalf(range) : 0;
  if (isHalfInfinite(scale))
    return RoundResult::TooLarge;
  if (isHalfZero(scale)) {
    // All alike: code 0 means the minimum itself.
    const bool exact = *least == *most && (base != 0.0f || *least == 0.0f);
    return storeZero(values.size(), 0, exact, codes, scale);
  }
  const float inverse = 1.0f / halfToFloat(scale);
  for (std::size_t i = 0; i < values.size(); ++i)
    codes[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(roundEven(
        std::min(std::max((values[i] - base) * inverse, 0.0f), 15.0f))));
  return RoundResult::Exactly;
}

} // namespace ingot::package
