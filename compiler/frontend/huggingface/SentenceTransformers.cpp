#include "compiler/frontend/huggingface/SentenceTransformers.h"

#include "compiler/frontend/StrictJson.h"

#include <algorithm>
#include <optional>

namespace ingot {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t maxBytes = 1 << 20;
constexpr std::uint64_t maxTokenizerBytes = 64 << 20;

// The object in a file whose keys are all among `known`.
Result<Json> checkedObject(const std::string &text, const std::string &where,
                           const std::vector<std::string> &known) {
  INGOT_ASSIGN_OR_RETURN(auto json, parseStrictJson(text, where));
  if (!json.is_object())
    return Status::invalid(where + ": expected an object, found " +
                           jsonForMessage(json));
  for (const auto &item : json.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      return Status::unsupported(where + ": unknown key " +
                                 quoteName(item.key()));
  return json;
}

// "sentence_transformers.models.Pooling" is a Pooling.
std::string moduleKind(const std::string &type) {
  if (type.rfind("sentence_transformers.", 0) != 0)
    return type;
  return type.substr(type.rfind('.') + 1);
}

// The pooling's config: one of its modes is on, as flags or by name.
Result<Pooling> readPooling(const std::string &text, const std::string &where,
                            std::int64_t hiddenSize) {
  INGOT_ASSIGN_OR_RETURN(
      auto json,
      checkedObject(text, where,
                    {"word_embedding_dimension", "embedding_dimension",
                     "pooling_mode", "pooling_mode_cls_token",
                     "pooling_mode_mean_tokens", "pooling_mode_max_tokens",
                     "pooling_mode_mean_sqrt_len_tokens",
                     "pooling_mode_weightedmean_tokens",
                     "pooling_mode_lasttoken", "include_prompt"}));
  std::vector<std::string> modes;
  for (const auto &item : json.items()) {
    const std::string &key = item.key();
    const Json &value = item.value();
    if (key == "include_prompt")
      continue; // there are no prompts that pooling could leave out
    if (key == "word_embedding_dimension" || key == "embedding_dimension") {
      if (value != hiddenSize)
        return Status::invalid(
            where + ": " + quoteName(key) + " is " + jsonForMessage(value) +
            ", the model's hidden size " + std::to_string(hiddenSize));
    } else if (key == "pooling_mode") {
      if (!value.is_string())
        return Status::invalid(where + ": \"pooling_mode\": expected a string");
      modes.push_back(value.get<std::string>());
    } else if (!value.is_boolean()) {
      return Status::invalid(where + ": " + quoteName(key) +
                             ": expected true or false");
    } else if (value.get<bool>()) {
      modes.push_back(key);
    }
  }
  if (modes.size() == 1) {
    if (modes[0] == "mean" || modes[0] == "pooling_mode_mean_tokens")
      return Pooling::Mean;
    if (modes[0] == "cls" || modes[0] == "pooling_mode_cls_token")
      return Pooling::Cls;
    if (modes[0] == "lasttoken" || modes[0] == "pooling_mode_lasttoken")
      return Pooling::Last;
  }
  std::string found;
  for (const std::string &mode : modes)
    found += (found.empty() ? "" : ", ") + quoteName(mode);
  return Status::unsupported(where +
                             ": expected one of mean, cls and last-token "
                             "pooling, found " +
                             (found.empty() ? "none" : found));
}

// Whether the tokenizer is BERT's that lowers what it is given.
Result<bool> lowersItself(const ModelFolder &folder) {
  const std::string name = "tokenizer.json";
  if (!folder.has(name))
    return false;
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(name, maxTokenizerBytes));
  INGOT_ASSIGN_OR_RETURN(auto json,
                         parseStrictJson(text, folder.path() + "/" + name));
  auto normalizer = json.is_object() ? json.find("normalizer") : json.end();
  return normalizer != json.end() && normalizer->is_object() &&
         normalizer->value("type", Json()) == "BertNormalizer" &&
         normalizer->value("lowercase", Json()) == true;
}

Status readLongest(const ModelFolder &folder, ModelSpec &spec) {
  const std::string name = "sentence_bert_config.json";
  if (!folder.has(name))
    return Status::ok();
  std::string where = folder.path() + "/" + name;
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(name, maxBytes));
  INGOT_ASSIGN_OR_RETURN(
      auto json,
      checkedObject(text, where, {"max_seq_length", "do_lower_case"}));
  // Texts that are lowered first are no others to a tokenizer that lowers.
  const Json lowers = json.value("do_lower_case", Json(false));
  if (lowers != false) {
    INGOT_ASSIGN_OR_RETURN(bool tokenizerLowers, lowersItself(folder));
    if (lowers != true || !tokenizerLowers)
      return Status::unsupported(
          where + ": \"do_lower_case\" is " + jsonForMessage(lowers) +
          ", expected false, or true beside a tokenizer.json that lowers texts "
          "itself");
  }
  const Json longest = json.value("max_seq_length", Json());
  if (longest.is_null())
    return Status::ok();
  if (!longest.is_number_integer() || longest < 1 ||
      longest > spec.contextLength)
    return Status::invalid(where + ": \"max_seq_length\": expected 1 to " +
                           std::to_string(spec.contextLength) + ", found " +
                           jsonForMessage(longest));
  if (longest == spec.contextLength)
    return Status::ok();
  spec.notes.push_back("the longest text has " + longest.dump() +
                       " tokens, as sentence_bert_config.json says, of " +
                       std::to_string(spec.contextLength) +
                       " that the model has positions for");
  spec.contextLength = longest.get<std::int64_t>();
  return Status::ok();
}

Status checkPrompts(const ModelFolder &folder) {
  const std::string name = "config_sentence_transformers.json";
  if (!folder.has(name))
    return Status::ok();
  std::string where = folder.path() + "/" + name;
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(name, maxBytes));
  INGOT_ASSIGN_OR_RETURN(
      auto json, checkedObject(text, where,
                               {"__version__", "prompts", "default_prompt_name",
                                "similarity_fn_name", "model_type"}));
  if (!json.value("default_prompt_name", Json()).is_null())
    return Status::unsupported(
        where + ": \"default_prompt_name\" is " +
        jsonForMessage(json["default_prompt_name"]) +
        ": a prompt before every text is not added here; expected null");
  return Status::ok();
}

} // namespace

Status readSentenceTransformers(const ModelFolder &folder, ModelSpec &spec) {
  const std::string name = "modules.json";
  if (!folder.has(name))
    return Status::ok();
  std::string where = folder.path() + "/" + name;
  INGOT_ASSIGN_OR_RETURN(auto text, folder.readText(name, maxBytes));
  INGOT_ASSIGN_OR_RETURN(auto modules, parseStrictJson(text, where));
  if (!modules.is_array())
    return Status::invalid(where + ": expected an array of modules");
  bool normalized = false;
  std::optional<Pooling> pooling;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    std::string here = where + "[" + std::to_string(i) + "]";
    const Json &module = modules[i];
    if (!module.is_object() || !module.value("type", Json()).is_string() ||
        !module.value("path", Json()).is_string())
      return Status::invalid(here + ": expected a module with \"type\" and "
                                    "\"path\"");
    const std::string type = module["type"], path = module["path"];
    const std::string kind = moduleKind(type);
    // In this order, each once.
    if (i == 0 && kind == "Transformer") {
      if (!path.empty())
        return Status::unsupported(here + ": a model in the folder " +
                                   quoteName(path) +
                                   "; expected it beside modules.json");
    } else if (i == 1 && kind == "Pooling") {
      INGOT_ASSIGN_OR_RETURN(auto config,
                             folder.readText(path, "config.json", maxBytes));
      INGOT_ASSIGN_OR_RETURN(
          pooling,
          readPooling(config, folder.path() + "/" + path + "/config.json",
                      spec.hiddenSize));
    } else if (i == 2 && kind == "Normalize") {
      normalized = true;
    } else {
      return Status::unsupported(here + ": module " + quoteName(type) +
                                 "; expected a Transformer, a Pooling, and "
                                 "perhaps a Normalize");
    }
  }
  if (!pooling)
    return Status::unsupported(where + ": has no module that pools");
  spec.embedding = EmbeddingSpec{*pooling, normalized};
  spec.notes.push_back(std::string("vectors are made as modules.json says: ") +
                       poolingName(*pooling) + " pooling, " +
                       (normalized ? "of length 1" : "of any length"));
  INGOT_RETURN_IF_ERROR(checkPrompts(folder));
  return readLongest(folder, spec);
}

} // namespace ingot
