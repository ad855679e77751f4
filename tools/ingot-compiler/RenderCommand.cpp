// `render`: the prompt that the model's chat template makes of messages, by the
// same code as serving.
#include "compiler/driver/TextModel.h"
#include "runtime/engine/ChatPrompt.h"
#include "tools/ingot-compiler/Commands.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

struct RenderFlags {
  std::string path, messages, tools, documents, kwargs, templateName;
  bool noGenerationPrompt = false;
  bool json = false;
};

Status runRender(const RenderFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(TextModel model, TextModel::open(flags.path));
  INGOT_ASSIGN_OR_RETURN(ChatTemplateSet templates, model.templates());
  ChatRequest request;
  INGOT_ASSIGN_OR_RETURN(request.messagesJson, readText(flags.messages));
  if (!flags.tools.empty()) {
    INGOT_ASSIGN_OR_RETURN(request.toolsJson, readText(flags.tools));
  }
  if (!flags.documents.empty()) {
    INGOT_ASSIGN_OR_RETURN(request.documentsJson, readText(flags.documents));
  }
  request.templateKwargsJson = flags.kwargs;
  request.templateName = flags.templateName;
  request.addGenerationPrompt = !flags.noGenerationPrompt;
  INGOT_ASSIGN_OR_RETURN(Rendered rendered,
                         renderChat(templates, model.tokenizer(), request));
  if (!flags.json) {
    std::cout << rendered.text;
  } else {
    auto ranges = [](const std::vector<Rendered::Range> &list) {
      Json all = Json::array();
      for (const Rendered::Range &range : list)
        all.push_back({range.begin, range.end});
      return all;
    };
    std::cout << Json(
                     {{"text", rendered.text},
                      {"user_ranges", ranges(rendered.userRanges)},
                      {"generation_ranges", ranges(rendered.generationRanges)}})
                     .dump(-1, ' ', false, Json::error_handler_t::replace)
              << "\n";
  }
  std::cout.flush();
  return std::cout ? Status::ok()
                   : Status::io("standard output cannot be written");
}

} // namespace

Command addRenderCommand(CLI::App &app) {
  auto flags = std::make_shared<RenderFlags>();
  CLI::App *command =
      app.add_subcommand("render", "The prompt that the chat template makes");
  command
      ->add_option("MODEL", flags->path, "Model folder, GGUF file or artifact")
      ->required();
  command
      ->add_option("MESSAGES", flags->messages,
                   "JSON file: a list of messages; - is standard input")
      ->required();
  command->add_option("--tools", flags->tools, "JSON file: a list of tools");
  command->add_option("--documents", flags->documents,
                      "JSON file: a list of documents");
  command->add_option(
      "--kwargs", flags->kwargs,
      "JSON object of further variables (chat_template_kwargs)");
  command->add_option("--template", flags->templateName,
                      "Template to use, by name");
  command->add_flag("--no-generation-prompt", flags->noGenerationPrompt,
                    "Leave out what opens the answer");
  command->add_flag("--json", flags->json,
                    "Text with the byte ranges that came from the messages");
  return [flags] { return finish(runRender(*flags)); };
}

} // namespace ingot
