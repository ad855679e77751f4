// `render` on whatever holds a chat template: a folder, a file or an artifact.
#include "compiler/driver/TextModel.h"
#include "tools/ingot-compiler/Commands.h"
#include "tools/text/RenderText.h"

#include <memory>

namespace ingot {
namespace {

Status render(const RenderFlags &flags) {
  INGOT_ASSIGN_OR_RETURN(TextModel model, TextModel::open(flags.path));
  INGOT_ASSIGN_OR_RETURN(ChatTemplateSet templates, model.templates());
  return renderText(templates, model.tokenizer(), flags);
}

} // namespace

Command addRenderCommand(CLI::App &app) {
  auto flags = std::make_shared<RenderFlags>();
  addRenderFlags(app, *flags);
  return [flags] { return finish(render(*flags)); };
}

} // namespace ingot
