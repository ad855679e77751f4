#include "compiler/frontend/RotaryFrequencies.h"

#include <cmath>
#include <numbers>

namespace ingot {
namespace {

// theta ** (2i / dim), rounded once to float: the power is taken in double.
float inverseFrequency(double theta, std::int64_t twoI, std::int64_t dim) {
  float exponent = static_cast<float>(twoI) / static_cast<float>(dim);
  float power = static_cast<float>(
      std::pow(static_cast<double>(static_cast<float>(theta)),
               static_cast<double>(exponent)));
  return 1.0f / power;
}

// The three bands of Llama 3: short wavelengths stay, long ones are divided by
// the factor, and those between are blended.
float scaleLlama3(float frequency, const RotarySpec &rotary) {
  double context = static_cast<double>(rotary.originalContextLength);
  float factor = static_cast<float>(rotary.factor);
  float low = static_cast<float>(rotary.lowFreqFactor);
  float longest = static_cast<float>(context / rotary.lowFreqFactor);
  float shortest = static_cast<float>(context / rotary.highFreqFactor);
  // A number divided by a tensor is its reciprocal times the number there.
  float wavelength =
      (1.0f / frequency) * static_cast<float>(2.0 * std::numbers::pi);
  if (wavelength < shortest)
    return frequency;
  float divided = frequency / factor;
  if (wavelength > longest)
    return divided;
  float smooth =
      ((1.0f / wavelength) * static_cast<float>(context) - low) /
      static_cast<float>(rotary.highFreqFactor - rotary.lowFreqFactor);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

} // namespace

Status computeInverseFrequencies(RotarySpec &rotary,
                                 std::span<const float> factors) {
  std::int64_t count = rotary.dim / 2;
  if (rotary.kind == RotaryKind::FrequencyFactors &&
      static_cast<std::int64_t>(factors.size()) != count)
    return Status::invalid("rotary frequency factors: expected " +
                           std::to_string(count) + ", found " +
                           std::to_string(factors.size()));
  rotary.invFreq.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    float frequency = inverseFrequency(rotary.theta, 2 * i, rotary.dim);
    switch (rotary.kind) {
    case RotaryKind::Default:
      break;
    case RotaryKind::Linear:
      frequency /= static_cast<float>(rotary.factor);
      break;
    case RotaryKind::Llama3:
      frequency = scaleLlama3(frequency, rotary);
      break;
    case RotaryKind::FrequencyFactors:
      frequency /= factors[static_cast<std::size_t>(i)];
      break;
    }
    if (!std::isfinite(frequency) || frequency < 0.0f)
      return Status::invalid("rotary frequency " + std::to_string(i) +
                             " is not a number of 0 or more");
    rotary.invFreq[static_cast<std::size_t>(i)] = frequency;
  }
  return Status::ok();
}

} // namespace ingot
