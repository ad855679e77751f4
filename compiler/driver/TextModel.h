// Tokenizer and chat templates of a model folder, a tokenizer.json, a GGUF file
// or an artifact: what a person asks about without compiling or running it.
#pragma once

#include "runtime/support/Status.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/jinja/ChatTemplate.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ingot {

class TextModel {
public:
  static Result<TextModel> open(const std::string &path);

  const Tokenizer &tokenizer() const { return *tokenizer_; }
  // Fails where the model has no template.
  Result<ChatTemplateSet> templates() const;

private:
  TextModel() = default;
  std::shared_ptr<const void> owner_; // keeps the tables mapped or allocated
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::pair<std::string, std::string>> templates_; // name, source
};

} // namespace ingot
