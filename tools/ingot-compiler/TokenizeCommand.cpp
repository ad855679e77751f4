// `tokenize` on whatever holds a tokenizer: a folder, a file or an artifact.
#include "compiler/driver/TextModel.h"
#include "tools/ingot-compiler/Commands.h"
#include "tools/text/TokenizeLines.h"

#include <memory>

namespace ingot {

Command addTokenizeCommand(CLI::App &app) {
  auto flags = std::make_shared<TokenizeFlags>();
  addTokenizeFlags(app, *flags);
  return [flags] {
    Result<TextModel> model = TextModel::open(flags->path);
    return finish(model ? tokenizeLines(model->tokenizer(), *flags)
                        : model.status());
  };
}

} // namespace ingot
