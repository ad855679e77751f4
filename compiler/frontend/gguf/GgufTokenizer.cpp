#include "compiler/frontend/gguf/GgufTokenizer.h"

#include "compiler/frontend/StrictJson.h"

#include <limits>
#include <map>

namespace ingot {
namespace {

const std::string prefix = "tokenizer.ggml.";

// Keys that do not change how text becomes tokens, each with the reason.
const std::map<std::string, const char *> ignoredKeys = {
    {"tokenizer.huggingface.json", "a copy; the ggml keys decide"},
    {"tokenizer.chat_template", "read with the model"},
    {"tokenizer.chat_templates", "the names of those read with the model"},
    {"tokenizer.ggml.token_type_count", "the model's own, of segments"},
    {"tokenizer.ggml.mask_token_id", "names a token, which nothing adds"},
    {"tokenizer.ggml.prefix_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.suffix_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.middle_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.fim_pre_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.fim_suf_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.fim_mid_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.fim_pad_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.fim_rep_token_id", "for infilling, which is not done"},
    {"tokenizer.ggml.fim_sep_token_id", "for infilling, which is not done"},
};

class VocabularyReader {
public:
  explicit VocabularyReader(const GgufFile &file) : file_(file) {}
  Result<GgufVocabulary> read();

private:
  // The value of a key, which is thereby accounted for; null when absent.
  const GgufValue *take(const std::string &key) {
    used_[prefix + key] = true;
    return file_.find(prefix + key);
  }
  Status wrong(const std::string &key, const std::string &expected) const {
    return Status::invalid(file_.name() + ": " + quoteName(prefix + key) +
                           ": expected " + expected);
  }
  Status text(const std::string &key, std::string &result, bool required);
  Status texts(const std::string &key, std::vector<std::string> &result);
  Status id(const std::string &key, std::optional<std::int32_t> &result);
  Status flag(const std::string &key, std::optional<bool> &result);
  Status expectOff(const std::string &key);
  Status checkKeys() const;

  const GgufFile &file_;
  std::map<std::string, bool, std::less<>> used_;
  std::size_t tokenCount_ = 0;
};

Status VocabularyReader::text(const std::string &key, std::string &result,
                              bool required) {
  const GgufValue *value = take(key);
  if (!value)
    return required ? wrong(key, "a string, found none") : Status::ok();
  auto found = value->asString();
  if (!found)
    return wrong(key, "a string");
  result = *found;
  return Status::ok();
}

Status VocabularyReader::texts(const std::string &key,
                               std::vector<std::string> &result) {
  const GgufValue *value = take(key);
  if (!value)
    return Status::ok();
  auto found = value->asStrings();
  if (!found)
    return wrong(key, "an array of strings");
  result.assign(found->begin(), found->end());
  return Status::ok();
}

Status VocabularyReader::id(const std::string &key,
                            std::optional<std::int32_t> &result) {
  const GgufValue *value = take(key);
  if (!value)
    return Status::ok();
  auto found = value->asInteger();
  if (!found || *found < 0 || std::uint64_t(*found) >= tokenCount_)
    return wrong(key,
                 "an id below the " + std::to_string(tokenCount_) + " tokens");
  result = static_cast<std::int32_t>(*found);
  return Status::ok();
}

Status VocabularyReader::flag(const std::string &key,
                              std::optional<bool> &result) {
  const GgufValue *value = take(key);
  if (!value)
    return Status::ok();
  auto found = value->asBool();
  if (!found)
    return wrong(key, "a bool");
  result = *found;
  return Status::ok();
}

// Something that would change the tokens and that the builder does not do.
Status VocabularyReader::expectOff(const std::string &key) {
  std::optional<bool> value;
  INGOT_RETURN_IF_ERROR(flag(key, value));
  if (value.value_or(false))
    return Status::unsupported(file_.name() + ": unsupported " +
                               quoteName(prefix + key) + " true");
  return Status::ok();
}

Status VocabularyReader::checkKeys() const {
  std::string unknown;
  for (const auto &[key, value] : file_.metadata()) {
    if (key.rfind("tokenizer.", 0) != 0 || used_.count(key) ||
        ignoredKeys.count(key) || key.rfind("tokenizer.chat_template.", 0) == 0)
      continue;
    unknown += (unknown.empty() ? "" : ", ") + quoteName(key);
  }
  if (!unknown.empty())
    return Status::invalid(file_.name() +
                           ": unknown tokenizer metadata keys: " + unknown);
  return Status::ok();
}

Result<GgufVocabulary> VocabularyReader::read() {
  GgufVocabulary vocabulary;
  INGOT_RETURN_IF_ERROR(text("model", vocabulary.model, true));
  INGOT_RETURN_IF_ERROR(text("pre", vocabulary.pre, false));
  INGOT_RETURN_IF_ERROR(texts("tokens", vocabulary.tokens));
  INGOT_RETURN_IF_ERROR(texts("merges", vocabulary.merges));
  tokenCount_ = vocabulary.tokens.size();
  if (tokenCount_ == 0)
    return wrong("tokens", "an array of tokens, found none");

  if (const GgufValue *types = take("token_type")) {
    auto found = types->asIntegers();
    if (!found || found->size() != tokenCount_)
      return wrong("token_type", "an integer for each token");
    for (std::int64_t type : *found) {
      if (type < 0 || type > std::numeric_limits<std::int32_t>::max())
        return wrong("token_type", "integers of 0 or more");
      vocabulary.types.push_back(static_cast<std::int32_t>(type));
    }
  }
  if (const GgufValue *scores = take("scores")) {
    auto found = scores->asFloats();
    if (!found || found->size() != tokenCount_)
      return wrong("scores", "a number for each token");
    for (double score : *found)
      vocabulary.scores.push_back(static_cast<float>(score));
  }
  INGOT_RETURN_IF_ERROR(id("bos_token_id", vocabulary.bosId));
  INGOT_RETURN_IF_ERROR(id("eos_token_id", vocabulary.eosId));
  INGOT_RETURN_IF_ERROR(id("unknown_token_id", vocabulary.unknownId));
  INGOT_RETURN_IF_ERROR(id("padding_token_id", vocabulary.padId));
  INGOT_RETURN_IF_ERROR(id("eot_token_id", vocabulary.eotId));
  INGOT_RETURN_IF_ERROR(id("eom_token_id", vocabulary.eomId));
  INGOT_RETURN_IF_ERROR(id("cls_token_id", vocabulary.clsId));
  INGOT_RETURN_IF_ERROR(id("seperator_token_id", vocabulary.sepId));
  INGOT_RETURN_IF_ERROR(flag("add_bos_token", vocabulary.addBos));
  INGOT_RETURN_IF_ERROR(flag("add_eos_token", vocabulary.addEos));
  INGOT_RETURN_IF_ERROR(flag("add_space_prefix", vocabulary.addSpacePrefix));
  // WordPiece models have always put it there, whether the file says so or not.
  if (vocabulary.model != "bert")
    INGOT_RETURN_IF_ERROR(expectOff("add_sep_token"));
  else
    take("add_sep_token");
  INGOT_RETURN_IF_ERROR(expectOff("remove_extra_whitespaces"));
  INGOT_RETURN_IF_ERROR(checkKeys());
  return vocabulary;
}

} // namespace

Result<GgufVocabulary> readGgufVocabulary(const GgufFile &file) {
  return VocabularyReader(file).read();
}

} // namespace ingot
