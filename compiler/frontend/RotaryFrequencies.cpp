#include "compiler/frontend/RotaryFrequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ingot {
namespace {

// theta ** (2i / dim), rounded once to float: the power is taken in double.
float rotaryPower(double theta, std::int64_t twoI, std::int64_t dim) {
  float exponent = static_cast<float>(twoI) / static_cast<float>(dim);
  return static_cast<float>(
      std::pow(static_cast<double>(static_cast<float>(theta)),
               static_cast<double>(exponent)));
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

// Yarn: frequencies that turn often within the original length stay, those that
// turn rarely are divided by the factor, with a ramp between.
class YarnRamp {
public:
  explicit YarnRamp(const RotarySpec &rotary) {
    auto dimension = [&](double turns) {
      return double(rotary.dim) *
             std::log(double(rotary.originalContextLength) /
                      (turns * 2.0 * std::numbers::pi)) /
             (2.0 * std::log(rotary.theta));
    };
    low_ = dimension(rotary.betaFast);
    double high = dimension(rotary.betaSlow);
    if (rotary.truncates) {
      low_ = std::floor(low_);
      high = std::ceil(high);
    }
    low_ = std::max(low_, 0.0);
    high = std::min(high, double(rotary.dim - 1));
    width_ = high == low_ ? 0.001 : high - low_;
  }
  // 0: the frequency stays, 1: it is divided.
  float at(std::int64_t i) const {
    float ramp = (static_cast<float>(i) - static_cast<float>(low_)) /
                 static_cast<float>(width_);
    return std::min(std::max(ramp, 0.0f), 1.0f);
  }

private:
  double low_ = 0, width_ = 1;
};

float scaleYarn(float frequency, float power, float ramp, double factor) {
  float stays = 1.0f - ramp;
  float divided = 1.0f / (static_cast<float>(factor) * power);
  return divided * (1.0f - stays) + frequency * stays;
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
  bool isLong = rotary.kind == RotaryKind::LongRope;
  for (const std::vector<double> *list :
       {&rotary.shortFactors, &rotary.longFactors})
    if (isLong && static_cast<std::int64_t>(list->size()) != count)
      return Status::invalid(std::string("rotary ") +
                             (list == &rotary.longFactors ? "long" : "short") +
                             " factors: expected " + std::to_string(count) +
                             ", found " + std::to_string(list->size()));
  if (rotary.kind == RotaryKind::Yarn && rotary.theta <= 1.0)
    return Status::invalid("rotary base " + std::to_string(rotary.theta) +
                           ": yarn expects one above 1");
  YarnRamp ramp(rotary);
  std::size_t size = static_cast<std::size_t>(count);
  rotary.invFreq.resize(isLong ? 2 * size : size);
  for (std::int64_t i = 0; i < count; ++i) {
    float power = rotaryPower(rotary.theta, 2 * i, rotary.dim);
    float frequency = 1.0f / power;
    switch (rotary.kind) {
    case RotaryKind::Default:
    case RotaryKind::Dynamic: // scaled where a sequence is longer
      break;
    case RotaryKind::Yarn:
      frequency = scaleYarn(frequency, power, ramp.at(i), rotary.factor);
      break;
    case RotaryKind::LongRope: {
      auto divided = [&](const std::vector<double> &list) {
        return 1.0f /
               (static_cast<float>(list[static_cast<std::size_t>(i)]) * power);
      };
      frequency = divided(rotary.shortFactors);
      float longer = divided(rotary.longFactors);
      if (!std::isfinite(longer) || longer < 0.0f)
        return Status::invalid("rotary frequency " + std::to_string(i) +
                               " of the long list is not a number of 0 or "
                               "more");
      rotary.invFreq[size + static_cast<std::size_t>(i)] = longer;
      break;
    }
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
