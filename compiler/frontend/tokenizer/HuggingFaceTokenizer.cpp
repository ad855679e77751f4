// tokenizer.json, read as Hugging Face's fast tokenizers read it:
//   model (vocabulary, merges), added tokens, then the components around it;
//   last, which tokens are BOS, EOS and padding, from the files beside it.
#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"
#include "compiler/frontend/tokenizer/SpecialTokens.h"
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "runtime/support/MappedFile.h"
#include "runtime/text/TokenHash.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <unordered_map>

namespace ingot {
namespace {

using Json = nlohmann::json;

// What an unknown character costs in a Unigram model, below the least score.
constexpr double UnknownPenalty = 10;

// The library's JSON reader makes a number of its digits and a power of ten,
// which rounds twice. Ways to cut a text that score the same are told apart by
// such last bits. (The digits taken are the fewest that give the number, as
// programs write them.)
double asTheLibraryReads(double value) {
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, std::abs(value),
                           std::chars_format::scientific);
  std::string_view digits(text, static_cast<size_t>(end.ptr - text));
  size_t e = digits.find('e');
  if (e == std::string_view::npos)
    return value;
  int exponent = 0;
  std::string_view power = digits.substr(e + 1);
  if (power.starts_with('+'))
    power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  uint64_t significand = 0;
  for (char c : digits.substr(0, e))
    if (c != '.')
      significand = significand * 10 + static_cast<uint64_t>(c - '0');
  exponent -= e > 1 ? static_cast<int>(e) - 2 : 0;
  if (exponent < -300 || exponent > 300)
    return value;
  double result = static_cast<double>(significand);
  double scale = std::pow(10.0, std::abs(exponent));
  result = exponent < 0 ? result / scale : result * scale;
  return std::signbit(value) ? -result : result;
}

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
    idLimit_ = idLimitOf(
        (model.has("vocab") ? model.at("vocab").size() : 0) +
        (root.has("added_tokens") ? root.at("added_tokens").size() : 0));
    INGOT_RETURN_IF_ERROR(readModel(model));
    INGOT_RETURN_IF_ERROR(readAddedTokens(root));
    SpecialTokenReader special(spec_, idOf_);
    INGOT_RETURN_IF_ERROR(special.addConfiguredTokens(
        description.specialTokensMapJson, description.tokenizerConfigJson));
    INGOT_RETURN_IF_ERROR(readComponents(root));
    INGOT_RETURN_IF_ERROR(special.read(description.specialTokensMapJson,
                                       description.tokenizerConfigJson));
    return std::move(spec_);
  }

private:
  Result<int32_t> tokenId(const ComponentReader &where, const Json &value,
                          const std::string &what) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= idLimit_)
      return where.invalid(what + ": expected an id from 0 to " +
                           std::to_string(idLimit_ - 1) + ", found " +
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

  // Old files do not name the model: each has a key that no other has.
  static Result<std::string> typeOf(const ComponentReader &model) {
    if (model.has("type"))
      return model.string("type");
    if (model.has("merges"))
      return std::string("BPE");
    if (model.has("vocab") && model.at("vocab").is_array())
      return std::string("Unigram");
    return std::string(model.has("continuing_subword_prefix") ? "WordPiece"
                                                              : "WordLevel");
  }

  Status readModel(const ComponentReader &model) {
    INGOT_ASSIGN_OR_RETURN(std::string type, typeOf(model));
    if (type == "BPE")
      return readBytePair(model);
    if (type == "Unigram")
      return readUnigram(model);
    if (type == "WordPiece")
      return readWordPiece(model);
    if (type == "WordLevel")
      return readWordLevel(model);
    return model.unsupported("model " + quoteName(type) +
                             " (supported: BPE, Unigram, WordPiece, "
                             "WordLevel)");
  }

  // {"token": id, ...}
  Status readVocabulary(const ComponentReader &model) {
    INGOT_ASSIGN_OR_RETURN(ComponentReader vocabulary, model.object("vocab"));
    for (const auto &[spelling, value] : model.at("vocab").items()) {
      INGOT_ASSIGN_OR_RETURN(int32_t id,
                             tokenId(vocabulary, value, quoteName(spelling)));
      INGOT_RETURN_IF_ERROR(setToken(vocabulary, id, spelling, true));
      if (!idOf_.emplace(spelling, id).second)
        return vocabulary.invalid(quoteName(spelling) + " is given twice");
    }
    return Status::ok();
  }

  Status readUnknown(const ComponentReader &model) {
    if (!model.has("unk_token"))
      return Status::ok();
    INGOT_ASSIGN_OR_RETURN(std::string unknown, model.string("unk_token"));
    auto it = idOf_.find(unknown);
    if (it != idOf_.end())
      spec_.unknownId = it->second;
    // The word models name one by default; without it, they fail when they need
    // it.
    else if (spec_.model == ModelKind::BytePair)
      return model.invalid("\"unk_token\" " + quoteName(unknown) +
                           " is not in the vocabulary");
    return Status::ok();
  }

  Status readBytePair(const ComponentReader &model) {
    INGOT_RETURN_IF_ERROR(model.allowOnly(
        {"type", "dropout", "unk_token", "continuing_subword_prefix",
         "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
         "vocab", "merges"}));
    if (model.has("dropout") &&
        !(model.at("dropout").is_number() && model.at("dropout") == 0))
      return model.unsupported("\"dropout\" other than 0: the same text would "
                               "give other tokens each time");
    for (auto [key, to] :
         {std::pair{"continuing_subword_prefix", &spec_.continuingPrefix},
          std::pair{"end_of_word_suffix", &spec_.wordSuffix}})
      if (model.has(key)) {
        INGOT_ASSIGN_OR_RETURN(*to, model.string(key));
      }
    INGOT_ASSIGN_OR_RETURN(spec_.fuseUnknown, model.boolean("fuse_unk", false));
    INGOT_ASSIGN_OR_RETURN(spec_.byteFallback,
                           model.boolean("byte_fallback", false));
    INGOT_ASSIGN_OR_RETURN(spec_.ignoreMerges,
                           model.boolean("ignore_merges", false));
    INGOT_RETURN_IF_ERROR(readVocabulary(model));
    INGOT_RETURN_IF_ERROR(readUnknown(model));
    return readMerges(model);
  }

  // [["token", score], ...], ids by their place.
  Status readUnigram(const ComponentReader &model) {
    INGOT_RETURN_IF_ERROR(
        model.allowOnly({"type", "unk_id", "vocab", "byte_fallback"}));
    spec_.model = ModelKind::Unigram;
    spec_.fuseUnknown = true;
    INGOT_ASSIGN_OR_RETURN(spec_.byteFallback,
                           model.boolean("byte_fallback", false));
    INGOT_ASSIGN_OR_RETURN(const Json *vocabulary, model.array("vocab"));
    if (vocabulary->empty() || vocabulary->size() > MaxVocabSize)
      return model.unsupported(
          "\"vocab\": " + std::to_string(vocabulary->size()) +
          " tokens, expected 1 to " + std::to_string(MaxVocabSize));
    double least = std::numeric_limits<double>::infinity();
    for (size_t id = 0; id < vocabulary->size(); ++id) {
      const Json &entry = (*vocabulary)[id];
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
          !entry[1].is_number())
        return model.invalid("vocab[" + std::to_string(id) +
                             "]: expected a token and its score, found " +
                             jsonForMessage(entry));
      auto spelling = entry[0].get<std::string>();
      INGOT_RETURN_IF_ERROR(
          setToken(model, static_cast<int32_t>(id), spelling, true));
      idOf_[spelling] = static_cast<int32_t>(id);
      spec_.tokens[id].score = asTheLibraryReads(entry[1].get<double>());
      least = std::min(least, spec_.tokens[id].score);
    }
    spec_.unknownScore = least - UnknownPenalty;
    if (model.has("unk_id")) {
      INGOT_ASSIGN_OR_RETURN(spec_.unknownId,
                             tokenId(model, model.at("unk_id"), "\"unk_id\""));
      if (static_cast<size_t>(*spec_.unknownId) >= vocabulary->size())
        return model.invalid("\"unk_id\" " + std::to_string(*spec_.unknownId) +
                             ": the vocabulary has " +
                             std::to_string(vocabulary->size()) + " tokens");
    }
    return Status::ok();
  }

  Status readWordPiece(const ComponentReader &model) {
    INGOT_RETURN_IF_ERROR(
        model.allowOnly({"type", "unk_token", "continuing_subword_prefix",
                         "max_input_chars_per_word", "vocab"}));
    spec_.model = ModelKind::WordPiece;
    INGOT_ASSIGN_OR_RETURN(spec_.continuingPrefix,
                           model.string("continuing_subword_prefix"));
    INGOT_ASSIGN_OR_RETURN(int64_t longest,
                           model.integer("max_input_chars_per_word"));
    if (longest < 0)
      return model.invalid("\"max_input_chars_per_word\": " +
                           std::to_string(longest));
    spec_.longestWord = static_cast<uint32_t>(
        std::min<int64_t>(longest, std::numeric_limits<uint32_t>::max()));
    INGOT_RETURN_IF_ERROR(readVocabulary(model));
    return readUnknown(model);
  }

  Status readWordLevel(const ComponentReader &model) {
    INGOT_RETURN_IF_ERROR(model.allowOnly({"type", "unk_token", "vocab"}));
    spec_.model = ModelKind::WordLevel;
    INGOT_RETURN_IF_ERROR(readVocabulary(model));
    return readUnknown(model);
  }

  // What a merge makes: the prefix of what goes on is left out inside.
  std::string merged(const std::string &left, const std::string &right) const {
    return left +
           right.substr(std::min(right.size(), spec_.continuingPrefix.size()));
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
          !idOf_.contains(merged(left, right)))
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
           resultIt = idOf_.find(merged(left, right));
      if (leftIt == idOf_.end() || rightIt == idOf_.end() ||
          resultIt == idOf_.end())
        return wrong(quoteName(leftIt == idOf_.end()    ? left
                               : rightIt == idOf_.end() ? right
                                                        : merged(left, right)) +
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
      INGOT_ASSIGN_OR_RETURN(AddedTokenSpec added, readAddedToken(token));
      if (!token.has("id"))
        return token.invalid("\"id\" is missing");
      INGOT_ASSIGN_OR_RETURN(added.id,
                             tokenId(token, token.at("id"), "\"id\""));
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
    // Without a decoder the tokens are joined by spaces.
    spec_.decoder.joinWithSpaces = !root.has("decoder");
    INGOT_RETURN_IF_ERROR(component("decoder", readDecoder));
    // Spelling bytes as the last step before byte pairs is left out: the tables
    // hold true bytes.
    if (!spec_.preTokenizer.empty() &&
        spec_.preTokenizer.back().kind == PreTokenizerKind::SpellBytes &&
        spec_.model == ModelKind::BytePair && !spec_.byteFallback) {
      spec_.preTokenizer.pop_back();
      spec_.byteLevel = true;
    }
    return Status::ok();
  }

  TokenizerSpec spec_;
  size_t idLimit_ = 0;
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
  std::vector<std::string> leftOut;
  if (description.rows)
    dropTokensBeyond(spec, *description.rows,
                     description.leftOut ? *description.leftOut : leftOut);
  auto tables = compileTokenizer(std::move(spec));
  if (!tables)
    return tables.status().withContext("tokenizer.json");
  return tables;
}

Result<std::vector<uint8_t>>
buildTokenizerFromFolder(const std::string &folder) {
  INGOT_ASSIGN_OR_RETURN(std::optional<MappedFile> config,
                         openIfThere(folder + "/tokenizer_config.json"));
  INGOT_ASSIGN_OR_RETURN(std::optional<MappedFile> map,
                         openIfThere(folder + "/special_tokens_map.json"));
  auto optionalText = [](const std::optional<MappedFile> &file) {
    return file ? std::optional<std::string_view>(textOf(*file)) : std::nullopt;
  };
  INGOT_ASSIGN_OR_RETURN(std::optional<MappedFile> model,
                         openIfThere(folder + "/tokenizer.model"));
  std::error_code error;
  bool hasJson =
      std::filesystem::exists(folder + "/tokenizer.json", error) || !model;
  Result<std::vector<uint8_t>> tables = Status::ok();
  if (hasJson) {
    INGOT_ASSIGN_OR_RETURN(MappedFile tokenizer,
                           MappedFile::open(folder + "/tokenizer.json"));
    tables = buildTokenizer(HuggingFaceTokenizer{textOf(tokenizer),
                                                 optionalText(config),
                                                 optionalText(map),
                                                 {},
                                                 nullptr});
  } else {
    tables = buildTokenizer(SentencePieceTokenizer{
        textOf(*model), optionalText(config), optionalText(map), {}, nullptr});
  }
  if (!tables)
    return tables.status().withContext(folder);
  return tables;
}

} // namespace ingot
