// What an artifact holds beside plan, code and weights: the compiled tokenizer,
// the chat templates (each is parsed here, so that a broken one is found when
// the artifact is made), and the licence. Made from `plan.model` and the files
// that it names.
#pragma once

#include "compiler/package/PlanTranslation.h"
#include "runtime/support/Status.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ingot::package {

struct ModelAssets {
  std::vector<uint8_t> tokenizer; // empty where the model has none
  std::string templates;          // JSON list of {name, template}
  std::string licence;
  std::vector<InputFile> inputs;  // files read for the tokenizer
  std::vector<std::string> notes; // what was left out, a line each
};

// `sourceFolder` is where a tokenizer with a bare file name is looked for.
Result<ModelAssets> buildModelAssets(mlir::DictionaryAttr model,
                                     const std::string &sourceFolder);

// The tables of a tokenizer from a model folder, its tokenizer.json or a GGUF
// file; adds the files read to `inputs`. Added tokens of id `rows` and above are
// left out, and `notes`, if not null, says so.
Result<std::vector<uint8_t>>
buildTokenizerTables(const std::string &kind, const std::string &path,
                     const std::string &configPath,
                     std::vector<InputFile> &inputs,
                     std::optional<int32_t> rows = std::nullopt,
                     std::vector<std::string> *notes = nullptr);

} // namespace ingot::package
