// Bodies of the API as values: every field read, checked and given its default,
// or the request refused with the field's name. Nothing is accepted that has
// no effect.
#pragma once

#include "runtime/engine/ChatPrompt.h"
#include "runtime/sample/SamplingParams.h"
#include "runtime/serve/JsonFields.h"
#include "runtime/serve/ServedModel.h"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ingot::serve {

// Choices of one request: prompts times n.
inline constexpr std::int64_t kMaxChoices = 128;

// What both generation endpoints share.
struct GenerationFields {
  SamplingParams sampling;
  std::int64_t maxTokens = -1;
  std::vector<std::string> stop;
  std::vector<std::int32_t> stopIds;
  bool ignoreEos = false;
  std::int32_t n = 1;
  double exitThreshold = 0; // as in TokenRequest
  std::int32_t priority = 0;
  std::string cacheSalt;
  std::string user; // for the log
  bool stream = false;
  bool includeUsage = false;
};

using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

struct CompletionFields : GenerationFields {
  std::vector<Prompt> prompts;
  bool echo = false;
};

struct ChatFields : GenerationFields {
  ChatRequest chat;
};

struct TokenizeFields {
  std::optional<std::string> prompt; // or chat
  ChatRequest chat;
  bool addSpecialTokens = true;
  bool returnTokenStrings = false;
};

struct DetokenizeFields {
  std::vector<std::int32_t> tokens;
};

struct EmbeddingFields {
  std::vector<Prompt> inputs;
  bool isBase64 = false;
  std::string user; // for the log
};

// Texts of one request to an encoder.
inline constexpr std::size_t kMaxInputs = 2048;

// `model` has been taken by the caller, who needs it to find the card. All
// throw ApiFailure.
CompletionFields readCompletion(FieldReader &fields, const ModelCard &card);
ChatFields readChat(FieldReader &fields, const ModelCard &card);
TokenizeFields readTokenize(FieldReader &fields);
// Refuses other dimensions than the model's.
EmbeddingFields readEmbedding(FieldReader &fields, const ModelCard &card,
                              std::int32_t dimensions);
DetokenizeFields readDetokenize(FieldReader &fields, const ModelCard &card);

} // namespace ingot::serve
