// tokenizer.json, read as Hugging Face's fast tokenizers read it:
//   model (vocabulary, merges), added tokens, then the components around it;
//   last, which tokens are BOS, EOS and padding, from the files beside it.
#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "runtime/support/MappedFile.h"
#include "runtime/text/TokenHash.h"

#include <filesystem>
#include <unordered_map>

namespace ingot {
namespace {

using Json = nlohmann::json;

class HuggingFaceReader {
public:
  Result<TokenizerSpec> read(const HuggingFaceTokenizer &description) {
    INGOT_ASSIGN_OR_RETURN(
        Json document,
        parseStrictJson(description.tokenizerJson, "tokenizer.json"));
    INGOT_ASSIGN_OR_RETURN(ComponentReader root,
                           ComponentReader::create(document, "tokenizer.json"));
    // Truncation and padding shape batches for training; a server sets its own
    // limits.
    INGOT_RETURN_IF_ERROR(root.allowOnly(
        {"version", "truncation", "padding", "added_tokens", "normalizer",
         "pre_tokenizer", "post_processor", "decoder", "model"}));
    if (root.has("version")) {
      INGOT_ASSIGN_OR_RETURN(std::string version, root.string("version"));
      if (version != "1.0")
        return root.unsupported("version " + quoteName(version));
    }
    INGOT_ASSIGN_OR_RETURN(ComponentReader model, root.object("model"));
    INGOT_RETURN_IF_ERROR(readModel(model));
    INGOT_RETURN_IF_ERROR(readAddedTokens(root));
    INGOT_RETURN_IF_ERROR(readComponents(root));
    INGOT_RETURN_IF_ERROR(readSpecialTokens(description));
    return std::move(spec_);
  }

private:
  Result<int32_t> tokenId(const ComponentReader &where, const Json &value,
                          const std::string &what) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= MaxVocabSize)
      return where.invalid(what + ": expected an id from 0 to " +
                           std::to_string(MaxVocabSize - 1) + ", found " +
                           jsonForMessage(value));
    return value.get<int32_t>();
  }

  Status setToken(const ComponentReader &where, int32_t id,
                  const std::string &spelling, bool ofModel) {
    if (static_cast<size_t>(id) >= spec_.tokens.size())
      spec_.tokens.resize(static_cast<size_t>(id) + 1);
    TokenSpec &token = spec_.tokens[static_cast<size_t>(id)];
    if (token.present && token.spelling != spelling)
      return where.invalid("id " + std::to_string(id) + " is both " +
                           quoteName(token.spelling) + " and " +
                           quoteName(spelling));
    token.spelling = spelling;
    token.present = true;
    token.isModelToken |= ofModel;
    return Status::ok();
  }

  Status readModel(const ComponentReader &model) {
    std::string type = "BPE"; // old files do not say; only BPE has merges
    if (model.has("type") || !model.has("merges")) {
      INGOT_ASSIGN_OR_RETURN(type, model.string("type"));
    }
    if (type != "BPE")
      return model.unsupported("model " + quoteName(type) +
                               " (supported: BPE)");
    INGOT_RETURN_IF_ERROR(model.allowOnly(
        {"type", "dropout", "unk_token", "continuing_subword_prefix",
         "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
         "vocab", "merges"}));
    if (model.has("dropout") &&
        !(model.at("dropout").is_number() && model.at("dropout") == 0))
      return model.unsupported("\"dropout\" other than 0");
    for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (model.has(key) && model.at(key) != "")
        return model.unsupported("\"" + std::string(key) + "\" " +
                                 jsonForMessage(model.at(key)));
    INGOT_ASSIGN_OR_RETURN(spec_.fuseUnknown, model.boolean("fuse_unk", false));
    INGOT_ASSIGN_OR_RETURN(spec_.byteFallback,
                           model.boolean("byte_fallback", false));
    INGOT_ASSIGN_OR_RETURN(spec_.ignoreMerges,
                           model.boolean("ignore_merges", false));

    INGOT_ASSIGN_OR_RETURN(ComponentReader vocabulary, model.object("vocab"));
    for (const auto &[spelling, value] : model.at("vocab").items()) {
      INGOT_ASSIGN_OR_RETURN(int32_t id,
                             tokenId(vocabulary, value, quoteName(spelling)));
      INGOT_RETURN_IF_ERROR(setToken(vocabulary, id, spelling, true));
      if (!idOf_.emplace(spelling, id).second)
        return vocabulary.invalid(quoteName(spelling) + " is given twice");
    }
    if (model.has("unk_token")) {
      INGOT_ASSIGN_OR_RETURN(std::string unknown, model.string("unk_token"));
      auto it = idOf_.find(unknown);
      if (it == idOf_.end())
        return model.invalid("\"unk_token\" " + quoteName(unknown) +
                             " is not in the vocabulary");
      spec_.unknownId = it->second;
    }
    return readMerges(model);
  }

  // The space between the two tokens of a merge. Tokens may hold spaces of
  // their own: the separator is the one that leaves tokens, if just one does.
  size_t separator(const std::string &line) const {
    size_t first = line.find(' ');
    if (first == std::string::npos || line.find(' ', first + 1) == line.npos)
      return first;
    size_t found = std::string::npos;
    if (line.size() > LongestMergedToken)
      return found;
    for (size_t at = first; at != std::string::npos;
         at = line.find(' ', at + 1)) {
      std::string left = line.substr(0, at), right = line.substr(at + 1);
      if (!idOf_.contains(left) || !idOf_.contains(right) ||
          !idOf_.contains(left + right))
        continue;
      if (found != std::string::npos)
        return std::string::npos;
      found = at;
    }
    return found;
  }

  // Both spellings: "a b", cut at its separator, and ["a", "b"], never cut.
  Status readMerges(const ComponentReader &model) {
    INGOT_ASSIGN_OR_RETURN(const Json *merges, model.array("merges"));
    if (merges->empty())
      return model.invalid("\"merges\" is empty");
    std::string left, right;
    uint32_t rank = 0;
    for (size_t i = 0; i < merges->size(); ++i) {
      const Json &merge = (*merges)[i];
      auto wrong = [&](const std::string &what) {
        return model.invalid("merges[" + std::to_string(i) + "] " +
                             jsonForMessage(merge) + ": " + what);
      };
      if (merge.is_string()) {
        const auto &line = merge.get_ref<const std::string &>();
        if (line.starts_with("#version"))
          continue;
        size_t space = separator(line);
        if (space == std::string::npos)
          return wrong("expected two tokens of the vocabulary, that together "
                       "are a third, and one space between them");
        left = line.substr(0, space);
        right = line.substr(space + 1);
      } else if (merge.is_array() && merge.size() == 2 &&
                 merge[0].is_string() && merge[1].is_string()) {
        left = merge[0].get<std::string>();
        right = merge[1].get<std::string>();
      } else {
        return wrong("expected a string or a pair of strings");
      }
      auto leftIt = idOf_.find(left), rightIt = idOf_.find(right),
           resultIt = idOf_.find(left + right);
      if (leftIt == idOf_.end() || rightIt == idOf_.end() ||
          resultIt == idOf_.end())
        return wrong(quoteName(leftIt == idOf_.end()    ? left
                               : rightIt == idOf_.end() ? right
                                                        : left + right) +
                     " is not in the vocabulary");
      spec_.merges.push_back(
          {leftIt->second, rightIt->second, resultIt->second, rank++});
    }
    return Status::ok();
  }

  Status readAddedTokens(const ComponentReader &root) {
    if (!root.has("added_tokens"))
      return Status::ok();
    INGOT_ASSIGN_OR_RETURN(const Json *list, root.array("added_tokens"));
    for (size_t i = 0; i < list->size(); ++i) {
      INGOT_ASSIGN_OR_RETURN(
          ComponentReader token,
          ComponentReader::create((*list)[i], "tokenizer.json.added_tokens[" +
                                                  std::to_string(i) + "]"));
      INGOT_RETURN_IF_ERROR(
          token.allowOnly({"id", "content", "single_word", "lstrip", "rstrip",
                           "normalized", "special"}));
      AddedTokenSpec added;
      INGOT_ASSIGN_OR_RETURN(added.content, token.string("content"));
      if (!token.has("id"))
        return token.invalid("\"id\" is missing");
      INGOT_ASSIGN_OR_RETURN(added.id,
                             tokenId(token, token.at("id"), "\"id\""));
      INGOT_ASSIGN_OR_RETURN(added.special, token.boolean("special"));
      INGOT_ASSIGN_OR_RETURN(added.normalized, token.boolean("normalized"));
      INGOT_ASSIGN_OR_RETURN(added.lstrip, token.boolean("lstrip"));
      INGOT_ASSIGN_OR_RETURN(added.rstrip, token.boolean("rstrip"));
      INGOT_ASSIGN_OR_RETURN(added.singleWord, token.boolean("single_word"));
      if (added.content.empty())
        return token.invalid("\"content\" is empty");
      auto [it, isNew] = idOf_.emplace(added.content, added.id);
      if (!isNew && it->second != added.id)
        return token.invalid(quoteName(added.content) + " has id " +
                             std::to_string(added.id) + " here and " +
                             std::to_string(it->second) + " elsewhere");
      INGOT_RETURN_IF_ERROR(setToken(token, added.id, added.content, false));
      spec_.added.push_back(std::move(added));
    }
    return Status::ok();
  }

  Status readComponents(const ComponentReader &root) {
    auto component = [&](const char *key,
                         Status (*read)(const ComponentReader &,
                                        TokenizerSpec &)) -> Status {
      if (!root.has(key))
        return Status::ok();
      INGOT_ASSIGN_OR_RETURN(ComponentReader value, root.object(key));
      return read(value, spec_);
    };
    INGOT_RETURN_IF_ERROR(component("normalizer", readNormalizer));
    INGOT_RETURN_IF_ERROR(component("pre_tokenizer", readPreTokenizer));
    INGOT_RETURN_IF_ERROR(component("post_processor", readPostProcessor));
    if (!root.has("decoder"))
      return root.unsupported("no \"decoder\": tokens would be joined by "
                              "spaces");
    INGOT_RETURN_IF_ERROR(component("decoder", readDecoder));
    if (spec_.byteLevel != spec_.decoder.byteLevel)
      return root.unsupported("ByteLevel in only one of \"pre_tokenizer\" and "
                              "\"decoder\"");
    if (spec_.byteLevel && spec_.byteFallback)
      return root.unsupported("\"byte_fallback\" with ByteLevel");
    if (spec_.byteFallback && !spec_.decoder.byteFallback)
      return root.unsupported(
          "\"byte_fallback\" without the decoder ByteFallback");
    return Status::ok();
  }

  // "eos_token": "</s>" or {"content": "</s>", ...}. tokenizer_config.json goes
  // before special_tokens_map.json.
  Status readSpecialTokens(const HuggingFaceTokenizer &description) {
    const std::pair<const char *, std::optional<std::string_view>> files[] = {
        {"special_tokens_map.json", description.specialTokensMapJson},
        {"tokenizer_config.json", description.tokenizerConfigJson}};
    for (const auto &[name, text] : files) {
      if (!text)
        continue;
      INGOT_ASSIGN_OR_RETURN(Json document, parseStrictJson(*text, name));
      INGOT_ASSIGN_OR_RETURN(ComponentReader root,
                             ComponentReader::create(document, name));
      INGOT_RETURN_IF_ERROR(special(root, "bos_token", true, spec_.bosId));
      INGOT_RETURN_IF_ERROR(special(root, "eos_token", true, spec_.eosId));
      // Padding is often a token that the model never had.
      INGOT_RETURN_IF_ERROR(special(root, "pad_token", false, spec_.padId));
    }
    if (spec_.eosId)
      spec_.endIds.push_back(*spec_.eosId);
    return Status::ok();
  }

  Status special(const ComponentReader &root, const char *key, bool required,
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
                          " is not in tokenizer.json");
    return Status::ok();
  }

  TokenizerSpec spec_;
  std::unordered_map<std::string, int32_t> idOf_;
};

Result<std::optional<MappedFile>> openIfThere(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return std::optional<MappedFile>();
  INGOT_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  return std::optional<MappedFile>(std::move(file));
}

std::string_view textOf(const MappedFile &file) {
  return {reinterpret_cast<const char *>(file.bytes().data()),
          file.bytes().size()};
}

} // namespace

Result<std::vector<uint8_t>>
buildTokenizer(const HuggingFaceTokenizer &description) {
  INGOT_ASSIGN_OR_RETURN(TokenizerSpec spec,
                         HuggingFaceReader().read(description));
  auto tables = compileTokenizer(std::move(spec));
  if (!tables)
    return tables.status().withContext("tokenizer.json");
  return tables;
}

Result<std::vector<uint8_t>>
buildTokenizerFromFolder(const std::string &folder) {
  INGOT_ASSIGN_OR_RETURN(MappedFile tokenizer,
                         MappedFile::open(folder + "/tokenizer.json"));
  INGOT_ASSIGN_OR_RETURN(std::optional<MappedFile> config,
                         openIfThere(folder + "/tokenizer_config.json"));
  INGOT_ASSIGN_OR_RETURN(std::optional<MappedFile> map,
                         openIfThere(folder + "/special_tokens_map.json"));
  HuggingFaceTokenizer description;
  description.tokenizerJson = textOf(tokenizer);
  if (config)
    description.tokenizerConfigJson = textOf(*config);
  if (map)
    description.specialTokensMapJson = textOf(*map);
  auto tables = buildTokenizer(description);
  if (!tables)
    return tables.status().withContext(folder);
  return tables;
}

} // namespace ingot
