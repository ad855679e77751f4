// A GGUF vocabulary, read as llama.cpp reads it.
//   "gpt2": byte-level BPE; the regexes hang on the name in tokenizer.ggml.pre.
//   "llama": SentencePiece BPE (ScoreMerges).
//   "bert": WordPiece; a word's first token is written with a space mark, the
//   others bare.
// As there, no text is brought to a Unicode normal form, but for "bert", which is
// read as BERT's own tokenizer reads it.
#include "compiler/frontend/StrictJson.h"
#include "compiler/frontend/tokenizer/CharacterClasses.h"
#include "compiler/frontend/tokenizer/HuggingFaceComponents.h"
#include "compiler/frontend/tokenizer/RegexTranslation.h"
#include "compiler/frontend/tokenizer/ScoreMerges.h"
#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "compiler/frontend/tokenizer/TokenizerSpec.h"
#include "runtime/text/TokenHash.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace ingot {
namespace {

enum GgufTokenType : int32_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6,
};

constexpr const char *Llama3Regex =
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|"
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char *Qwen2Regex =
    "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|"
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

// Two more are those of the tokenizers' own files, which llama.cpp comes near:
// it takes letters that are neither a-z nor A-Z for both cases.
#define INGOT_CONTRACTIONS                                                     \
  "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?"
#define INGOT_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define INGOT_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
constexpr const char *TekkenRegex =
    "[^\\r\\n\\p{L}\\p{N}]?" INGOT_UPPER "*" INGOT_LOWER "+|"
    "[^\\r\\n\\p{L}\\p{N}]?" INGOT_UPPER "+" INGOT_LOWER "*|"
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr const char *Gpt4oRegex =
    "[^\\r\\n\\p{L}\\p{N}]?" INGOT_UPPER "*" INGOT_LOWER "+" INGOT_CONTRACTIONS
    "|"
    "[^\\r\\n\\p{L}\\p{N}]?" INGOT_UPPER "+" INGOT_LOWER "*" INGOT_CONTRACTIONS
    "|"
    "\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
#undef INGOT_CONTRACTIONS
#undef INGOT_UPPER
#undef INGOT_LOWER

// The names that tokenizer.ggml.pre may hold.
struct PreTokenizerName {
  std::vector<std::string_view> names;
  std::vector<const char *> regexes; // applied one after the other
  bool ignoreMerges = false;
  bool addBos = false; // unless the file says otherwise
};

const std::vector<PreTokenizerName> &preTokenizerNames() {
  static const std::vector<PreTokenizerName> table = {
      {{"default"},
       {"[\\p{P}\\$\\+<=>\\^~\\|]+", Gpt2Regex, "\\p{N}+", "[0-9][0-9][0-9]"}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais"}, {Gpt2Regex}},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral"},
       {Llama3Regex},
       true,
       true},
      {{"dbrx", "smaug-bpe"}, {Llama3Regex}},
      {{"tekken"}, {TekkenRegex}, true, true},
      {{"gpt-4o", "llama4"}, {Gpt4oRegex}},
      {{"qwen2", "deepseek-r1-qwen", "stablelm2"}, {Qwen2Regex}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"},
       {"\\p{N}", Gpt2Regex}},
      {{"deepseek-coder"},
       {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
        "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+",
        "\\p{N}"}},
      {{"falcon"},
       {"[\\p{P}\\$\\+<=>\\^~\\|`]+", Gpt2Regex, "[0-9][0-9][0-9]"}},
  };
  return table;
}

// BERT's: words of more characters are unknown.
constexpr uint32_t LongestBertWord = 100;

// Control tokens that end a turn in one chat format or another; the key
// eos_token_id often names only one of those that a vocabulary has.
constexpr std::string_view EndOfTurnNames[] = {
    "<|eot_id|>", "<|im_end|>",    "<|end|>",         "<end_of_turn>",
    "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<EOT>"};

class GgufReader {
public:
  explicit GgufReader(const GgufVocabulary &vocabulary) : in_(vocabulary) {}

  Result<TokenizerSpec> read() {
    bool bytePair = in_.model == "gpt2";
    bool wordPiece = in_.model == "bert";
    if (!bytePair && !wordPiece && in_.model != "llama")
      return Status::unsupported("tokenizer.ggml.model " +
                                 quoteName(in_.model) +
                                 " (supported: \"gpt2\", \"llama\", \"bert\")");
    INGOT_RETURN_IF_ERROR(readTokens());
    if (bytePair)
      INGOT_RETURN_IF_ERROR(readBytePair());
    else if (wordPiece)
      INGOT_RETURN_IF_ERROR(readWordPiece());
    else
      INGOT_RETURN_IF_ERROR(readSentencePiece());
    INGOT_RETURN_IF_ERROR(readSpecialTokens());
    return std::move(spec_);
  }

private:
  std::string tokenName(size_t id) const {
    return "tokenizer.ggml.tokens[" + std::to_string(id) + "] " +
           quoteName(in_.tokens[id]);
  }

  int32_t type(size_t id) const {
    return in_.types.empty() ? int32_t(Normal) : in_.types[id];
  }

  // As the vocabulary's own file would write it.
  std::string spellingOf(size_t id) const {
    const std::string &text = in_.tokens[id];
    if (in_.model != "bert" || type(id) != Normal ||
        (text.starts_with('[') && text.ends_with(']')))
      return text;
    const std::string_view mark = SpaceMark;
    return text.starts_with(mark) ? text.substr(mark.size()) : "##" + text;
  }

  Status readTokens() {
    size_t n = in_.tokens.size();
    if (n == 0 || n > MaxVocabSize)
      return Status::unsupported("tokenizer.ggml.tokens: " + std::to_string(n) +
                                 " tokens, expected 1 to " +
                                 std::to_string(MaxVocabSize));
    if (!in_.types.empty() && in_.types.size() != n)
      return Status::invalid(
          "tokenizer.ggml.token_type: " + std::to_string(in_.types.size()) +
          " types for " + std::to_string(n) + " tokens");
    spec_.tokens.resize(n);
    for (size_t id = 0; id < n; ++id) {
      int32_t kind = type(id);
      if (kind < Normal || kind > Byte)
        return Status::unsupported("tokenizer.ggml.token_type[" +
                                   std::to_string(id) +
                                   "]: " + std::to_string(kind));
      if (findInvalidUtf8(in_.tokens[id]) != std::string_view::npos)
        return Status::invalid(tokenName(id) + ": not valid UTF-8");
      TokenSpec &token = spec_.tokens[id];
      token.spelling = spellingOf(id);
      token.present = true;
      // User text must not turn into a control token by way of the model.
      token.isModelToken = kind != Control && kind != Unknown && kind != Unused;
      if ((kind == Control || kind == Unknown || kind == UserDefined) &&
          !token.spelling.empty()) {
        AddedTokenSpec added;
        added.content = token.spelling;
        added.id = static_cast<int32_t>(id);
        added.special = kind != UserDefined;
        spec_.added.push_back(std::move(added));
      }
      if (token.isModelToken &&
          !idOf_.emplace(token.spelling, static_cast<int32_t>(id)).second)
        return Status::invalid(tokenName(id) + " is given twice");
    }
    return Status::ok();
  }

  Status readBytePair() {
    const PreTokenizerName *pre = nullptr;
    for (const PreTokenizerName &entry : preTokenizerNames())
      if (std::find(entry.names.begin(), entry.names.end(), in_.pre) !=
          entry.names.end())
        pre = &entry;
    if (!pre)
      return Status::unsupported(
          "tokenizer.ggml.pre " + quoteName(in_.pre) +
          ": not a known pre-tokenizer (a missing name is not guessed: some "
          "other regexes would give other tokens)");
    spec_.byteLevel = true;
    spec_.decoder.steps.push_back({DecoderStep::Kind::ByteLevel});
    spec_.ignoreMerges = pre->ignoreMerges;
    addBos_ = pre->addBos;
    if (in_.addSpacePrefix.value_or(false))
      spec_.preTokenizer.push_back({PreTokenizerKind::PrefixSpace, ""});
    for (const char *regex : pre->regexes) {
      INGOT_ASSIGN_OR_RETURN(std::string pattern,
                             translateRegex(regex, RegexDialect::Ecma));
      spec_.preTokenizer.push_back({PreTokenizerKind::Split, pattern});
    }
    if (in_.merges.empty())
      return Status::invalid("tokenizer.ggml.merges is empty");
    for (size_t rank = 0; rank < in_.merges.size(); ++rank) {
      const std::string &merge = in_.merges[rank];
      auto wrong = [&](const std::string &what) {
        return Status::invalid("tokenizer.ggml.merges[" + std::to_string(rank) +
                               "] " + quoteName(merge) + ": " + what);
      };
      // The first token may itself begin with a space, never be empty.
      size_t space = merge.find(' ', 1);
      if (space == std::string::npos || space + 1 == merge.size())
        return wrong("expected two tokens and a space between them");
      auto left = idOf_.find(merge.substr(0, space));
      auto right = idOf_.find(merge.substr(space + 1));
      auto result =
          idOf_.find(merge.substr(0, space) + merge.substr(space + 1));
      if (left == idOf_.end() || right == idOf_.end() || result == idOf_.end())
        return wrong("its tokens are not all in the vocabulary");
      spec_.merges.push_back({left->second, right->second, result->second,
                              static_cast<uint32_t>(rank)});
    }
    return Status::ok();
  }

  Status readWordPiece() {
    // The file does not say whether text is lowercased; the words do.
    for (size_t id = 0; id < in_.tokens.size(); ++id) {
      const std::string &text = in_.tokens[id];
      if (type(id) != Normal || (text.starts_with('[') && text.ends_with(']')))
        continue;
      for (size_t i = 0; i < text.size(); i += utf8Length(text[i]))
        if (lowercaseMap().contains(
                decodeUtf8(std::string_view(text).substr(i))))
          return Status::unsupported(
              tokenName(id) + ": a WordPiece vocabulary with capital letters; "
                              "only one of lowercased text is supported, since "
                              "the file does not say how text is prepared");
    }
    if (!in_.unknownId)
      return Status::invalid("tokenizer.ggml.unknown_token_id: expected the id "
                             "of the token for unknown words, found none");
    spec_.model = ModelKind::WordPiece;
    spec_.continuingPrefix = "##";
    spec_.longestWord = LongestBertWord;
    spec_.decoder.steps.push_back(
        {.kind = DecoderStep::Kind::WordPiece, .text = "##", .cleanup = true});
    auto part = [&](const char *name, auto read) -> Status {
      const nlohmann::json json = {{"type", name}};
      INGOT_ASSIGN_OR_RETURN(ComponentReader component,
                             ComponentReader::create(json, name));
      return read(component, spec_);
    };
    INGOT_RETURN_IF_ERROR(part("BertNormalizer", readNormalizer));
    return part("BertPreTokenizer", readPreTokenizer);
  }

  Status readSentencePiece() {
    if (in_.scores.size() != in_.tokens.size())
      return Status::invalid(
          "tokenizer.ggml.scores: " + std::to_string(in_.scores.size()) +
          " scores for " + std::to_string(in_.tokens.size()) + " tokens");
    addBos_ = true;
    spec_.byteFallback = true;
    for (unsigned b = 0; b < 256; ++b)
      if (!idOf_.contains(byteTokenSpelling(static_cast<uint8_t>(b))))
        return Status::invalid("tokenizer.ggml.tokens: no token " +
                               byteTokenSpelling(static_cast<uint8_t>(b)));
    bool prefix = in_.addSpacePrefix.value_or(true);
    if (prefix)
      spec_.normalizer.push_back({NormalizerKind::Prepend, "", " "});
    spec_.normalizer.push_back({NormalizerKind::ReplaceString, " ", SpaceMark});
    spec_.decoder.steps.push_back({DecoderStep::Kind::Replace, SpaceMark, " "});
    spec_.decoder.steps.push_back({DecoderStep::Kind::ByteFallback});
    if (prefix) {
      spec_.decoder.stripText = " ";
      spec_.decoder.stripCount = 1;
    }
    return scoresToMerges();
  }

  Status scoresToMerges() {
    for (size_t id = 0; id < in_.scores.size(); ++id) {
      if (!std::isfinite(in_.scores[id]))
        return Status::invalid("tokenizer.ggml.scores[" + std::to_string(id) +
                               "]: expected a finite number");
      spec_.tokens[id].score = static_cast<double>(in_.scores[id]);
    }
    Result<std::vector<MergeSpec>> merges =
        mergesOfScores(spec_.tokens, idOf_, [&](size_t id) {
          return spec_.tokens[id].isModelToken && type(id) != Byte;
        });
    if (!merges)
      return merges.status().withContext("tokenizer.ggml.scores");
    spec_.merges = std::move(merges).value();
    return Status::ok();
  }

  Status checkId(std::optional<int32_t> id, const char *key) const {
    if (id && (*id < 0 || static_cast<size_t>(*id) >= in_.tokens.size()))
      return Status::invalid("tokenizer.ggml." + std::string(key) + ": id " +
                             std::to_string(*id) + " out of range (" +
                             std::to_string(in_.tokens.size()) + " tokens)");
    return Status::ok();
  }

  Status readSpecialTokens() {
    INGOT_RETURN_IF_ERROR(checkId(in_.bosId, "bos_token_id"));
    INGOT_RETURN_IF_ERROR(checkId(in_.eosId, "eos_token_id"));
    INGOT_RETURN_IF_ERROR(checkId(in_.unknownId, "unknown_token_id"));
    INGOT_RETURN_IF_ERROR(checkId(in_.padId, "padding_token_id"));
    INGOT_RETURN_IF_ERROR(checkId(in_.eotId, "eot_token_id"));
    INGOT_RETURN_IF_ERROR(checkId(in_.eomId, "eom_token_id"));
    spec_.bosId = in_.bosId;
    spec_.eosId = in_.eosId;
    spec_.padId = in_.padId;
    // Byte-level vocabularies spell everything; their "unknown" is a habit of
    // the file and never encoded.
    if (!spec_.byteLevel)
      spec_.unknownId = in_.unknownId;
    if (in_.addBos.value_or(addBos_)) {
      if (!in_.bosId)
        return Status::invalid("tokenizer.ggml.add_bos_token without "
                               "tokenizer.ggml.bos_token_id");
      spec_.prefixIds.push_back(*in_.bosId);
    }
    if (spec_.model == ModelKind::WordPiece) {
      INGOT_RETURN_IF_ERROR(checkId(in_.clsId, "cls_token_id"));
      INGOT_RETURN_IF_ERROR(checkId(in_.sepId, "seperator_token_id"));
      for (auto [id, ids] : {std::pair{in_.clsId, &spec_.prefixIds},
                             std::pair{in_.sepId, &spec_.suffixIds}})
        if (id && ids->empty())
          ids->push_back(*id);
    }
    if (in_.addEos.value_or(false)) {
      if (!in_.eosId)
        return Status::invalid("tokenizer.ggml.add_eos_token without "
                               "tokenizer.ggml.eos_token_id");
      spec_.suffixIds.push_back(*in_.eosId);
    }
    std::vector<int32_t> &ends = spec_.endIds;
    for (std::optional<int32_t> id : {in_.eosId, in_.eotId, in_.eomId})
      if (id)
        ends.push_back(*id);
    for (const AddedTokenSpec &token : spec_.added)
      if (token.special &&
          std::find(std::begin(EndOfTurnNames), std::end(EndOfTurnNames),
                    token.content) != std::end(EndOfTurnNames))
        ends.push_back(token.id);
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return Status::ok();
  }

  const GgufVocabulary &in_;
  TokenizerSpec spec_;
  bool addBos_ = false;
  std::unordered_map<std::string, int32_t> idOf_; // tokens of the model
};

} // namespace

Result<std::vector<uint8_t>> buildTokenizer(const GgufVocabulary &vocabulary) {
  INGOT_ASSIGN_OR_RETURN(TokenizerSpec spec, GgufReader(vocabulary).read());
  auto tables = compileTokenizer(std::move(spec));
  if (!tables)
    return tables.status().withContext("tokenizer.ggml");
  return tables;
}

} // namespace ingot
