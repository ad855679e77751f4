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
// encoded; the other two only say which tokens are BOS, EOS and padding.
struct HuggingFaceTokenizer {
  std::string_view tokenizerJson;
  std::optional<std::string_view> tokenizerConfigJson;
  std::optional<std::string_view> specialTokensMapJson;
};

Result<std::vector<uint8_t>>
buildTokenizer(const HuggingFaceTokenizer &description);

// Reads tokenizer.json, and tokenizer_config.json and special_tokens_map.json
// where they exist, from a folder.
Result<std::vector<uint8_t>>
buildTokenizerFromFolder(const std::string &folder);

// The keys tokenizer.ggml.* of a GGUF file, as they stand there.
struct GgufVocabulary {
  std::string model; // "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE)
  std::string pre;   // names the regexes of a "gpt2" model
  std::vector<std::string> tokens;
  std::vector<int32_t> types;      // token_type; empty: all normal
  std::vector<float> scores;       // "llama"
  std::vector<std::string> merges; // "gpt2"
  std::optional<int32_t> bosId, eosId, unknownId, padId, eotId, eomId;
  std::optional<bool> addBos, addEos, addSpacePrefix;
};

// Encodes as llama.cpp does.
Result<std::vector<uint8_t>> buildTokenizer(const GgufVocabulary &vocabulary);

} // namespace ingot
