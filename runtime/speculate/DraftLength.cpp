#include "runtime/speculate/DraftLength.h"

#include <algorithm>

namespace ingot {
namespace {

// What is believed before anything is seen, in guesses: four, three of which
// stood, weighing as much as one recent draft.
constexpr double kPriorStood = 0.6;
constexpr double kPriorBroke = 0.2;
// The weight that a draft keeps with each later one.
constexpr double kFade = 0.75;
// Steps without a draft until one is tried again, and how far.
constexpr std::int32_t kRetryAfter = 12;
constexpr std::int32_t kRetryLength = 2;

} // namespace

double DraftLength::acceptance() const {
  return (stood_ + kPriorStood) / (stood_ + broke_ + kPriorStood + kPriorBroke);
}

std::int32_t DraftLength::next(std::int32_t most, double cost) {
  if (most < 1)
    return 0;
  double a = acceptance();
  double tokens = 1, power = 1, best = 1;
  std::int32_t length = 0;
  for (std::int32_t d = 1; d <= most; ++d) {
    power *= a;
    tokens += power;
    double rate = tokens / (1 + double(d) * cost);
    if (rate > best) {
      best = rate;
      length = d;
    }
  }
  if (length == 0 && ++skipped_ > kRetryAfter)
    length = std::min(most, kRetryLength);
  if (length > 0)
    skipped_ = 0;
  return length;
}

void DraftLength::observe(std::int32_t proposed, std::int32_t accepted) {
  if (proposed < 1)
    return;
  stood_ = stood_ * kFade + double(accepted);
  broke_ = broke_ * kFade + (accepted < proposed ? 1.0 : 0.0);
}

} // namespace ingot
