// How a request wants its tokens chosen, and the check that every value is in
// its range before it comes near a row of logits.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ingot {

struct SamplingParams {
  double temperature = 1.0;       // 0: the most likely token, lowest id on ties
  double topP = 1.0;              // 1: off; 0 keeps exactly the top token
  std::int64_t topK = 0;          // 0 and -1: all tokens
  double minP = 0.0;              // 0: off
  double repetitionPenalty = 1.0; // over prompt and output, once an id
  double presencePenalty = 0.0;   // over output
  double frequencyPenalty = 0.0;  // over output, times the count
  std::vector<std::pair<std::int64_t, double>> logitBias; // (token id, added)
  std::int64_t minTokens = 0;        // of output before a token may end it
  std::optional<std::uint64_t> seed; // none: fresh for each request
  std::int32_t logprobs = -1; // -1: none; n: the chosen and the n most likely

  bool operator==(const SamplingParams &) const = default;
};

// InvalidInput names the field, its value and the range.
Status validate(const SamplingParams &params, std::int32_t vocab);

// Names the first id that is not in [0, vocab): "stop_token_ids[2]: ...".
Status validateTokenIds(const char *field, const std::vector<std::int64_t> &ids,
                        std::int32_t vocab);

inline constexpr std::int32_t kMaxLogprobs = 20;

} // namespace ingot
