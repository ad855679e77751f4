// `render`: the prompt that a model's chat template makes of messages, by the
// same code as serving.
#pragma once

#include "runtime/engine/ChatPrompt.h"
#include "runtime/support/Status.h"

#include <CLI/CLI.hpp>

#include <string>

namespace ingot {

struct RenderFlags {
  std::string path;         // of the model
  std::string messagesFile; // "-": standard input
  std::string toolsFile, documentsFile;
  std::string kwargs;
  std::string templateName;
  bool noGenerationPrompt = false;
  bool json = false;
};

// Adds the subcommand and its flags, which are filled when it is parsed.
CLI::App *addRenderFlags(CLI::App &app, RenderFlags &flags);

Status renderText(const ChatTemplateSet &templates, const Tokenizer &tokenizer,
                  const RenderFlags &flags);

} // namespace ingot
