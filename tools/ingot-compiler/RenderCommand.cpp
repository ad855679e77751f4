// `render`: the prompt that the model's chat template makes of messages.
#include "compiler/driver/TextModel.h"
#include "tools/ingot-compiler/Commands.h"

#include <nlohmann/json.hpp>

#include <ctime>
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

Result<Json> readJson(const std::string &path) {
  INGOT_ASSIGN_OR_RETURN(std::string text, readText(path));
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded())
    return Status::invalid(path + ": is not JSON");
  return value;
}

Status runRender(const RenderFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(TextModel model, TextModel::open(flags.path));
  INGOT_ASSIGN_OR_RETURN(ChatTemplateSet templates, model.templates());
  INGOT_ASSIGN_OR_RETURN(Json messages, readJson(flags.messages));
  ChatInputs inputs;
  Json tools, documents, kwargs;
  inputs.messages = &messages;
  if (!flags.tools.empty()) {
    INGOT_ASSIGN_OR_RETURN(tools, readJson(flags.tools));
    inputs.tools = &tools;
  }
  if (!flags.documents.empty()) {
    INGOT_ASSIGN_OR_RETURN(documents, readJson(flags.documents));
    inputs.documents = &documents;
  }
  if (!flags.kwargs.empty()) {
    kwargs = Json::parse(flags.kwargs, nullptr, /*allow_exceptions=*/false);
    if (!kwargs.is_object())
      return Status::invalid("--kwargs: expected a JSON object");
    inputs.kwargs = &kwargs;
  }
  inputs.addGenerationPrompt = !flags.noGenerationPrompt;
  inputs.bosToken = model.bosToken();
  inputs.eosToken = model.eosToken();
  std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &inputs.now);
  INGOT_ASSIGN_OR_RETURN(Rendered rendered,
                         templates.render(inputs, flags.templateName));
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
      ->add_option("MESSAGES", flags->messages, "JSON file: a list of messages")
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
