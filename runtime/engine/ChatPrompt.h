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

// May the text of messages, tools and documents form control tokens? Added
// tokens that are not special (<think>, <tool_call>) count as such.
enum class ControlTokens {
  Barred,
  Allowed, // as in Hugging Face: for callers who wrote all of the text
};

struct ChatRequest {
  std::string messagesJson;       // array of {"role", "content", ...}
  std::string documentsJson;      // array; empty: none
  std::string toolsJson;          // array; empty: none
  std::string templateKwargsJson; // object; empty: none
  std::string templateName;       // empty: as Hugging Face chooses
  bool addGenerationPrompt = true;
  ControlTokens userText = ControlTokens::Barred;
};

// The Template segment: a JSON list of {"name", "template"}.
Result<ChatTemplateSet> readTemplates(std::span<const std::uint8_t> segment);

Result<Rendered> renderChat(const ChatTemplateSet &templates,
                            const Tokenizer &tokenizer,
                            const ChatRequest &request);
Result<std::vector<std::int32_t>> encodeChat(const Tokenizer &tokenizer,
                                             const Rendered &rendered,
                                             ControlTokens userText);

} // namespace ingot
