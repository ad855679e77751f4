// See ChatTemplate.h.
#include "runtime/text/jinja/ChatTemplate.h"

#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/Lexer.h"
#include "runtime/text/jinja/Parser.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <new>

namespace ingot {

using Json = nlohmann::ordered_json;
using jinja::Origin;
using jinja::Text;
using jinja::Value;

namespace {

constexpr size_t maxTemplateBytes = size_t(8) << 20;

// Inputs become values here; every string of them is User text.
class Importer {
public:
  explicit Importer(jinja::Runtime &rt) : rt_(rt) {}

  Value value(const Json &json, const std::string &path, int depth = 0) {
    if (depth > 150)
      jinja::fail(path + " is nested too deeply (more than 150 levels)");
    rt_.step();
    switch (json.type()) {
    case Json::value_t::null:
      return Value::none();
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      return Value::integer(json.get<uint64_t>());
    case Json::value_t::number_float:
      return Value::number(json.get<double>());
    case Json::value_t::string:
      return text(json.get_ref<const std::string &>(), path);
    case Json::value_t::array: {
      std::vector<Value> items;
      for (size_t i = 0; i < json.size(); ++i)
        items.push_back(
            value(json[i], path + "[" + std::to_string(i) + "]", depth + 1));
      return rt_.list(std::move(items));
    }
    case Json::value_t::object: {
      jinja::Runtime::DictBuilder dict(rt_);
      for (auto it = json.begin(); it != json.end(); ++it)
        dict.set(text(it.key(), path),
                 value(it.value(), path + "." + it.key(), depth + 1));
      return dict.finish();
    }
    default:
      jinja::fail(path + " is not a JSON value that a template can read");
    }
  }

  Value text(const std::string &bytes, const std::string &path,
             Origin origin = Origin::User) {
    if (auto at = jinja::findInvalidUtf8(bytes))
      jinja::fail(path + " is not valid UTF-8 at byte " + std::to_string(*at));
    return rt_.string(Text(bytes, origin));
  }

  Value messages(const ChatInputs &inputs) {
    if (!inputs.messages || !inputs.messages->is_array())
      jinja::fail("messages must be an array of objects");
    std::vector<Value> items;
    for (size_t i = 0; i < inputs.messages->size(); ++i) {
      std::string path = "messages[" + std::to_string(i) + "]";
      const Json &message = (*inputs.messages)[i];
      if (!message.is_object())
        jinja::fail(path + " must be an object, not " + message.type_name());
      items.push_back(this->message(message, path, inputs));
    }
    return rt_.list(std::move(items));
  }

private:
  Value message(const Json &message, const std::string &path,
                const ChatInputs &inputs) {
    jinja::Runtime::DictBuilder dict(rt_);
    const Json *reasoning = nullptr;
    if (inputs.normalizeMessages) {
      for (const char *name : {"reasoning_content", "thinking", "reasoning"})
        if (auto it = message.find(name);
            !reasoning && it != message.end() && !it->is_null())
          reasoning = &*it;
      // The order of keys is that of {"thinking": r, **message, ...}.
      if (reasoning)
        dict.set(rt_.string("thinking"),
                 value(*reasoning, path + ".thinking", 2));
    }
    for (auto it = message.begin(); it != message.end(); ++it) {
      if (inputs.normalizeMessages && it.value().is_null())
        continue;
      std::string itemPath = path + "." + it.key();
      const auto &roles = inputs.templateRoles;
      bool trusted =
          it.key() == "role" && it.value().is_string() &&
          std::find(roles.begin(), roles.end(),
                    it.value().get_ref<const std::string &>()) != roles.end();
      dict.set(text(it.key(), path),
               trusted ? text(it.value().get_ref<const std::string &>(),
                              itemPath, Origin::Template)
                       : value(it.value(), itemPath, 2));
    }
    if (reasoning)
      dict.set(rt_.string("reasoning_content"),
               value(*reasoning, path + ".reasoning_content", 2));
    return dict.finish();
  }

  jinja::Runtime &rt_;
};

void defineInputs(jinja::Interpreter &in, const ChatInputs &inputs) {
  Importer import(in);
  auto special = [&](const std::string &name, const std::string &token) {
    in.define(name, import.text(token, name, Origin::Template));
  };
  for (auto &[name, token] : inputs.specialTokens)
    special(name, token);
  if (inputs.bosToken)
    special("bos_token", *inputs.bosToken);
  if (inputs.eosToken)
    special("eos_token", *inputs.eosToken);
  auto list = [&](const Json *json, const char *name) {
    if (json && !json->is_null() && !json->is_array())
      jinja::fail(std::string(name) + " must be an array, not " +
                  json->type_name());
    in.define(name, json ? import.value(*json, name) : Value::none());
  };
  if (inputs.kwargs && !inputs.kwargs->is_null()) {
    if (!inputs.kwargs->is_object())
      jinja::fail(std::string("chat_template_kwargs must be an object, not ") +
                  inputs.kwargs->type_name());
    for (auto it = inputs.kwargs->begin(); it != inputs.kwargs->end(); ++it) {
      for (const char *own :
           {"messages", "tools", "documents", "add_generation_prompt"})
        if (it.key() == own)
          jinja::fail("chat_template_kwargs must not set " +
                      jinja::quoted(own));
      in.define(it.key(),
                import.value(it.value(), "chat_template_kwargs." + it.key()));
    }
  }
  in.define("messages", import.messages(inputs));
  list(inputs.tools, "tools");
  list(inputs.documents, "documents");
  in.define("add_generation_prompt",
            Value::boolean(inputs.addGenerationPrompt));
}

std::vector<Rendered::Range>
publicRanges(const std::vector<jinja::ByteRange> &ranges) {
  std::vector<Rendered::Range> out;
  for (auto &range : ranges)
    out.push_back({range.begin, range.end});
  return out;
}

} // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  if (source.size() > maxTemplateBytes)
    return Status::invalid("chat template: " + std::to_string(source.size()) +
                           " bytes, at most " +
                           std::to_string(maxTemplateBytes));
  if (auto at = jinja::findInvalidUtf8(source))
    return Status::invalid("chat template: not valid UTF-8 at byte " +
                           std::to_string(*at));
  ChatTemplate out;
  try {
    INGOT_ASSIGN_OR_RETURN(out.program_,
                           jinja::parseProgram(jinja::normalizeSource(source)));
  } catch (const std::bad_alloc &) {
    return Status::outOfMemory("chat template: out of memory while parsing");
  }
  out.source_ = std::move(source);
  return out;
}

Result<Rendered> ChatTemplate::render(const ChatInputs &inputs) const {
  bool running = false;
  try {
    jinja::Interpreter in(*program_, inputs.limits, inputs.now);
    try {
      defineInputs(in, inputs);
      running = true;
      in.run();
    } catch (const jinja::Failure &failure) {
      if (!running)
        return Status(failure.code, "chat template: " + failure.message);
      return Status(failure.code, jinja::located(program_->source, in.offset(),
                                                 failure.message));
    }
    Rendered out;
    out.text = in.output().str();
    out.userRanges = publicRanges(in.output().userRanges());
    out.generationRanges = publicRanges(in.generations());
    return out;
  } catch (const std::bad_alloc &) {
    return Status::outOfMemory("chat template: out of memory while rendering");
  }
}

// --- sets of templates

Result<ChatTemplateSet> ChatTemplateSet::fromNamed(
    std::vector<std::pair<std::string, std::string>> nameAndSource) {
  ChatTemplateSet out;
  if (nameAndSource.empty())
    return Status::invalid("chat_template: the list of templates is empty");
  for (auto &[name, source] : nameAndSource) {
    auto parsed = ChatTemplate::parse(std::move(source));
    if (!parsed)
      return parsed.status().withContext("chat_template " +
                                         jinja::quoted(name));
    if (!out.templates_.emplace(name, std::move(*parsed)).second)
      return Status::invalid("chat_template: two templates are named " +
                             jinja::quoted(name));
  }
  return out;
}

Result<ChatTemplateSet> ChatTemplateSet::fromJson(const Json &chatTemplate) {
  if (chatTemplate.is_string())
    return fromNamed({{"default", chatTemplate.get<std::string>()}});
  if (!chatTemplate.is_array())
    return Status::invalid(
        std::string("chat_template must be a string or an array of {name, "
                    "template}, not ") +
        chatTemplate.type_name());
  std::vector<std::pair<std::string, std::string>> named;
  for (size_t i = 0; i < chatTemplate.size(); ++i) {
    const Json &entry = chatTemplate[i];
    std::string path = "chat_template[" + std::to_string(i) + "]";
    if (!entry.is_object())
      return Status::invalid(path + " must be an object, not " +
                             entry.type_name());
    for (auto it = entry.begin(); it != entry.end(); ++it)
      if (it.key() != "name" && it.key() != "template")
        return Status::invalid(path + " has an unknown key " +
                               jinja::quoted(it.key()));
    for (const char *key : {"name", "template"})
      if (!entry.contains(key) || !entry[key].is_string())
        return Status::invalid(path + "." + key + " must be a string");
    named.emplace_back(entry["name"].get<std::string>(),
                       entry["template"].get<std::string>());
  }
  return fromNamed(std::move(named));
}

std::vector<std::string> ChatTemplateSet::names() const {
  std::vector<std::string> out;
  for (auto &[name, unused] : templates_)
    out.push_back(name);
  return out;
}

Result<const ChatTemplate *>
ChatTemplateSet::choose(bool hasTools, const std::string &name) const {
  std::string known;
  for (auto &[other, unused] : templates_)
    known += (known.empty() ? "" : ", ") + jinja::quoted(other);
  if (!name.empty()) {
    auto it = templates_.find(name);
    if (it == templates_.end())
      return Status::notFound("no chat template is named " +
                              jinja::quoted(name) + "; there are " + known);
    return &it->second;
  }
  if (auto it = templates_.find("tool_use"); hasTools && it != templates_.end())
    return &it->second;
  if (auto it = templates_.find("default"); it != templates_.end())
    return &it->second;
  return Status::invalid("the model has several chat templates and none is "
                         "named 'default'; name one of " +
                         known);
}

Result<Rendered> ChatTemplateSet::render(const ChatInputs &inputs,
                                         const std::string &name) const {
  bool hasTools = inputs.tools && !inputs.tools->is_null();
  INGOT_ASSIGN_OR_RETURN(const ChatTemplate *chosen, choose(hasTools, name));
  return chosen->render(inputs);
}

} // namespace ingot
