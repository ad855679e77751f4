#include "runtime/engine/ChatPrompt.h"

#include <nlohmann/json.hpp>

#include <ctime>

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

// Deeper than any real message; a limit, because parsing recurses.
constexpr int kMaxJsonDepth = 64;

Result<Json> parseJson(const char *field, std::string_view text) {
  bool tooDeep = false;
  auto guard = [&](int depth, Json::parse_event_t, Json &) {
    tooDeep |= depth > kMaxJsonDepth;
    return !tooDeep;
  };
  Json value = Json::parse(text.begin(), text.end(), guard,
                           /*allow_exceptions=*/false);
  if (tooDeep)
    return Status::invalid(std::string(field) + ": nested deeper than " +
                           std::to_string(kMaxJsonDepth));
  if (value.is_discarded())
    return Status::invalid(std::string(field) + ": not valid JSON");
  return value;
}

Status checkMessages(const Json &messages) {
  if (!messages.is_array() || messages.empty())
    return Status::invalid("messages: expected a list of at least one message");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::string where = "messages[" + std::to_string(i) + "]";
    const Json &message = messages[i];
    if (!message.is_object() || !message.contains("role") ||
        !message["role"].is_string())
      return Status::invalid(where + ": expected an object with a \"role\"");
  }
  return Status::ok();
}

std::optional<std::string> spelling(const Tokenizer &tokenizer,
                                    std::optional<std::int32_t> id) {
  if (!id)
    return std::nullopt;
  auto text = tokenizer.spelling(*id);
  return text ? std::optional(std::move(text).value()) : std::nullopt;
}

} // namespace

Result<ChatTemplateSet> readTemplates(std::span<const std::uint8_t> segment) {
  INGOT_ASSIGN_OR_RETURN(
      Json list, parseJson("template segment",
                           {reinterpret_cast<const char *>(segment.data()),
                            segment.size()}));
  return ChatTemplateSet::fromJson(list);
}

Result<Rendered> renderChat(const ChatTemplateSet &templates,
                            const Tokenizer &tokenizer,
                            const ChatRequest &request) {
  INGOT_ASSIGN_OR_RETURN(Json messages,
                         parseJson("messages", request.messagesJson));
  INGOT_RETURN_IF_ERROR(checkMessages(messages));
  ChatInputs inputs;
  inputs.messages = &messages;
  Json tools, documents, kwargs;
  if (!request.toolsJson.empty()) {
    INGOT_ASSIGN_OR_RETURN(tools, parseJson("tools", request.toolsJson));
    if (!tools.is_array())
      return Status::invalid("tools: expected a list");
    inputs.tools = &tools;
  }
  if (!request.documentsJson.empty()) {
    INGOT_ASSIGN_OR_RETURN(documents,
                           parseJson("documents", request.documentsJson));
    if (!documents.is_array())
      return Status::invalid("documents: expected a list");
    inputs.documents = &documents;
  }
  if (!request.templateKwargsJson.empty()) {
    INGOT_ASSIGN_OR_RETURN(
        kwargs, parseJson("chat_template_kwargs", request.templateKwargsJson));
    if (!kwargs.is_object())
      return Status::invalid("chat_template_kwargs: expected an object");
    inputs.kwargs = &kwargs;
  }
  inputs.addGenerationPrompt = request.addGenerationPrompt;
  inputs.bosToken = spelling(tokenizer, tokenizer.bosId());
  inputs.eosToken = spelling(tokenizer, tokenizer.eosId());
  if (auto pad = spelling(tokenizer, tokenizer.padId()))
    inputs.specialTokens.emplace_back("pad_token", *pad);
  if (auto unknown = spelling(tokenizer, tokenizer.unknownId()))
    inputs.specialTokens.emplace_back("unk_token", *unknown);
  // Templates write '<|' + role + '|>': these roles, and no others, may.
  inputs.templateRoles = {"system", "developer", "user", "assistant", "tool"};
  std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &inputs.now);
  return templates.render(inputs, request.templateName);
}

Result<std::vector<std::int32_t>> encodeChat(const Tokenizer &tokenizer,
                                             const Rendered &rendered,
                                             ControlTokens userText) {
  std::vector<TextRange> plain;
  if (userText == ControlTokens::Barred)
    for (const Rendered::Range &range : rendered.userRanges)
      plain.push_back({range.begin, range.end});
  EncodeOptions options;
  options.addSpecialTokens = false;
  options.plainRanges = plain;
  options.plainRangesBarAllAdded = true;
  return tokenizer.encode(rendered.text, options);
}

} // namespace ingot
