#include "runtime/serve/ApiResponse.h"

#include "runtime/text/Utf8.h"

#include <cmath>
#include <cstdio>

namespace ingot::serve {
namespace {

// JSON has no infinity; OpenAI writes this for what cannot be.
constexpr double kImpossible = -9999.0;

Json logprobJson(std::optional<double> logprob) {
  if (!logprob)
    return nullptr;
  return std::isfinite(*logprob) ? *logprob : kImpossible;
}

std::string_view bytesOf(const Tokenizer &tokenizer, std::int32_t id) {
  auto bytes = tokenizer.tokenBytes(id);
  return bytes ? *bytes : std::string_view();
}

Json chatToken(const Tokenizer &tokenizer, std::int32_t id,
               std::optional<double> logprob) {
  std::string_view bytes = bytesOf(tokenizer, id);
  std::string text;
  std::size_t cut = appendValidUtf8(text, bytes);
  if (cut > 0)
    text += ReplacementCharacter;
  Json list = Json::array();
  for (char c : bytes)
    list.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", logprobJson(logprob)}, {"bytes", list}};
}

} // namespace

Json usageJson(const Usage &usage) {
  return {{"prompt_tokens", usage.promptTokens},
          {"completion_tokens", usage.outputTokens},
          {"total_tokens", usage.promptTokens + usage.outputTokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cachedTokens}}}};
}

Json answerJson(const AnswerHead &head, Json choices) {
  return {{"id", head.id},
          {"object", head.object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint},
          {"choices", std::move(choices)}};
}

std::string completionTokenName(const Tokenizer &tokenizer, std::int32_t id) {
  std::string_view bytes = bytesOf(tokenizer, id);
  if (findInvalidUtf8(bytes) == std::string_view::npos)
    return std::string(bytes);
  std::string name = "bytes:";
  for (char c : bytes) {
    char text[8];
    std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(c));
    name += text;
  }
  return name;
}

Json completionLogprobs(const Tokenizer &tokenizer,
                        std::span<const ScoredToken> tokens, std::int32_t top,
                        std::size_t offset) {
  Json names = Json::array(), logprobs = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (const ScoredToken &token : tokens) {
    std::string name = completionTokenName(tokenizer, token.token);
    names.push_back(name);
    logprobs.push_back(logprobJson(token.logprob));
    offsets.push_back(offset + token.offset);
    if (!token.logprob) {
      tops.push_back(nullptr);
      continue;
    }
    Json most = Json::object();
    for (const TokenLogprob &each : token.top) {
      std::string key = completionTokenName(tokenizer, each.token);
      // Two tokens of one name: the likelier, which comes first, stands.
      if (!most.contains(key))
        most[key] = logprobJson(each.logprob);
    }
    // The token itself is always among them.
    if (!most.contains(name))
      most[name] = logprobJson(token.logprob);
    tops.push_back(std::move(most));
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", top > 0 ? std::move(tops) : Json(nullptr)},
          {"text_offset", std::move(offsets)}};
}

Json chatLogprobs(const Tokenizer &tokenizer,
                  std::span<const ScoredToken> tokens) {
  Json content = Json::array();
  for (const ScoredToken &token : tokens) {
    Json each = chatToken(tokenizer, token.token, token.logprob);
    Json top = Json::array();
    for (const TokenLogprob &other : token.top)
      top.push_back(chatToken(tokenizer, other.token, other.logprob));
    each["top_logprobs"] = std::move(top);
    content.push_back(std::move(each));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

void fillPromptOffsets(const Tokenizer &tokenizer,
                       std::vector<ScoredToken> &tokens) {
  IncrementalDetokenizer detokenizer(tokenizer);
  std::size_t offset = 0;
  for (ScoredToken &token : tokens) {
    token.offset = offset;
    if (auto text = detokenizer.push(token.token))
      offset += countCharacters(*text);
  }
}

} // namespace ingot::serve
