#include "runtime/sample/Sampler.h"

#include "runtime/sample/Noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace ingot {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

} // namespace

SamplerState::SamplerState(SamplingParams params, std::uint64_t seed)
    : params_(std::move(params)), seed_(seed) {}

Status SamplerState::advance(std::int32_t token) {
  if (mask_.mask)
    INGOT_RETURN_IF_ERROR(mask_.mask->advance(token));
  ++history_[token].output;
  ++numOutput_;
  return Status::ok();
}

void SamplerState::rollback(std::span<const std::int32_t> tokens) {
  if (mask_.mask && !tokens.empty())
    mask_.mask->rollback(std::int32_t(tokens.size()));
  numOutput_ -= std::int64_t(tokens.size());
  for (std::int32_t token : tokens) {
    auto found = history_.find(token);
    if (--found->second.output == 0 && found->second.prompt == 0)
      history_.erase(found);
  }
}

bool SamplerState::isEnd(std::int32_t token) const {
  return std::find(endIds_.begin(), endIds_.end(), token) != endIds_.end();
}

Sampler::Sampler(std::int32_t vocab) : vocab_(vocab), adjusted_(vocab) {
  candidates_.reserve(vocab);
}

void Sampler::applyPenalties(const SamplerState &state) {
  const SamplingParams &params = state.params();
  if (params.repetitionPenalty != 1 || params.presencePenalty != 0 ||
      params.frequencyPenalty != 0) {
    auto repetition = float(params.repetitionPenalty);
    for (const auto &[token, counts] : state.history()) {
      float &logit = adjusted_[token];
      // Away from likely on either side of zero, once whatever the count.
      logit = logit > 0 ? logit / repetition : logit * repetition;
      if (counts.output > 0)
        logit -= float(params.presencePenalty +
                       params.frequencyPenalty * counts.output);
    }
  }
  for (const auto &[token, bias] : params.logitBias)
    adjusted_[token] += float(bias);
  if (!state.mayEnd())
    for (std::int32_t token : state.endIds())
      adjusted_[token] = kMinusInfinity;
}

void Sampler::fillLogprobs(std::span<const float> logits, std::int32_t count,
                           Choice &choice) {
  float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - most);
  double logSum = double(most) + std::log(sum);
  choice.logprob = double(logits[choice.token]) - logSum;
  count = std::min(count, vocab_);
  if (count <= 0)
    return;
  candidates_.clear();
  for (std::int32_t token = 0; token < vocab_; ++token)
    candidates_.push_back({logits[token], token});
  keepTopK(count);
  for (const Candidate &candidate : candidates_)
    choice.top.push_back({candidate.token, double(candidate.logit) - logSum});
}

Choice Sampler::score(std::span<const float> logits, std::int32_t token,
                      std::int32_t count) {
  Choice choice;
  choice.token = token;
  fillLogprobs(logits, count, choice);
  return choice;
}

// Most likely first; of equal ones the lower id.
static bool isBefore(float logitA, std::int32_t tokenA, float logitB,
                     std::int32_t tokenB) {
  return logitA != logitB ? logitA > logitB : tokenA < tokenB;
}

// Leaves the k first candidates, sorted.
void Sampler::keepTopK(std::int64_t k) {
  auto before = [](const Candidate &a, const Candidate &b) {
    return isBefore(a.logit, a.token, b.logit, b.token);
  };
  if (k < std::int64_t(candidates_.size())) {
    std::nth_element(candidates_.begin(), candidates_.begin() + k,
                     candidates_.end(), before);
    candidates_.resize(k);
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
}

// The shortest run of most likely candidates whose probabilities reach topP;
// always at least one. Sorts only as far as it must look.
void Sampler::keepTopP(double topP, double temperature) {
  auto before = [](const Candidate &a, const Candidate &b) {
    return isBefore(a.logit, a.token, b.logit, b.token);
  };
  float most = kMinusInfinity;
  for (const Candidate &candidate : candidates_)
    most = std::max(most, candidate.logit);
  auto weight = [&](const Candidate &candidate) {
    return std::exp((double(candidate.logit) - most) / temperature);
  };
  double total = 0;
  for (const Candidate &candidate : candidates_)
    total += weight(candidate);
  double wanted = topP * total, sum = 0;
  std::size_t sorted = 0;
  for (std::size_t step = 128; sorted < candidates_.size(); step *= 4) {
    std::size_t next = std::min(candidates_.size(), sorted + step);
    auto first = candidates_.begin() + std::ptrdiff_t(sorted);
    auto middle = candidates_.begin() + std::ptrdiff_t(next);
    if (next < candidates_.size())
      std::nth_element(first, middle, candidates_.end(), before);
    std::sort(first, middle, before);
    for (; sorted < next; ++sorted) {
      sum += weight(candidates_[sorted]);
      if (sum >= wanted) {
        candidates_.resize(sorted + 1);
        return;
      }
    }
  }
}

std::int32_t Sampler::drawAmong(const SamplerState &state,
                                std::int64_t position) {
  double inverse = 1.0 / state.params().temperature;
  std::uint64_t key = noiseKey(state.seed(), std::uint64_t(position));
  double best = -std::numeric_limits<double>::infinity();
  std::int32_t chosen = -1;
  auto consider = [&](const Candidate &candidate) {
    double scaled = double(candidate.logit) * inverse;
    if (scaled + kMaxGumbel < best)
      return;
    double uniform = noiseUniform(noiseBits(key, candidate.token));
    // gumbel(u) <= -log(u'), u' = -log(1 - (1 - u)) >= u: skip by a bound
    // that needs no logarithm where the noise is far too small.
    if (chosen >= 0 && scaled < best) {
      double needed = best - scaled; // noise must reach this
      // gumbel(u) >= needed  <=>  -log1p(-u) <= exp(-needed), and
      // -log1p(-u) >= u.
      if (needed > 1 && uniform > 0.3678794411714424)
        return;
      if (needed > 4 && uniform > 0.018315638888734179)
        return;
      if (needed > 8 && uniform > 0.00033546262790251186)
        return;
    }
    double value = scaled + gumbel(uniform);
    if (value > best || (value == best && candidate.token < chosen)) {
      best = value;
      chosen = candidate.token;
    }
  };
  // Beginning with the most likely makes the bounds tight at once.
  auto top =
      std::max_element(candidates_.begin(), candidates_.end(),
                       [](const Candidate &a, const Candidate &b) {
                         return isBefore(b.logit, b.token, a.logit, a.token);
                       });
  consider(*top);
  for (const Candidate &candidate : candidates_)
    if (candidate.token != top->token)
      consider(candidate);
  return chosen;
}

Result<Choice> Sampler::sample(std::span<const float> logits,
                               const SamplerState &state, std::int64_t position,
                               std::span<const std::uint64_t> allowed) {
  Choice choice;
  INGOT_ASSIGN_OR_RETURN(choice.token,
                         choose(logits, state, position, allowed));
  if (state.params().logprobs >= 0)
    fillLogprobs(logits, state.params().logprobs, choice);
  return choice;
}

Result<std::int32_t> Sampler::choose(std::span<const float> logits,
                                     const SamplerState &state,
                                     std::int64_t position,
                                     std::span<const std::uint64_t> allowed) {
  if (std::int32_t(logits.size()) != vocab_)
    return Status::internal("row of " + std::to_string(logits.size()) +
                            " logits, expected " + std::to_string(vocab_));
  const SamplingParams &params = state.params();
  // Looked for before a mask can hide it.
  bool isNan = false;
  for (std::int32_t token = 0; token < vocab_; ++token) {
    adjusted_[token] = logits[token];
    isNan |= logits[token] != logits[token];
  }
  applyPenalties(state);
  if (state.mask())
    state.mask()->apply(adjusted_);

  // The best allowed token; the lowest id wins a tie.
  float most = kMinusInfinity;
  std::int32_t best = -1;
  for (std::int32_t token = 0; token < vocab_; ++token) {
    float logit = adjusted_[token];
    isNan |= logit != logit;
    if (!allowed.empty() && !((allowed[token / 64] >> (token % 64)) & 1)) {
      adjusted_[token] = kMinusInfinity;
      continue;
    }
    if (best < 0 ? logit > kMinusInfinity : logit > most) {
      most = logit;
      best = token;
    }
  }
  if (isNan)
    return Status::internal("the logits of position " +
                            std::to_string(position) + " hold NaN");
  if (best < 0)
    return Status::invalid("no token is allowed at position " +
                           std::to_string(position));
  // A temperature too small to divide by, or an infinite logit, is the limit.
  bool isGreedy = params.temperature < 1e-6 || params.topK == 1 ||
                  params.topP == 0 || params.minP == 1 || std::isinf(most);
  if (!isGreedy) {
    candidates_.clear();
    // What min-p drops it drops from the largest alone, so it goes first
    // where no other filter would see the difference, and below otherwise.
    bool limited = params.topK > 0 && params.topK < vocab_;
    float floor = kMinusInfinity;
    if (params.minP > 0)
      floor = float(double(most) + std::log(params.minP) * params.temperature);
    bool minPFirst = params.topP >= 1;
    for (std::int32_t token = 0; token < vocab_; ++token) {
      float logit = adjusted_[token];
      if (logit > kMinusInfinity && (!minPFirst || logit >= floor))
        candidates_.push_back({logit, token});
    }
    if (limited)
      keepTopK(params.topK);
    if (params.topP < 1)
      keepTopP(params.topP, params.temperature);
    if (!minPFirst && params.minP > 0)
      std::erase_if(candidates_, [&](const Candidate &candidate) {
        return candidate.logit < floor;
      });
    return drawAmong(state, position);
  }
  return best;
}

} // namespace ingot
