// `check`: whether a model will compile, and what that will take, as text or
// JSON; the exit code says it to scripts.
#include "compiler/driver/CheckModel.h"
#include "tools/ingot-compiler/Commands.h"
#include "tools/text/InputText.h"

#include <cstdio>
#include <memory>

namespace ingot {
namespace {

struct CheckFlags {
  CompileRequest request;
  std::string recipe;
  bool json = false;
};

int runCheck(CheckFlags &flags) {
  if (!flags.recipe.empty()) {
    Result<std::string> text = readText(flags.recipe);
    if (!text)
      return finish(text.status());
    if (Status status = applyRecipe(*text, flags.recipe, flags.request.options);
        !status)
      return finish(status);
  }
  mlir::MLIRContext context;
  prepareContext(context);
  CheckReport report = checkModel(context, flags.request);
  std::string text = flags.json ? checkJson(report) : checkTable(report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (Status status = standardOutputStatus(); !status)
    return finish(status);
  return exitCode(report.status);
}

} // namespace

Command addCheckCommand(CLI::App &app) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App *command = app.add_subcommand(
      "check", "Whether a model will compile, and what that will take");
  command
      ->add_option("MODEL", flags->request.modelPath,
                   "Hugging Face folder, GGUF or ONNX file, or .mlir stage")
      ->required();
  addModelOptions(*command, flags->request.options);
  command->add_option("--recipe", flags->recipe,
                      "JSON file of these options; flags win over it");
  command->add_option("--source-folder", flags->request.sourceFolder,
                      "Where the files of a stage without paths are");
  command
      ->add_option("--threads", flags->request.threads,
                   "Threads that the compilation will have")
      ->check(CLI::Range(1u, 256u));
  command->add_flag("--json", flags->json, "Print the report as JSON");
  command->footer(
      "Reads headers, tokenizer and a few tiles of weights; writes nothing.\n"
      "Done is: it will compile.");
  return [flags] { return runCheck(*flags); };
}

} // namespace ingot
