#include "compiler/driver/TextModel.h"

#include "compiler/frontend/ImportModel.h"
#include "compiler/package/ModelAssets.h"
#include "runtime/plan/Artifact.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace ingot {
namespace {

// Tables must begin at a multiple of 8; vectors of bytes do.
struct OwnedTables {
  std::vector<uint8_t> bytes;
};

bool isArtifact(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char magic[sizeof(container::kMagic)] = {};
  file.read(magic, sizeof(magic));
  return file && std::memcmp(magic, container::kMagic, sizeof(magic)) == 0;
}

Status
readTemplates(std::span<const uint8_t> bytes,
              std::vector<std::pair<std::string, std::string>> &templates) {
  if (bytes.empty())
    return Status::ok();
  auto list = nlohmann::json::parse(bytes.begin(), bytes.end(), nullptr,
                                    /*allow_exceptions=*/false);
  if (!list.is_array())
    return Status::invalid("template segment: expected a JSON list");
  for (const auto &entry : list) {
    if (!entry.is_object() || !entry.contains("name") ||
        !entry["name"].is_string() || !entry.contains("template") ||
        !entry["template"].is_string())
      return Status::invalid("template segment: expected {name, template}");
    templates.emplace_back(entry["name"].get<std::string>(),
                           entry["template"].get<std::string>());
  }
  return Status::ok();
}

const char *kindName(TokenizerLocation::Kind kind) {
  switch (kind) {
  case TokenizerLocation::Kind::HuggingFaceJson:
    return "huggingface";
  case TokenizerLocation::Kind::Gguf:
    return "gguf";
  case TokenizerLocation::Kind::SentencePiece:
    return "sentencepiece";
  case TokenizerLocation::Kind::None:
    break;
  }
  return "none";
}

} // namespace

Result<TextModel> TextModel::open(const std::string &path) {
  TextModel model;
  std::span<const uint8_t> tables;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return Status::notFound(path + ": no such file or folder");
  if (std::filesystem::is_regular_file(path, error) && isArtifact(path)) {
    INGOT_ASSIGN_OR_RETURN(Artifact opened, Artifact::open(path));
    auto artifact = std::make_shared<Artifact>(std::move(opened));
    tables = artifact->segment(container::SegmentKind::Tokenizer);
    INGOT_RETURN_IF_ERROR(readTemplates(
        artifact->segment(container::SegmentKind::Template), model.templates_));
    model.owner_ = artifact;
    if (tables.empty())
      return Status::notFound(path + ": has no tokenizer");
  } else {
    auto owned = std::make_shared<OwnedTables>();
    std::vector<package::InputFile> inputs;
    std::string name = std::filesystem::path(path).filename().string();
    bool isSentencePiece = path.ends_with(".model");
    if (name == "tokenizer.json" || isSentencePiece) {
      std::filesystem::path config =
          std::filesystem::path(path).parent_path() / "tokenizer_config.json";
      INGOT_ASSIGN_OR_RETURN(
          owned->bytes,
          package::buildTokenizerTables(
              isSentencePiece ? "sentencepiece" : "huggingface", path,
              std::filesystem::exists(config, error) ? config.string() : "",
              inputs));
    } else {
      INGOT_ASSIGN_OR_RETURN(ModelSpec spec, importModel(path));
      if (spec.tokenizer.kind == TokenizerLocation::Kind::None)
        return Status::notFound(path + ": has no tokenizer");
      INGOT_ASSIGN_OR_RETURN(
          owned->bytes, package::buildTokenizerTables(
                            kindName(spec.tokenizer.kind), spec.tokenizer.path,
                            spec.tokenizer.configPath, inputs));
      for (const auto &entry : spec.chatTemplates)
        model.templates_.emplace_back(entry.name, entry.text);
    }
    tables = owned->bytes;
    model.owner_ = owned;
  }
  INGOT_ASSIGN_OR_RETURN(Tokenizer tokenizer, Tokenizer::open(tables));
  model.tokenizer_ = std::make_shared<const Tokenizer>(std::move(tokenizer));
  return model;
}

Result<ChatTemplateSet> TextModel::templates() const {
  if (templates_.empty())
    return Status::notFound("the model has no chat template");
  return ChatTemplateSet::fromNamed(templates_);
}

} // namespace ingot
