#include "compiler/calibrate/ConfidenceCurve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingot {

void ConfidenceCounts::add(double probability, bool agrees) {
  auto bins = double(seen_.size());
  auto bin = std::size_t(std::clamp(probability * bins, 0.0, bins - 1));
  ++seen_[bin];
  agreed_[bin] += agrees;
}

std::int64_t ConfidenceCounts::numSeen() const {
  return std::accumulate(seen_.begin(), seen_.end(), std::int64_t(0));
}
std::int64_t ConfidenceCounts::numAgreed() const {
  return std::accumulate(agreed_.begin(), agreed_.end(), std::int64_t(0));
}

// Neighbours that fall are pooled until none does. Each bin counts as if it
// had been right once and wrong once besides.
std::vector<float> ConfidenceCounts::curve() const {
  struct Pool {
    double agreed, seen;
    std::size_t bins;
    double mean() const { return agreed / seen; }
  };
  std::vector<Pool> pools;
  for (std::size_t b = 0; b < seen_.size(); ++b) {
    pools.push_back({double(agreed_[b]) + 1, double(seen_[b]) + 2, 1});
    while (pools.size() > 1 &&
           pools[pools.size() - 2].mean() > pools.back().mean()) {
      Pool last = pools.back();
      pools.pop_back();
      pools.back().agreed += last.agreed;
      pools.back().seen += last.seen;
      pools.back().bins += last.bins;
    }
  }
  std::vector<float> curve;
  for (const Pool &pool : pools)
    curve.insert(curve.end(), pool.bins, float(pool.mean()));
  return curve;
}

double curveAt(std::span<const float> curve, double probability) {
  auto bins = double(curve.size());
  return double(
      curve[std::size_t(std::clamp(probability * bins, 0.0, bins - 1))]);
}

FirstChoice firstChoice(std::span<const float> logits) {
  auto most = std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - *most);
  return {std::int32_t(most - logits.begin()), 1 / sum};
}

} // namespace ingot
