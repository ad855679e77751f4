#include "compiler/frontend/huggingface/TokenizerFiles.h"

#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/huggingface/FolderContents.h"
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"

#include <algorithm>
#include <charconv>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t maxTokenizerBytes = 512 << 20;
constexpr std::uint64_t maxTemplateBytes = 16 << 20;

Result<Json> readObject(const ModelFolder &folder, const std::string &name,
                        std::uint64_t maxBytes) {
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(name, maxBytes));
  INGOT_ASSIGN_OR_RETURN(auto json,
                         parseStrictJson(text, folder.path() + "/" + name));
  if (!json.is_object())
    return Status::invalid(folder.path() + "/" + name +
                           ": expected an object, found " +
                           jsonForMessage(json));
  return json;
}

// A special token is a string, or an object that holds it as "content".
std::optional<std::string> tokenText(const Json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_object() && value.contains("content") &&
      value["content"].is_string())
    return value["content"].get<std::string>();
  return std::nullopt;
}

std::optional<std::int64_t> idOf(const Json &value) {
  if (!value.is_number_integer() || value < 0 || value > 2147483647)
    return std::nullopt;
  return value.get<std::int64_t>();
}

// The id of a token in "added_tokens_decoder": {"2": {"content": "</s>"}}.
std::optional<std::int64_t> findInDecoder(const Json &config,
                                          const std::string &token) {
  auto decoder = config.find("added_tokens_decoder");
  if (decoder == config.end() || !decoder->is_object())
    return std::nullopt;
  for (const auto &item : decoder->items()) {
    if (tokenText(item.value()) != token)
      continue;
    std::int32_t id = 0;
    const std::string &key = item.key();
    auto [end, error] =
        std::from_chars(key.data(), key.data() + key.size(), id);
    if (error == std::errc() && end == key.data() + key.size() && id >= 0)
      return id;
  }
  return std::nullopt;
}

// The id of a token in tokenizer.json: among the added ones, else in the
// vocabulary, an object (BPE, WordPiece) or a list of pairs (Unigram).
std::optional<std::int64_t> findInTokenizer(const Json &tokenizer,
                                            const std::string &token) {
  auto added = tokenizer.find("added_tokens");
  if (added != tokenizer.end() && added->is_array())
    for (const Json &entry : *added)
      if (entry.is_object() && tokenText(entry) == token &&
          entry.contains("id"))
        return idOf(entry["id"]);
  auto model = tokenizer.find("model");
  if (model == tokenizer.end() || !model->is_object() ||
      !model->contains("vocab"))
    return std::nullopt;
  const Json &vocab = (*model)["vocab"];
  if (vocab.is_object()) {
    auto found = vocab.find(token);
    return found == vocab.end() ? std::nullopt : idOf(*found);
  }
  if (vocab.is_array())
    for (std::size_t i = 0; i < vocab.size(); ++i)
      if (vocab[i].is_array() && !vocab[i].empty() && vocab[i][0] == token)
        return static_cast<std::int64_t>(i);
  return std::nullopt;
}

// The end token by the files that name it, in the order in which the
// tokenizers of Hugging Face let them override each other.
Result<std::optional<std::string>> eosToken(const ModelFolder &folder,
                                            const Json &config) {
  Json special = Json::object();
  if (folder.has("special_tokens_map.json")) {
    INGOT_ASSIGN_OR_RETURN(
        special,
        readObject(folder, "special_tokens_map.json", maxTemplateBytes));
  }
  for (const Json *source : {&config, static_cast<const Json *>(&special)}) {
    auto found = source->find("eos_token");
    if (found == source->end() || found->is_null())
      continue;
    auto token = tokenText(*found);
    if (!token)
      return Status::invalid(folder.path() +
                             ": tokenizer eos_token: expected a string or an "
                             "object with \"content\", found " +
                             jsonForMessage(*found));
    return token;
  }
  return std::optional<std::string>();
}

// "chat_template" is one template, or a list of named ones.
Status addTemplates(const Json &value, const std::string &where,
                    std::vector<TemplateSource> &templates) {
  if (value.is_string()) {
    templates.push_back({"default", value.get<std::string>()});
    return Status::ok();
  }
  if (value.is_array()) {
    for (const Json &entry : value) {
      if (!entry.is_object() || !entry.contains("name") ||
          !entry.contains("template") || !entry["name"].is_string() ||
          !entry["template"].is_string())
        return Status::invalid(where + ": chat_template: expected objects "
                                       "with \"name\" and \"template\"");
      templates.push_back({entry["name"].get<std::string>(),
                           entry["template"].get<std::string>()});
    }
    return Status::ok();
  }
  return value.is_null() ? Status::ok()
                         : Status::invalid(where + ": chat_template: expected "
                                                   "a string or a list");
}

// A file of its own stands above the key in tokenizer_config.json.
Status readTemplates(const ModelFolder &folder, const Json &config,
                     std::vector<TemplateSource> &templates) {
  if (folder.has("chat_template.jinja")) {
    INGOT_ASSIGN_OR_RETURN(
        auto text, folder.readText("chat_template.jinja", maxTemplateBytes));
    templates.push_back({"default", text});
  } else if (folder.has("chat_template.json")) {
    INGOT_ASSIGN_OR_RETURN(
        auto json, readObject(folder, "chat_template.json", maxTemplateBytes));
    if (json.contains("chat_template"))
      INGOT_RETURN_IF_ERROR(addTemplates(json["chat_template"],
                                         folder.path() + "/chat_template.json",
                                         templates));
  } else if (config.contains("chat_template")) {
    INGOT_RETURN_IF_ERROR(addTemplates(config["chat_template"],
                                       folder.path() + "/tokenizer_config.json",
                                       templates));
  }
  if (folder.has("additional_chat_templates")) {
    INGOT_ASSIGN_OR_RETURN(
        auto inner,
        ModelFolder::open(folder.path() + "/additional_chat_templates"));
    INGOT_ASSIGN_OR_RETURN(auto names, inner.list());
    const std::string suffix = ".jinja";
    for (const std::string &name : names) {
      if (name.size() <= suffix.size() || !name.ends_with(suffix))
        continue;
      INGOT_ASSIGN_OR_RETURN(auto text, inner.readText(name, maxTemplateBytes));
      templates.push_back({name.substr(0, name.size() - suffix.size()), text});
    }
  }
  std::sort(templates.begin(), templates.end(),
            [](const TemplateSource &a, const TemplateSource &b) {
              return a.name < b.name;
            });
  for (std::size_t i = 1; i < templates.size(); ++i)
    if (templates[i].name == templates[i - 1].name)
      return Status::invalid(folder.path() + ": chat template " +
                             quoteName(templates[i].name) + " is given twice");
  return Status::ok();
}

} // namespace

Result<TokenizerFacts> readTokenizerFiles(const ModelFolder &folder) {
  TokenizerFacts facts;
  Json config = Json::object();
  if (folder.has("tokenizer_config.json")) {
    INGOT_ASSIGN_OR_RETURN(
        config, readObject(folder, "tokenizer_config.json", maxTokenizerBytes));
    INGOT_ASSIGN_OR_RETURN(facts.location.configPath,
                           folder.resolve("tokenizer_config.json"));
  }
  if (folder.has("tokenizer.json")) {
    facts.location.kind = TokenizerLocation::Kind::HuggingFaceJson;
    INGOT_ASSIGN_OR_RETURN(facts.location.path,
                           folder.resolve("tokenizer.json"));
  } else if (folder.has("tokenizer.model")) {
    facts.location.kind = TokenizerLocation::Kind::SentencePiece;
    INGOT_ASSIGN_OR_RETURN(facts.location.path,
                           folder.resolve("tokenizer.model"));
  } else {
    // Without this the model would be compiled as one that takes no text.
    INGOT_ASSIGN_OR_RETURN(auto names, folder.list());
    if (std::string other = insteadOfTokenizer(names); !other.empty())
      return Status::unsupported(
          folder.path() + ": the tokenizer in " + other +
          " is not read (tokenizer.json and SentencePiece's tokenizer.model "
          "are): tokenizer.json is written by "
          "AutoTokenizer.from_pretrained(OLD).save_pretrained(NEW) of "
          "transformers");
  }
  INGOT_RETURN_IF_ERROR(readTemplates(folder, config, facts.chatTemplates));

  INGOT_ASSIGN_OR_RETURN(auto eos, eosToken(folder, config));
  if (!eos)
    return facts;
  facts.eosId = findInDecoder(config, *eos);
  if (!facts.eosId &&
      facts.location.kind == TokenizerLocation::Kind::SentencePiece) {
    INGOT_ASSIGN_OR_RETURN(
        auto model, folder.readText("tokenizer.model", maxTokenizerBytes));
    INGOT_ASSIGN_OR_RETURN(facts.eosId, findSentencePiece(model, *eos));
  } else if (!facts.eosId && !facts.location.path.empty()) {
    INGOT_ASSIGN_OR_RETURN(auto tokenizer, readObject(folder, "tokenizer.json",
                                                      maxTokenizerBytes));
    facts.eosId = findInTokenizer(tokenizer, *eos);
  }
  if (!facts.eosId)
    return Status::invalid(folder.path() + ": tokenizer eos_token " +
                           quoteName(*eos) +
                           " is not among the tokens of its files");
  return facts;
}

} // namespace ingot
