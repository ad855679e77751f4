#include "runtime/sample/SamplingParams.h"

#include <cmath>
#include <cstdio>
#include <set>
#include <string>

namespace ingot {
namespace {

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// Written so that NaN fails it.
Status inRange(const std::string &field, double value, double low,
               double high) {
  if (value >= low && value <= high)
    return Status::ok();
  return Status::invalid(field + " is " + number(value) + ", expected " +
                         number(low) + " to " + number(high));
}

} // namespace

Status validate(const SamplingParams &params, std::int32_t vocab) {
  INGOT_RETURN_IF_ERROR(inRange("temperature", params.temperature, 0, 100));
  INGOT_RETURN_IF_ERROR(inRange("top_p", params.topP, 0, 1));
  if (params.topK < -1)
    return Status::invalid("top_k is " + std::to_string(params.topK) +
                           ", expected -1 or 0 (all tokens) or a count");
  INGOT_RETURN_IF_ERROR(inRange("min_p", params.minP, 0, 1));
  if (!(params.repetitionPenalty > 0 && params.repetitionPenalty <= 100))
    return Status::invalid("repetition_penalty is " +
                           number(params.repetitionPenalty) +
                           ", expected above 0, at most 100");
  INGOT_RETURN_IF_ERROR(
      inRange("presence_penalty", params.presencePenalty, -2, 2));
  INGOT_RETURN_IF_ERROR(
      inRange("frequency_penalty", params.frequencyPenalty, -2, 2));
  std::set<std::int64_t> seen;
  for (const auto &[id, bias] : params.logitBias) {
    if (id < 0 || id >= vocab)
      return Status::invalid("logit_bias: token id " + std::to_string(id) +
                             " is outside the vocabulary of " +
                             std::to_string(vocab));
    if (!seen.insert(id).second)
      return Status::invalid("logit_bias: token id " + std::to_string(id) +
                             " is given twice");
    INGOT_RETURN_IF_ERROR(
        inRange("logit_bias[" + std::to_string(id) + "]", bias, -100, 100));
  }
  if (params.minTokens < 0)
    return Status::invalid("min_tokens is " + std::to_string(params.minTokens) +
                           ", expected 0 or more");
  if (params.logprobs < -1 || params.logprobs > kMaxLogprobs)
    return Status::invalid("logprobs is " + std::to_string(params.logprobs) +
                           ", expected 0 to " + std::to_string(kMaxLogprobs));
  return Status::ok();
}

Status validateTokenIds(const char *field, const std::vector<std::int64_t> &ids,
                        std::int32_t vocab) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab)
      return Status::invalid(std::string(field) + "[" + std::to_string(i) +
                             "]: token id " + std::to_string(ids[i]) +
                             " is outside the vocabulary of " +
                             std::to_string(vocab));
  return Status::ok();
}

} // namespace ingot
