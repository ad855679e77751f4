// A row of logits to a token. In this order: repetition, presence and
// frequency penalties; bias; the end ids while the output is too short to end;
// the request's mask and the set of allowed tokens; then, unless the
// temperature is 0, temperature, top-k, top-p, min-p and the largest of
// (logit / temperature + Gumbel noise) among what is left.
//
// The choice is a function of (logits, parameters, seed, position, history).
#pragma once

#include "runtime/sample/LogitsMask.h"
#include "runtime/sample/SamplingParams.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <memory>
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

// The state of one request's sampling: parameters, seed, the counts that
// penalties need, and its mask. A value: copied to fork a request (the mask
// forks with it), kept across preemption.
class SamplerState {
public:
  // `params` has been validated. `seed` is params.seed or a fresh one.
  SamplerState(SamplingParams params, std::uint64_t seed);

  void addPromptToken(std::int32_t token) { ++history_[token].prompt; }
  // `token` is next in the output. Fails, and changes nothing, where the mask
  // does not allow it.
  Status advance(std::int32_t token);
  // Undoes the latest advances, which were by `tokens`, in their order: for
  // drafts that do not stand.
  void rollback(std::span<const std::int32_t> tokens);

  // Tokens that end the output: not chosen before params().minTokens.
  void setEndIds(std::vector<std::int32_t> ids) { endIds_ = std::move(ids); }
  const std::vector<std::int32_t> &endIds() const { return endIds_; }
  bool isEnd(std::int32_t token) const;
  bool mayEnd() const { return numOutput_ >= params_.minTokens; }

  // Null: everything is allowed.
  void setMask(std::unique_ptr<LogitsMask> mask) {
    mask_.mask = std::move(mask);
  }
  const LogitsMask *mask() const { return mask_.mask.get(); }

  std::int64_t numOutput() const { return numOutput_; }

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
  // Forks the mask where the state is copied.
  struct OwnMask {
    std::unique_ptr<LogitsMask> mask;
    OwnMask() = default;
    OwnMask(OwnMask &&) = default;
    OwnMask &operator=(OwnMask &&) = default;
    OwnMask(const OwnMask &other)
        : mask(other.mask ? other.mask->fork() : nullptr) {}
    OwnMask &operator=(const OwnMask &other) {
      mask = other.mask ? other.mask->fork() : nullptr;
      return *this;
    }
  };

  SamplingParams params_;
  std::uint64_t seed_;
  std::unordered_map<std::int32_t, Counts> history_;
  std::int64_t numOutput_ = 0;
  std::vector<std::int32_t> endIds_;
  OwnMask mask_;
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

  // The token that sample() chooses, without its log-probabilities.
  Result<std::int32_t> choose(std::span<const float> logits,
                              const SamplerState &state, std::int64_t position,
                              std::span<const std::uint64_t> allowed = {});

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
