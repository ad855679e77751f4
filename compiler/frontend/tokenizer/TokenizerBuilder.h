// Compiles a tokenizer to the tables that the runtime maps (runtime/text), from
// a Hugging Face folder or from the vocabulary of a GGUF file. What is not
// supported is an error that names it; nothing is guessed.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// The texts of a Hugging Face tokenizer. tokenizer.json decides how text is
// encoded; the other two say which tokens are BOS, EOS and padding, and name
// added tokens that it lacks.
struct HuggingFaceTokenizer {
  std::string_view tokenizerJson;
  std::optional<std::string_view> tokenizerConfigJson;
  std::optional<std::string_view> specialTokensMapJson;
  // Of the model's embedding: added tokens beyond are left out, and a line for
  // each goes to `leftOut` if it is not null.
  std::optional<int32_t> rows = {};
  std::vector<std::string> *leftOut = nullptr;
};

Result<std::vector<uint8_t>>
buildTokenizer(const HuggingFaceTokenizer &description);

// A SentencePiece model file (byte pairs or Unigram). The configuration beside
// it says which special tokens go around a text and names added tokens; without
// it nothing is put around.
struct SentencePieceTokenizer {
  std::string_view model;
  std::optional<std::string_view> tokenizerConfigJson;
  std::optional<std::string_view> specialTokensMapJson;
  // Of the model's embedding: added tokens beyond are left out, and a line for
  // each goes to `leftOut` if it is not null.
  std::optional<int32_t> rows = {};
  std::vector<std::string> *leftOut = nullptr;
};

Result<std::vector<uint8_t>>
buildTokenizer(const SentencePieceTokenizer &description);

// The id of a piece in a SentencePiece model file; nothing if it has none.
Result<std::optional<int64_t>> findSentencePiece(std::string_view model,
                                                 std::string_view piece);

// Reads tokenizer.json from a folder or, where there is none, tokenizer.model;
// and tokenizer_config.json and special_tokens_map.json where they exist.
Result<std::vector<uint8_t>>
buildTokenizerFromFolder(const std::string &folder);

// The keys tokenizer.ggml.* of a GGUF file, as they stand there.
struct GgufVocabulary {
  // "gpt2" (byte-level BPE), "llama" (SentencePiece BPE) or "bert" (WordPiece,
  // which puts the tokens CLS and SEP around a text)
  std::string model;
  std::string pre; // names the regexes of a "gpt2" model
  std::vector<std::string> tokens;
  std::vector<int32_t> types;      // token_type; empty: all normal
  std::vector<float> scores;       // "llama"
  std::vector<std::string> merges; // "gpt2"
  std::optional<int32_t> bosId, eosId, unknownId, padId, eotId, eomId;
  std::optional<int32_t> clsId, sepId; // "bert"
  std::optional<bool> addBos, addEos, addSpacePrefix;
};

// Encodes as llama.cpp does; "bert" as BERT's own tokenizer.
Result<std::vector<uint8_t>> buildTokenizer(const GgufVocabulary &vocabulary);

} // namespace ingot
