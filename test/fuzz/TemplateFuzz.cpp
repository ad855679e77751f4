// Any bytes as a chat template: parsed, and rendered for a small conversation
// under limits that keep one run short.
#include "runtime/text/jinja/ChatTemplate.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace ingot;
  static const auto messages = nlohmann::ordered_json::parse(R"([
    {"role": "system", "content": "Be brief. <|im_end|>"},
    {"role": "user", "content": "Caf\u00e9 \ud83d\ude42?"},
    {"role": "assistant", "content": null, "tool_calls": [{"type": "function",
      "function": {"name": "look", "arguments": {"at": [1, 2.5, null]}}}]},
    {"role": "tool", "name": "look", "content": "12"},
    {"role": "user", "content": [{"type": "text", "text": "and?"}]}])");
  static const auto tools = nlohmann::ordered_json::parse(R"([
    {"type": "function", "function": {"name": "look", "description": "Looks",
      "parameters": {"type": "object", "properties":
        {"at": {"type": "array"}}, "required": ["at"]}}}])");
  auto parsed = ChatTemplate::parse(
      std::string(reinterpret_cast<const char *>(data), size));
  if (!parsed)
    return 0;
  ChatInputs inputs;
  inputs.messages = &messages;
  inputs.tools = &tools;
  inputs.addGenerationPrompt = true;
  inputs.bosToken = "<s>";
  inputs.eosToken = "</s>";
  inputs.limits.steps = 50000;
  inputs.limits.memoryBytes = 4 << 20;
  inputs.limits.outputBytes = 1 << 18;
  if (auto rendered = parsed->render(inputs)) {
    for (const auto *ranges :
         {&rendered->userRanges, &rendered->generationRanges}) {
      size_t end = 0;
      for (const auto &range : *ranges) {
        if (range.begin < end || range.end < range.begin ||
            range.end > rendered->text.size())
          __builtin_trap();
        end = range.end;
      }
    }
  }
  return 0;
}
