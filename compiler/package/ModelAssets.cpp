#include "compiler/package/ModelAssets.h"

#include "compiler/frontend/gguf/GgufTokenizer.h"
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "compiler/package/OutputFile.h"
#include "runtime/support/MappedFile.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/jinja/ChatTemplate.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

using namespace mlir;

namespace ingot::package {
namespace {

std::string text(DictionaryAttr dictionary, StringRef key) {
  auto value = dictionary.getAs<StringAttr>(key);
  return value ? value.str() : std::string();
}

std::string_view view(const MappedFile &file) {
  return {reinterpret_cast<const char *>(file.bytes().data()),
          file.bytes().size()};
}

InputFile inputOf(const MappedFile &file) {
  return {std::filesystem::path(file.path()).filename(), file.bytes().size(),
          xxh3Text(file.bytes())};
}

// tokenizer.json or a SentencePiece model, and what lies beside it.
template <typename Description>
Result<std::vector<uint8_t>>
fromFiles(const std::string &path, const std::string &configPath,
          std::string_view Description::*main, std::vector<InputFile> &inputs,
          std::optional<int32_t> rows, std::vector<std::string> *notes) {
  Description description;
  description.rows = rows;
  description.leftOut = notes;
  INGOT_ASSIGN_OR_RETURN(MappedFile tokenizer, MappedFile::open(path));
  description.*main = view(tokenizer);
  inputs.push_back(inputOf(tokenizer));
  MappedFile config, special;
  if (!configPath.empty()) {
    INGOT_ASSIGN_OR_RETURN(config, MappedFile::open(configPath));
    description.tokenizerConfigJson = view(config);
    inputs.push_back(inputOf(config));
  }
  std::filesystem::path specialPath =
      std::filesystem::path(path).parent_path() / "special_tokens_map.json";
  std::error_code error;
  if (std::filesystem::exists(specialPath, error)) {
    INGOT_ASSIGN_OR_RETURN(special, MappedFile::open(specialPath));
    description.specialTokensMapJson = view(special);
    inputs.push_back(inputOf(special));
  }
  return buildTokenizer(description);
}

Result<std::string> templatesJson(ArrayAttr templates) {
  if (templates.empty())
    return std::string(); // no segment
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::set<std::string> names;
  for (auto entry : templates.getAsRange<DictionaryAttr>()) {
    std::string name = text(entry, "name"), source = text(entry, "text");
    if (!names.insert(name).second)
      return Status::invalid("chat template \"" + name + "\" stands twice");
    if (Result<ChatTemplate> parsed = ChatTemplate::parse(source); !parsed)
      return parsed.status().withContext("chat template \"" + name + "\"");
    list.push_back({{"name", name}, {"template", source}});
  }
  // The parser has refused what is not UTF-8; should it not have, the writer of
  // JSON replaces it rather than throw.
  return list.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace

Result<std::vector<uint8_t>> buildTokenizerTables(
    const std::string &kind, const std::string &path,
    const std::string &configPath, std::vector<InputFile> &inputs,
    std::optional<int32_t> rows, std::vector<std::string> *notes) {
  if (kind == "huggingface")
    return fromFiles(path, configPath, &HuggingFaceTokenizer::tokenizerJson,
                     inputs, rows, notes);
  if (kind == "sentencepiece")
    return fromFiles(path, configPath, &SentencePieceTokenizer::model, inputs,
                     rows, notes);
  if (kind != "gguf")
    return Status::unsupported("tokenizer kind \"" + kind +
                               "\" (huggingface, sentencepiece or gguf)");
  INGOT_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(path));
  Result<GgufVocabulary> vocabulary = readGgufVocabulary(file);
  if (!vocabulary)
    return vocabulary.status().withContext(path);
  return buildTokenizer(*vocabulary);
}

Result<ModelAssets> buildModelAssets(DictionaryAttr model,
                                     const std::string &sourceFolder) {
  ModelAssets assets;
  auto tokenizer = model.getAs<DictionaryAttr>("tokenizer");
  if (std::string kind = text(tokenizer, "kind"); kind != "none") {
    auto locate = [&](const std::string &path) {
      bool isBare = !path.empty() && path.find('/') == std::string::npos;
      return isBare && !sourceFolder.empty() ? sourceFolder + "/" + path : path;
    };
    int64_t vocab = model.getAs<IntegerAttr>("vocab").getInt();
    INGOT_ASSIGN_OR_RETURN(
        assets.tokenizer,
        buildTokenizerTables(kind, locate(text(tokenizer, "path")),
                             locate(text(tokenizer, "config")), assets.inputs,
                             static_cast<int32_t>(vocab), &assets.notes));
    // A token without a row in the embedding could never be run.
    Result<Tokenizer> opened = Tokenizer::open(assets.tokenizer);
    if (!opened)
      return opened.status().withContext("compiled tokenizer");
    if (opened->vocabSize() > vocab)
      return Status::invalid(
          "the tokenizer has " + std::to_string(opened->vocabSize()) +
          " tokens, the model's embedding " + std::to_string(vocab) + " rows");
  }
  INGOT_ASSIGN_OR_RETURN(assets.templates,
                         templatesJson(model.getAs<ArrayAttr>("templates")));
  assets.licence = text(model, "licence");
  if (std::string card = text(model, "model_card"); !card.empty())
    assets.licence += (assets.licence.empty() ? "" : "\n\n") + card;
  return assets;
}

} // namespace ingot::package
