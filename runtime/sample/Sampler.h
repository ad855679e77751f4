// A row of logits to a token. In this order: repetition, presence and
// frequency penalties; bias; the mask of allowed tokens; then, unless the
// temperature is 0, temperature, top-k, top-p, min-p and the largest of
// (logit / temperature + Gumbel noise) among what is left.
//
// The choice is a function of (logits, parameters, seed, position, history).
#pragma once

#include "runtime/sample/SamplingParams.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace ingot {

struct TokenLogprob {
  std::int32_t token = 0;
  double logprob = 0; // of the model's own distribution, before any filter
};

struct Choice {
  std::int32_t token = 0;
  double logprob = 0;            // where asked for
  std::vector<TokenLogprob> top; // most likely first, lowest id on ties
};

// The state of one request's sampling: parameters, seed and the counts that
// penalties need. A value: copied to fork a request, kept across preemption.
class SamplerState {
public:
  // `params` has been validated. `seed` is params.seed or a fresh one.
  SamplerState(SamplingParams params, std::uint64_t seed);

  void addPromptToken(std::int32_t token) { ++history_[token].prompt; }
  void addOutputToken(std::int32_t token) { ++history_[token].output; }
  // Undoes addOutputToken, for drafts that are not accepted.
  void removeOutputToken(std::int32_t token);

  // The same parameters and history under another seed.
  SamplerState withSeed(std::uint64_t seed) const {
    SamplerState state = *this;
    state.seed_ = seed;
    return state;
  }

  const SamplingParams &params() const { return params_; }
  std::uint64_t seed() const { return seed_; }

  struct Counts {
    std::int32_t prompt = 0;
    std::int32_t output = 0;
  };
  const std::unordered_map<std::int32_t, Counts> &history() const {
    return history_;
  }

private:
  SamplingParams params_;
  std::uint64_t seed_;
  std::unordered_map<std::int32_t, Counts> history_;
};

// Holds the working memory of a call, taken once for a vocabulary.
class Sampler {
public:
  explicit Sampler(std::int32_t vocab);

  // `position` is that of the token to choose. `allowed`, where not empty, has
  // a bit for each token (bit i of word i / 64). Fails where a logit is NaN or
  // nothing is allowed.
  Result<Choice> sample(std::span<const float> logits,
                        const SamplerState &state, std::int64_t position,
                        std::span<const std::uint64_t> allowed = {});

  // What the model's own distribution says of `token`, which is given, with
  // the `count` most likely ones.
  Choice score(std::span<const float> logits, std::int32_t token,
               std::int32_t count);

private:
  struct Candidate {
    float logit;
    std::int32_t token;
  };
  void applyPenalties(const SamplerState &state);
  void fillLogprobs(std::span<const float> logits, std::int32_t count,
                    Choice &choice);
  void keepTopK(std::int64_t k);
  void keepTopP(double topP, double temperature);
  std::int32_t drawAmong(const SamplerState &state, std::int64_t position);

  std::int32_t vocab_;
  std::vector<float> adjusted_;
  std::vector<Candidate> candidates_;
};

} // namespace ingot
