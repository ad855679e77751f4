#include "tools/text/RenderText.h"

#include "tools/text/InputText.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace ingot {

CLI::App *addRenderFlags(CLI::App &app, RenderFlags &flags) {
  CLI::App *command =
      app.add_subcommand("render", "The prompt that the chat template makes");
  command
      ->add_option("MODEL", flags.path, "Model folder, GGUF file or artifact")
      ->required();
  command
      ->add_option("MESSAGES", flags.messagesFile,
                   "JSON file: a list of messages; - is standard input")
      ->required();
  command->add_option("--tools", flags.toolsFile, "JSON file: a list of tools");
  command->add_option("--documents", flags.documentsFile,
                      "JSON file: a list of documents");
  command->add_option(
      "--kwargs", flags.kwargs,
      "JSON object of further variables (chat_template_kwargs)");
  command->add_option("--template", flags.templateName,
                      "Template to use, by name");
  command->add_flag("--no-generation-prompt", flags.noGenerationPrompt,
                    "Leave out what opens the answer");
  command->add_flag("--json", flags.json,
                    "Text with the byte ranges that came from the messages");
  return command;
}

Status renderText(const ChatTemplateSet &templates, const Tokenizer &tokenizer,
                  const RenderFlags &flags) {
  using Json = nlohmann::ordered_json;
  ChatRequest request;
  INGOT_ASSIGN_OR_RETURN(
      request.messagesJson,
      readSomeText(flags.messagesFile, "a JSON list of messages"));
  // To the template no tools and an empty list are two things, so a file that
  // holds neither is refused.
  if (!flags.toolsFile.empty()) {
    INGOT_ASSIGN_OR_RETURN(
        request.toolsJson,
        readSomeText(flags.toolsFile, "a JSON list of tools"));
  }
  if (!flags.documentsFile.empty()) {
    INGOT_ASSIGN_OR_RETURN(
        request.documentsJson,
        readSomeText(flags.documentsFile, "a JSON list of documents"));
  }
  request.templateKwargsJson = flags.kwargs;
  request.templateName = flags.templateName;
  request.addGenerationPrompt = !flags.noGenerationPrompt;
  INGOT_ASSIGN_OR_RETURN(Rendered rendered,
                         renderChat(templates, tokenizer, request));
  if (!flags.json) {
    std::cout << forStandardOutput(rendered.text);
    return standardOutputStatus();
  }
  auto ranges = [](const std::vector<Rendered::Range> &list) {
    Json all = Json::array();
    for (const Rendered::Range &range : list)
      all.push_back({range.begin, range.end});
    return all;
  };
  Json report = {{"text", rendered.text},
                 {"user_ranges", ranges(rendered.userRanges)},
                 {"generation_ranges", ranges(rendered.generationRanges)}};
  std::cout << forStandardOutput(
                   report.dump(-1, ' ', false, Json::error_handler_t::replace))
            << "\n";
  return standardOutputStatus();
}

} // namespace ingot
