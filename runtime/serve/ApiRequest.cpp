#include "runtime/serve/ApiRequest.h"

#include <charconv>

namespace ingot::serve {
namespace {

constexpr std::size_t kMaxStops = 16;
constexpr std::int64_t kMaxInt32 = INT32_MAX;

std::vector<std::int32_t> readIds(const Json &list, const std::string &field,
                                  std::int32_t vocab) {
  if (!list.is_array())
    failField(field, std::string("expected a list of token ids, found ") +
                         kindOf(list));
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string where = field + "[" + std::to_string(i) + "]";
    const Json &id = list[i];
    if (!id.is_number_integer())
      failField(where, std::string("expected a token id, found ") + kindOf(id));
    bool isLarge = id.is_number_unsigned() &&
                   id.get<std::uint64_t>() >= std::uint64_t(vocab);
    if (isLarge || id.get<std::int64_t>() < 0)
      failField(where, "token id " + id.dump() +
                           " is outside the vocabulary of " +
                           std::to_string(vocab));
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

std::vector<std::string> readStop(FieldReader &fields) {
  const Json *stop = fields.take("stop");
  if (!stop)
    return {};
  std::vector<std::string> texts;
  auto add = [&](const Json &text, const std::string &field) {
    if (!text.is_string())
      failField(field, std::string("expected a string, found ") + kindOf(text));
    if (text.get<std::string>().empty())
      failField(field, "a stop string may not be empty");
    texts.push_back(text.get<std::string>());
  };
  if (!stop->is_array()) {
    add(*stop, "stop");
    return texts;
  }
  if (stop->size() > kMaxStops)
    failField("stop", "has " + std::to_string(stop->size()) +
                          " strings, expected at most " +
                          std::to_string(kMaxStops));
  for (std::size_t i = 0; i < stop->size(); ++i)
    add((*stop)[i], "stop[" + std::to_string(i) + "]");
  return texts;
}

// {"50256": -100}: ids are keys, so strings.
void readLogitBias(FieldReader &fields, SamplingParams &sampling) {
  const Json *bias = fields.take("logit_bias");
  if (!bias)
    return;
  if (!bias->is_object())
    failField("logit_bias",
              std::string("expected an object, found ") + kindOf(*bias));
  for (const auto &[key, value] : bias->items()) {
    std::int64_t id = 0;
    const char *end = key.data() + key.size();
    auto [stop, error] = std::from_chars(key.data(), end, id);
    if (error != std::errc() || stop != end)
      failField("logit_bias", "a key is not a token id");
    if (!value.is_number())
      failField("logit_bias", "the bias of token id " + std::to_string(id) +
                                  " is expected to be a number, found " +
                                  kindOf(value));
    sampling.logitBias.emplace_back(id, value.get<double>());
  }
}

void readStreaming(FieldReader &fields, GenerationFields &into) {
  into.stream = fields.boolean("stream").value_or(false);
  const Json *options = fields.take("stream_options");
  if (!options)
    return;
  if (!into.stream)
    failField("stream_options", "is only for stream: true");
  if (!options->is_object())
    failField("stream_options",
              std::string("expected an object, found ") + kindOf(*options));
  FieldReader inner(*options, "stream_options.");
  into.includeUsage = inner.boolean("include_usage").value_or(false);
  inner.refuseUnless("include_obfuscation", false);
  inner.finish();
}

void readShared(FieldReader &fields, const ModelCard &card,
                GenerationFields &into) {
  SamplingParams &sampling = into.sampling;
  sampling = card.defaults;
  auto real = [&](const char *name, double &value) {
    value = fields.number(name).value_or(value);
  };
  real("temperature", sampling.temperature);
  real("top_p", sampling.topP);
  real("min_p", sampling.minP);
  real("repetition_penalty", sampling.repetitionPenalty);
  real("presence_penalty", sampling.presencePenalty);
  real("frequency_penalty", sampling.frequencyPenalty);
  sampling.topK =
      fields.integer("top_k", INT64_MIN, INT64_MAX).value_or(sampling.topK);
  if (auto seed = fields.integer("seed", INT64_MIN, INT64_MAX))
    sampling.seed = std::uint64_t(*seed);
  readLogitBias(fields, sampling);
  into.stop = readStop(fields);
  if (const Json *ids = fields.take("stop_token_ids"))
    into.stopIds = readIds(*ids, "stop_token_ids", card.vocab);
  into.ignoreEos = fields.boolean("ignore_eos").value_or(false);
  if (auto threshold = fields.number("exit_threshold")) {
    if (!card.hasExits)
      throw ApiFailure{ApiError::unsupported(
          "exit_threshold", "the model was compiled without early exits")};
    if (!(*threshold >= 0 && *threshold <= 1))
      failField("exit_threshold", "is expected to be 0 to 1");
    into.exitThreshold = *threshold;
  }
  into.n = std::int32_t(fields.integer("n", 1, kMaxChoices).value_or(1));
  into.priority = std::int32_t(
      fields.integer("priority", INT32_MIN, kMaxInt32).value_or(0));
  into.cacheSalt = fields.string("cache_salt").value_or("");
  if (into.cacheSalt.size() > 256)
    failField("cache_salt", "is longer than 256 bytes");
  for (const char *name : {"user", "safety_identifier"})
    if (auto user = fields.string(name))
      into.user = user->substr(0, 128);
  readStreaming(fields, into);
}

void checkSampling(const SamplingParams &sampling, const ModelCard &card) {
  if (Status status = validate(sampling, card.vocab); !status)
    throw ApiFailure{ApiError::fromStatus(status)};
}

// A text or the ids of one, or a list of these: the field `name`, which at most
// `most` of what `things` calls them may have.
std::vector<Prompt> readPrompts(FieldReader &fields, const ModelCard &card,
                                const char *name, std::size_t most,
                                const char *things) {
  const Json *prompt = fields.take(name);
  if (!prompt)
    failField(name, "is missing");
  if (prompt->is_string())
    return {prompt->get<std::string>()};
  if (!prompt->is_array())
    failField(name, std::string("expected a string or a list, found ") +
                        kindOf(*prompt));
  if (prompt->empty())
    failField(name, "is an empty list: there is nothing to go on from");
  if (prompt->front().is_number())
    return {readIds(*prompt, name, card.vocab)};
  std::vector<Prompt> prompts;
  if (prompt->size() > most)
    failField(name, "has " + std::to_string(prompt->size()) + " " + things +
                        ", expected at most " + std::to_string(most));
  for (std::size_t i = 0; i < prompt->size(); ++i) {
    const Json &each = (*prompt)[i];
    std::string where = name + ("[" + std::to_string(i)) + "]";
    if (each.is_string())
      prompts.push_back(each.get<std::string>());
    else if (each.is_array())
      prompts.push_back(readIds(each, where, card.vocab));
    else
      failField(where, std::string("expected a string or a list of token "
                                   "ids, found ") +
                           kindOf(each));
  }
  return prompts;
}

// The content of a message as one text: parts are joined by line breaks.
std::string readContent(const Json &content, const std::string &where) {
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array())
    failField(where, std::string("expected a string or a list of parts, "
                                 "found ") +
                         kindOf(content));
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string part = where + "[" + std::to_string(i) + "]";
    if (!content[i].is_object())
      failField(part,
                std::string("expected an object, found ") + kindOf(content[i]));
    FieldReader fields(content[i], part + ".");
    auto type = fields.string("type");
    if (!type)
      failField(part + ".type", "is missing");
    if (*type != "text")
      throw ApiFailure{
          ApiError::unsupported(part + ".type", "only text is supported here")};
    auto piece = fields.string("text");
    if (!piece)
      failField(part + ".text", "is missing");
    fields.finish();
    text += (i == 0 ? "" : "\n") + *piece;
  }
  return text;
}

Json readMessage(const Json &message, const std::string &where) {
  if (!message.is_object())
    failField(where,
              std::string("expected an object, found ") + kindOf(message));
  FieldReader fields(message, where + ".");
  auto role = fields.string("role");
  if (!role)
    failField(where + ".role", "is missing");
  if (*role == "tool" || *role == "function")
    throw ApiFailure{
        ApiError::unsupported(where + ".role", "tools are not supported here")};
  if (*role != "system" && *role != "developer" && *role != "user" &&
      *role != "assistant")
    failField(where + ".role", "expected system, developer, user or assistant");
  for (const char *name : {"tool_calls", "function_call", "audio"})
    fields.refuse(name);
  fields.refuse("refusal");
  const Json *content = fields.take("content");
  if (!content)
    failField(where + ".content", "is missing");
  Json made = {{"role", *role},
               {"content", readContent(*content, where + ".content")}};
  if (auto name = fields.string("name"))
    made["name"] = *name;
  if (auto reasoning = fields.string("reasoning_content"))
    made["reasoning_content"] = *reasoning;
  fields.finish();
  return made;
}

ChatRequest readChatPrompt(FieldReader &fields) {
  const Json *messages = fields.take("messages");
  if (!messages)
    failField("messages", "is missing");
  if (!messages->is_array() || messages->empty())
    failField("messages", "expected a list of at least one message");
  Json list = Json::array();
  for (std::size_t i = 0; i < messages->size(); ++i)
    list.push_back(
        readMessage((*messages)[i], "messages[" + std::to_string(i) + "]"));
  ChatRequest chat;
  chat.messagesJson = dumpJson(list);
  if (const Json *kwargs = fields.take("chat_template_kwargs")) {
    if (!kwargs->is_object())
      failField("chat_template_kwargs",
                std::string("expected an object, found ") + kindOf(*kwargs));
    chat.templateKwargsJson = dumpJson(*kwargs);
  }
  chat.addGenerationPrompt =
      fields.boolean("add_generation_prompt").value_or(true);
  return chat;
}

void refuseWhatChatLacks(FieldReader &fields) {
  for (const char *name :
       {"tools", "functions", "audio", "prediction", "reasoning_effort",
        "web_search_options", "verbosity", "metadata", "parallel_tool_calls"})
    fields.refuse(name);
  fields.refuseUnless("tool_choice", "none");
  fields.refuseUnless("function_call", "none");
  fields.refuseUnless("response_format", {{"type", "text"}});
  fields.refuseUnless("modalities", Json::array({"text"}));
  fields.refuseUnless("store", false);
}

} // namespace

CompletionFields readCompletion(FieldReader &fields, const ModelCard &card) {
  CompletionFields made;
  readShared(fields, card, made);
  made.prompts =
      readPrompts(fields, card, "prompt", std::size_t(kMaxChoices), "prompts");
  made.echo = fields.boolean("echo").value_or(false);
  made.maxTokens = fields.integer("max_tokens", 0, kMaxInt32).value_or(16);
  made.sampling.logprobs =
      std::int32_t(fields.integer("logprobs", 0, kMaxLogprobs).value_or(-1));
  fields.refuse("suffix");
  if (auto best = fields.integer("best_of", 1, kMaxChoices);
      best && *best != made.n)
    throw ApiFailure{
        ApiError::unsupported("best_of", "is not supported here, except as n")};
  fields.refuseUnless("response_format", {{"type", "text"}});
  fields.finish();
  if (std::int64_t(made.prompts.size()) * made.n > kMaxChoices)
    failField("n", std::to_string(made.prompts.size()) + " prompts of " +
                       std::to_string(made.n) + " choices each are more than " +
                       std::to_string(kMaxChoices));
  checkSampling(made.sampling, card);
  return made;
}

ChatFields readChat(FieldReader &fields, const ModelCard &card) {
  ChatFields made;
  readShared(fields, card, made);
  made.chat = readChatPrompt(fields);
  auto older = fields.integer("max_tokens", 0, kMaxInt32);
  auto newer = fields.integer("max_completion_tokens", 0, kMaxInt32);
  if (older && newer && *older != *newer)
    failField("max_tokens", "is not the same as max_completion_tokens");
  made.maxTokens = newer ? *newer : older.value_or(-1);
  bool wantsLogprobs = fields.boolean("logprobs").value_or(false);
  auto top = fields.integer("top_logprobs", 0, kMaxLogprobs);
  if (top && !wantsLogprobs)
    failField("top_logprobs", "is only for logprobs: true");
  if (wantsLogprobs)
    made.sampling.logprobs = std::int32_t(top.value_or(0));
  refuseWhatChatLacks(fields);
  if (auto tier = fields.string("service_tier");
      tier && *tier != "auto" && *tier != "default")
    throw ApiFailure{ApiError::unsupported(
        "service_tier", "is not supported here, except as auto or default")};
  fields.finish();
  checkSampling(made.sampling, card);
  return made;
}

TokenizeFields readTokenize(FieldReader &fields) {
  TokenizeFields made;
  made.prompt = fields.string("prompt");
  auto special = fields.boolean("add_special_tokens");
  made.returnTokenStrings = fields.boolean("return_token_strs").value_or(false);
  if (made.prompt) {
    made.addSpecialTokens = special.value_or(true);
  } else {
    if (special)
      failField("add_special_tokens",
                "a chat template writes its own special tokens");
    made.chat = readChatPrompt(fields);
  }
  fields.finish();
  return made;
}

EmbeddingFields readEmbedding(FieldReader &fields, const ModelCard &card,
                              std::int32_t dimensions) {
  EmbeddingFields made;
  made.inputs = readPrompts(fields, card, "input", kMaxInputs, "texts");
  if (auto format = fields.string("encoding_format")) {
    if (*format != "float" && *format != "base64")
      failField("encoding_format",
                "expected \"float\" or \"base64\", found \"" +
                    format->substr(0, 100) + "\"");
    made.isBase64 = *format == "base64";
  }
  if (auto wanted = fields.integer("dimensions", 1, kMaxInt32);
      wanted && *wanted != dimensions)
    failField("dimensions", "is " + std::to_string(*wanted) +
                                ", this model's "
                                "vectors have " +
                                std::to_string(dimensions) +
                                " and are not cut");
  made.user = fields.string("user").value_or("");
  fields.finish();
  return made;
}

DetokenizeFields readDetokenize(FieldReader &fields, const ModelCard &card) {
  DetokenizeFields made;
  const Json *tokens = fields.take("tokens");
  if (!tokens)
    failField("tokens", "is missing");
  made.tokens = readIds(*tokens, "tokens", card.vocab);
  fields.finish();
  return made;
}

} // namespace ingot::serve
