#include "compiler/frontend/tokenizer/SpecialTokens.h"

#include "runtime/text/TokenHash.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace ingot {

using Json = nlohmann::json;

Result<AddedTokenSpec> readAddedToken(const ComponentReader &token) {
  INGOT_RETURN_IF_ERROR(
      token.allowOnly({"id", "content", "single_word", "lstrip", "rstrip",
                       "normalized", "special"}));
  AddedTokenSpec added;
  INGOT_ASSIGN_OR_RETURN(added.content, token.string("content"));
  INGOT_ASSIGN_OR_RETURN(added.special, token.boolean("special"));
  INGOT_ASSIGN_OR_RETURN(added.normalized, token.boolean("normalized"));
  INGOT_ASSIGN_OR_RETURN(added.lstrip, token.boolean("lstrip"));
  INGOT_ASSIGN_OR_RETURN(added.rstrip, token.boolean("rstrip"));
  INGOT_ASSIGN_OR_RETURN(added.singleWord, token.boolean("single_word"));
  if (added.content.empty())
    return token.invalid("\"content\" is empty");
  return added;
}

// "eos_token": "</s>" or {"content": "</s>", ...}.
Status SpecialTokenReader::readOne(const ComponentReader &root, const char *key,
                                   bool required,
                                   std::optional<int32_t> &out) const {
  if (!root.has(key))
    return Status::ok();
  std::string content;
  if (root.at(key).is_object()) {
    INGOT_ASSIGN_OR_RETURN(ComponentReader token, root.object(key));
    INGOT_ASSIGN_OR_RETURN(content, token.string("content"));
  } else {
    INGOT_ASSIGN_OR_RETURN(content, root.string(key));
  }
  auto it = idOf_.find(content);
  if (it != idOf_.end())
    out = it->second;
  else if (required)
    return root.invalid("\"" + std::string(key) + "\" " + quoteName(content) +
                        " is not in the vocabulary");
  return Status::ok();
}

Status SpecialTokenReader::read(const Text &specialTokensMap,
                                const Text &tokenizerConfig) {
  const std::pair<const char *, Text> files[] = {
      {"special_tokens_map.json", specialTokensMap},
      {"tokenizer_config.json", tokenizerConfig}};
  for (const auto &[name, text] : files) {
    if (!text)
      continue;
    INGOT_ASSIGN_OR_RETURN(Json document, parseStrictJson(*text, name));
    INGOT_ASSIGN_OR_RETURN(ComponentReader root,
                           ComponentReader::create(document, name));
    INGOT_RETURN_IF_ERROR(readOne(root, "bos_token", true, spec_.bosId));
    INGOT_RETURN_IF_ERROR(readOne(root, "eos_token", true, spec_.eosId));
    // Padding is often a token that the model never had.
    INGOT_RETURN_IF_ERROR(readOne(root, "pad_token", false, spec_.padId));
  }
  if (spec_.eosId)
    spec_.endIds.push_back(*spec_.eosId);
  return Status::ok();
}

Status SpecialTokenReader::readAddedTokens(const Text &tokenizerConfig) {
  if (!tokenizerConfig)
    return Status::ok();
  INGOT_ASSIGN_OR_RETURN(
      Json document,
      parseStrictJson(*tokenizerConfig, "tokenizer_config.json"));
  INGOT_ASSIGN_OR_RETURN(
      ComponentReader root,
      ComponentReader::create(document, "tokenizer_config.json"));
  if (!root.has("added_tokens_decoder"))
    return Status::ok();
  INGOT_ASSIGN_OR_RETURN(ComponentReader all,
                         root.object("added_tokens_decoder"));
  const size_t idLimit =
      idLimitOf(spec_.tokens.size() + root.at("added_tokens_decoder").size());
  for (const auto &[key, value] : root.at("added_tokens_decoder").items()) {
    uint32_t id = 0;
    auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() ||
        id >= idLimit)
      return all.invalid(quoteName(key) + ": expected an id from 0 to " +
                         std::to_string(idLimit - 1));
    INGOT_ASSIGN_OR_RETURN(
        ComponentReader token,
        ComponentReader::create(value, all.path() + "." + key));
    INGOT_ASSIGN_OR_RETURN(AddedTokenSpec added, readAddedToken(token));
    added.id = static_cast<int32_t>(id);
    auto [it, isNew] = idOf_.emplace(added.content, added.id);
    if (id >= spec_.tokens.size())
      spec_.tokens.resize(id + size_t(1));
    TokenSpec &spelled = spec_.tokens[id];
    if (it->second != added.id ||
        (spelled.present && spelled.spelling != added.content))
      return token.invalid(quoteName(added.content) +
                           " is another token in the vocabulary");
    spelled.spelling = added.content;
    spelled.present = true;
    std::erase_if(spec_.added, [&](const AddedTokenSpec &other) {
      return other.id == added.id;
    });
    spec_.added.push_back(std::move(added));
  }
  return Status::ok();
}

// "added_tokens_decoder", by ascending number. The number itself says nothing:
// a token that the vocabulary has keeps its id, another gets the next.
Status SpecialTokenReader::addListedTokens(const ComponentReader &root) {
  if (!root.has("added_tokens_decoder"))
    return Status::ok();
  INGOT_ASSIGN_OR_RETURN(ComponentReader all,
                         root.object("added_tokens_decoder"));
  std::map<uint64_t, AddedTokenSpec> listed;
  for (const auto &[key, value] : root.at("added_tokens_decoder").items()) {
    uint64_t number = 0;
    auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size())
      return all.invalid(quoteName(key) + ": expected an id");
    INGOT_ASSIGN_OR_RETURN(
        ComponentReader token,
        ComponentReader::create(value, all.path() + "." + key));
    INGOT_ASSIGN_OR_RETURN(listed[number], readAddedToken(token));
  }
  for (auto &[number, added] : listed) {
    if (auto it = idOf_.find(added.content); it != idOf_.end()) {
      added.id = it->second;
      auto same = std::find_if(
          spec_.added.begin(), spec_.added.end(),
          [id = added.id](const auto &other) { return other.id == id; });
      if (same != spec_.added.end()) {
        added.special |= same->special; // once special, always
        *same = added;
        continue;
      }
    } else {
      if (spec_.tokens.size() >= MaxVocabSize)
        return all.unsupported("more than " + std::to_string(MaxVocabSize) +
                               " tokens");
      added.id = static_cast<int32_t>(spec_.tokens.size());
      spec_.tokens.push_back({.spelling = added.content, .present = true});
      idOf_[added.content] = added.id;
    }
    spec_.added.push_back(added);
  }
  return Status::ok();
}

// A special token by its text, or as an object with flags.
void SpecialTokenReader::addNamedToken(const Json &value) {
  AddedTokenSpec added;
  added.special = true;
  auto flag = [&](const char *key) {
    return value.is_object() && value.contains(key) && value[key] == true;
  };
  if (value.is_string())
    added.content = value.get<std::string>();
  else if (value.is_object() && value.contains("content") &&
           value["content"].is_string())
    added.content = value["content"].get<std::string>();
  auto it = idOf_.find(added.content);
  if (added.content.empty() || it == idOf_.end())
    return;
  added.id = it->second;
  for (AddedTokenSpec &other : spec_.added)
    if (other.id == added.id) {
      other.special = true;
      return;
    }
  added.lstrip = flag("lstrip");
  added.rstrip = flag("rstrip");
  added.singleWord = flag("single_word");
  added.normalized = flag("normalized");
  spec_.added.push_back(std::move(added));
}

Status SpecialTokenReader::addConfiguredTokens(const Text &specialTokensMap,
                                               const Text &tokenizerConfig) {
  const std::pair<const char *, Text> files[] = {
      {"tokenizer_config.json", tokenizerConfig},
      {"special_tokens_map.json", specialTokensMap}};
  for (const auto &[name, text] : files) {
    if (!text)
      continue;
    INGOT_ASSIGN_OR_RETURN(Json document, parseStrictJson(*text, name));
    INGOT_ASSIGN_OR_RETURN(ComponentReader root,
                           ComponentReader::create(document, name));
    if (&text == &files[0].second) // the other file lists none by id
      INGOT_RETURN_IF_ERROR(addListedTokens(root));
    for (const char *key : {"bos_token", "eos_token", "unk_token", "sep_token",
                            "pad_token", "cls_token", "mask_token"})
      if (root.has(key))
        addNamedToken(root.at(key));
    for (const char *key :
         {"extra_special_tokens", "additional_special_tokens"})
      if (root.has(key) && root.at(key).is_structured())
        for (const Json &value : root.at(key))
          addNamedToken(value);
  }
  return Status::ok();
}

void dropTokensBeyond(TokenizerSpec &spec, int32_t rows,
                      std::vector<std::string> &leftOut) {
  auto isBeyond = [&](int32_t id) {
    return id >= rows && !spec.tokens[static_cast<size_t>(id)].isModelToken;
  };
  for (const AddedTokenSpec &added : spec.added)
    if (isBeyond(added.id)) {
      leftOut.push_back("token " + quoteName(added.content) + " of id " +
                        std::to_string(added.id) +
                        " is left out: the model has rows for ids below " +
                        std::to_string(rows));
      spec.tokens[static_cast<size_t>(added.id)] = {};
    }
  std::erase_if(spec.added, [&](const AddedTokenSpec &added) {
    return isBeyond(added.id);
  });
  while (spec.tokens.size() > static_cast<size_t>(rows) &&
         !spec.tokens.back().present)
    spec.tokens.pop_back();
  if (spec.padId && static_cast<size_t>(*spec.padId) >= spec.tokens.size())
    spec.padId.reset();
}

Result<SpecialTokenReader::Around>
SpecialTokenReader::readAround(const Text &tokenizerConfig) {
  Around around;
  if (!tokenizerConfig)
    return around;
  INGOT_ASSIGN_OR_RETURN(
      Json document,
      parseStrictJson(*tokenizerConfig, "tokenizer_config.json"));
  INGOT_ASSIGN_OR_RETURN(
      ComponentReader root,
      ComponentReader::create(document, "tokenizer_config.json"));
  INGOT_ASSIGN_OR_RETURN(bool legacy, root.boolean("legacy", true));
  around.prefixOnce = !legacy;
  // What is not written is the habit of the class.
  std::string name;
  if (root.has("tokenizer_class")) {
    INGOT_ASSIGN_OR_RETURN(name, root.string("tokenizer_class"));
  }
  bool startsWithBos = name.starts_with("Llama") || name.starts_with("Gemma") ||
                       name.starts_with("CodeLlama");
  bool endsWithEos = name.starts_with("T5");
  if (!startsWithBos && !endsWithEos &&
      !(root.has("add_bos_token") && root.has("add_eos_token")))
    return root.unsupported("tokenizer_class " + quoteName(name) +
                            " without \"add_bos_token\" and "
                            "\"add_eos_token\": what goes around a text is not "
                            "known");
  INGOT_ASSIGN_OR_RETURN(bool bos,
                         root.boolean("add_bos_token", startsWithBos));
  INGOT_ASSIGN_OR_RETURN(bool eos, root.boolean("add_eos_token", endsWithEos));
  if ((bos && !spec_.bosId) || (eos && !spec_.eosId))
    return root.invalid(bos && !spec_.bosId ? "no \"bos_token\" to add"
                                            : "no \"eos_token\" to add");
  if (bos)
    spec_.prefixIds.push_back(*spec_.bosId);
  if (eos)
    spec_.suffixIds.push_back(*spec_.eosId);
  return around;
}

} // namespace ingot
