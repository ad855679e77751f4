// How often an exit's first choice is the whole model's, by how probable the exit
// says it is: counts in bins of equal width, smoothed, and made to rise with the
// probability (the nearest such curve in least squares). No entry is 1: a finite
// text proves no certainty, so a threshold of 1 is never reached.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot {

class ConfidenceCounts {
public:
  explicit ConfidenceCounts(std::int32_t numBins)
      : seen_(std::size_t(numBins), 0), agreed_(std::size_t(numBins), 0) {}

  void add(double probability, bool agrees);

  std::int64_t numSeen() const;
  std::int64_t numAgreed() const;
  std::vector<float> curve() const;

private:
  std::vector<std::int64_t> seen_, agreed_;
};

// The entry of a curve for a first choice of this probability.
double curveAt(std::span<const float> curve, double probability);

// The largest logit's index and its probability.
struct FirstChoice {
  std::int32_t token = 0;
  double probability = 0;
};
FirstChoice firstChoice(std::span<const float> logits);

} // namespace ingot
