// The objects of answers, as pure functions: tokens with log-probabilities,
// choices, usage, chunks.
#pragma once

#include "runtime/serve/ChoiceOutput.h"
#include "runtime/serve/JsonFields.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ingot::serve {

// What stands at the top of every answer and chunk.
struct AnswerHead {
  std::string id;
  std::string object;
  std::int64_t created = 0;
  std::string model;
  std::string fingerprint;
};

struct Usage {
  std::int64_t promptTokens = 0;
  std::int64_t cachedTokens = 0;
  std::int64_t outputTokens = 0;
};

Json usageJson(const Usage &usage);
// With `choices`; `usage` follows where the caller adds it.
Json answerJson(const AnswerHead &head, Json choices);

// A token's text; bytes that are not whole characters as "bytes:\xf0\x9f", so
// that different tokens have different names.
std::string completionTokenName(const Tokenizer &tokenizer, std::int32_t id);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. `top` of 0
// leaves top_logprobs null.
Json completionLogprobs(const Tokenizer &tokenizer,
                        std::span<const ScoredToken> tokens, std::int32_t top,
                        std::size_t offset);
// {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal"}
Json chatLogprobs(const Tokenizer &tokenizer,
                  std::span<const ScoredToken> tokens);

// Characters of text before each token of a prompt.
void fillPromptOffsets(const Tokenizer &tokenizer,
                       std::vector<ScoredToken> &tokens);

} // namespace ingot::serve
