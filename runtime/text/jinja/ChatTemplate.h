// Chat templates: Jinja source in, prompt out, exactly as Hugging Face
// transformers renders it (ImmutableSandboxedEnvironment, trim_blocks,
// lstrip_blocks, loop controls, `generation` tags). The result says which of
// its bytes came from the caller, so that the tokenizer never makes a control
// token of what a user wrote. Nothing is substituted: a template that cannot
// be rendered as Hugging Face would ends in an error with line and column.
#pragma once

#include "runtime/support/Status.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ingot {

// A hostile template ends at one of these with an error.
struct RenderLimits {
  uint64_t steps = 20'000'000;          // evaluations, iterations, text work
  size_t memoryBytes = size_t(1) << 29; // live values
  size_t outputBytes = size_t(64) << 20;
  uint32_t depth = 1000; // nested evaluations, macros included
};

struct ChatInputs {
  // Arrays of objects; a null pointer is Python's None (what Hugging Face
  // passes when the caller gives no tools or documents).
  const nlohmann::ordered_json *messages = nullptr;
  const nlohmann::ordered_json *tools = nullptr;
  const nlohmann::ordered_json *documents = nullptr;
  bool addGenerationPrompt = false;
  // The tokenizer's special tokens; absent ones are undefined.
  std::optional<std::string> bosToken;
  std::optional<std::string> eosToken;
  // Others that the tokenizer names: {"pad_token", "<pad>"} ...
  std::vector<std::pair<std::string, std::string>> specialTokens;
  // chat_template_kwargs: an object, or null. Its names win over the special
  // tokens; messages, tools, documents and add_generation_prompt are refused.
  const nlohmann::ordered_json *kwargs = nullptr;
  // What strftime_now formats: broken-down local time. No clock is read here.
  std::tm now{};
  // Values of messages[i]["role"] that count as the template's own text. Empty:
  // roles are user text like all else. Templates that build their control
  // tokens from the role ('<|' + message['role'] + '|>') need the roles that
  // the server admits listed here; only exact matches count.
  std::vector<std::string> templateRoles;
  // Since transformers 5: drops message keys whose value is null, and copies
  // reasoning between reasoning_content, thinking and reasoning.
  bool normalizeMessages = true;
  RenderLimits limits;
};

struct Rendered {
  // Half-open [begin, end) in bytes, sorted, apart from one another.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
    bool operator==(const Range &) const = default;
  };
  std::string text;
  std::vector<Range> userRanges;       // bytes that came from the inputs
  std::vector<Range> generationRanges; // what `generation` tags enclosed
};

namespace jinja {
struct Program;
}

// Immutable: render() may run on many threads at once.
class ChatTemplate {
public:
  static Result<ChatTemplate> parse(std::string source);
  Result<Rendered> render(const ChatInputs &inputs) const;
  const std::string &source() const { return source_; }

private:
  ChatTemplate() = default;
  std::string source_;
  std::shared_ptr<const jinja::Program> program_;
};

// The templates of one model: a single one, or a list of named ones.
class ChatTemplateSet {
public:
  // `chatTemplate`: the value of "chat_template" in a tokenizer configuration:
  // a string, or an array of {"name", "template"}.
  static Result<ChatTemplateSet>
  fromJson(const nlohmann::ordered_json &chatTemplate);
  static Result<ChatTemplateSet>
  fromNamed(std::vector<std::pair<std::string, std::string>> nameAndSource);

  // As Hugging Face picks: the named one if a name is given; else `tool_use`
  // if the request has tools and it exists; else `default`.
  Result<const ChatTemplate *> choose(bool hasTools,
                                      const std::string &name = "") const;
  Result<Rendered> render(const ChatInputs &inputs,
                          const std::string &name = "") const;
  std::vector<std::string> names() const;

private:
  ChatTemplateSet() = default;
  std::map<std::string, ChatTemplate> templates_;
};

} // namespace ingot
