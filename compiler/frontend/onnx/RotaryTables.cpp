// 1. The attention factor: the length of (cosine, sine). 2. Each frequency from
// two neighbouring rows, refined by rows whose angle is known to less than a
// turn. 3. A base with few digits whose own frequencies, all divided by a number of
// few digits where the first is not 1, give the tables.
#include "compiler/frontend/onnx/RotaryTables.h"

#include "compiler/frontend/RotaryFrequencies.h"

#include <charconv>
#include <cmath>
#include <numbers>

namespace ingot {
namespace {

bool fits(const RotaryTables &tables, const std::vector<float> &frequencies,
          double factor) {
  for (std::size_t row = 0; row < tables.positions.size(); ++row)
    for (std::int64_t i = 0; i < tables.half; ++i) {
      const double position = double(tables.positions[row]);
      const double angle = position * double(frequencies[i]);
      const std::size_t at = row * tables.half + i;
      // The product is rounded to float32 where the tables are made.
      const double allowed = 1.5 * tables.rounding * std::max(factor, 1.0) +
                             1e-6 + std::abs(angle) * 0x1p-22;
      if (std::abs(tables.cosines[at] - factor * std::cos(angle)) > allowed ||
          std::abs(tables.sines[at] - factor * std::sin(angle)) > allowed)
        return false;
    }
  return true;
}

// `value` to so many significant decimal digits: the double nearest to them.
double rounded(double value, int digits) {
  char text[32];
  auto end = std::to_chars(text, text + sizeof(text), value,
                           std::chars_format::scientific, digits - 1);
  double result = value;
  std::from_chars(text, end.ptr, result);
  return result;
}

} // namespace

bool rotaryFits(const RotaryTables &tables, const RotarySpec &rotary) {
  return std::int64_t(rotary.invFreq.size()) == tables.half &&
         fits(tables, rotary.invFreq, rotary.attentionFactor);
}

Status recoverRotary(const RotaryTables &tables, RotarySpec &rotary) {
  const std::int64_t half = tables.half;
  const std::size_t rows = tables.positions.size();
  if (rows < 2 || half < 2 || tables.cosines.size() != rows * half ||
      tables.sines.size() != rows * half)
    return Status::unsupported("its rotation tables are too small to read");
  double squares = 0;
  for (std::int64_t i = 0; i < half; ++i)
    squares += tables.cosines[i] * tables.cosines[i] +
               tables.sines[i] * tables.sines[i];
  double factor = std::sqrt(squares / double(half));
  if (std::abs(factor - 1) <= 2 * tables.rounding + 1e-6)
    factor = 1;
  std::vector<float> frequencies(half);
  std::vector<double> exact(half);
  for (std::int64_t i = 0; i < half; ++i) {
    // The turn between two neighbours, which is below half a turn.
    double frequency = 0;
    bool found = false;
    for (std::size_t row = 0; row + 1 < rows && !found; ++row) {
      if (tables.positions[row + 1] != tables.positions[row] + 1)
        continue;
      const double c = tables.cosines[row * half + i],
                   s = tables.sines[row * half + i],
                   nextC = tables.cosines[(row + 1) * half + i],
                   nextS = tables.sines[(row + 1) * half + i];
      frequency = std::atan2(nextS * c - nextC * s, nextC * c + nextS * s);
      found = true;
    }
    if (!found)
      return Status::unsupported("its rotation tables have no neighbours");
    // Further positions know it better, once their turns are known.
    double known = 0.5;
    for (std::size_t row = 0; row < rows; ++row) {
      const double position = double(tables.positions[row]);
      const double error = 2 * (tables.rounding + 1e-6) * position / known;
      if (error > 1 || position <= known)
        continue;
      const double angle = std::atan2(tables.sines[row * half + i],
                                      tables.cosines[row * half + i]);
      const double turns =
          std::round((frequency * position - angle) / (2 * std::numbers::pi));
      frequency = (angle + 2 * std::numbers::pi * turns) / position;
      known = position;
    }
    exact[i] = frequency;
    frequencies[i] = static_cast<float>(frequency);
  }
  rotary.kind = RotaryKind::Default;
  rotary.attentionFactor = factor;
  // theta ^ (-2i / dim) at an i in the middle, where its digits show best.
  const std::int64_t middle = std::max<std::int64_t>(half / 2, 1);
  auto baseFor = [&](double divisor) {
    return std::pow(exact[middle] * divisor, -double(half) / double(middle));
  };
  // The first frequency is 1; linear scaling divides it like the others.
  std::vector<double> divisors{1};
  for (int digits = 1; digits <= 4; ++digits)
    if (double one = rounded(1 / exact[0], digits);
        std::abs(one * exact[0] - 1) < 0.01 && one != divisors.back())
      divisors.push_back(one);
  for (double divisor : divisors)
    for (int digits = 1; digits <= 7; ++digits) {
      const double theta = rounded(baseFor(divisor), digits);
      RotarySpec plain;
      plain.dim = rotary.dim;
      plain.kind = divisor == 1 ? RotaryKind::Default : RotaryKind::Linear;
      plain.factor = divisor;
      plain.theta = theta;
      if (factor != 1 || !std::isfinite(theta) || theta <= 1 ||
          !computeInverseFrequencies(plain))
        break;
      if (!fits(tables, plain.invFreq, 1.0))
        continue;
      rotary.kind = plain.kind;
      rotary.factor = plain.factor;
      rotary.theta = plain.theta;
      rotary.invFreq = plain.invFreq;
      return Status::ok();
    }
  const double theta = baseFor(1);
  rotary.theta = std::isfinite(theta) && theta > 1 ? theta : 10000.0;
  rotary.invFreq = frequencies;
  if (!fits(tables, frequencies, factor))
    return Status::unsupported(
        "its rotation tables are not those of any frequencies");
  return Status::ok();
}

} // namespace ingot
