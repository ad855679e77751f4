// Chat messages to prompt ids: rendered by the model's own template, encoded
// once. Bytes that came from the caller never become control tokens, and no
// special token is added to what the template wrote.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/jinja/ChatTemplate.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

struct ChatRequest {
  std::string messagesJson;       // array of {"role", "content", ...}
  std::string documentsJson;      // array; empty: none
  std::string toolsJson;          // array; empty: none
  std::string templateKwargsJson; // object; empty: none
  std::string templateName;       // empty: as Hugging Face chooses
  bool addGenerationPrompt = true;
};

// The Template segment: a JSON list of {"name", "template"}.
Result<ChatTemplateSet> readTemplates(std::span<const std::uint8_t> segment);

Result<Rendered> renderChat(const ChatTemplateSet &templates,
                            const Tokenizer &tokenizer,
                            const ChatRequest &request);
Result<std::vector<std::int32_t>> encodeChat(const Tokenizer &tokenizer,
                                             const Rendered &rendered);

} // namespace ingot
