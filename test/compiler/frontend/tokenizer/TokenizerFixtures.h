// What the tokenizer builder's tests share: the real tokenizers and vectors of
// the shared data folder, and a small tokenizer.json to vary.
#pragma once

#include "compiler/frontend/tokenizer/TokenizerBuilder.h"
#include "runtime/text/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace ingot::test {

using Ids = std::vector<int32_t>;

inline std::string sharedPath(const std::string &name) {
  return std::string(INGOT_SHARED_DIR) + "/data/" + name;
}

inline std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A tokenizer and the tables it stands on.
struct OpenTokenizer {
  std::vector<uint8_t> tables;
  std::optional<Tokenizer> tokenizer;

  const Tokenizer *operator->() const { return &*tokenizer; }

  Ids encode(std::string_view text, bool addSpecialTokens = false) const {
    EncodeOptions options;
    options.addSpecialTokens = addSpecialTokens;
    auto ids = tokenizer->encode(text, options);
    EXPECT_TRUE(ids.isOk()) << ids.status().message();
    return ids.isOk() ? *ids : Ids{};
  }
  std::string decode(const Ids &ids, bool skipSpecial = false) const {
    auto text = tokenizer->decode(ids, skipSpecial);
    EXPECT_TRUE(text.isOk()) << text.status().message();
    return text.isOk() ? *text : "";
  }
};

inline OpenTokenizer open(Result<std::vector<uint8_t>> built) {
  OpenTokenizer out;
  EXPECT_TRUE(built.isOk()) << built.status().message();
  if (!built)
    return out;
  out.tables = std::move(built).value();
  auto opened = Tokenizer::open(out.tables);
  EXPECT_TRUE(opened.isOk()) << opened.status().message();
  if (opened)
    out.tokenizer.emplace(std::move(opened).value());
  return out;
}

inline Result<std::vector<uint8_t>> build(const nlohmann::json &description) {
  std::string text = description.dump();
  HuggingFaceTokenizer files;
  files.tokenizerJson = text;
  return buildTokenizer(files);
}

// The cases of one llama.cpp vector: texts, and the ids without special tokens.
struct VectorCase {
  std::string text;
  Ids ids;
};

inline std::vector<VectorCase> readVectors(const std::string &name) {
  std::string path =
      sharedPath("tokenizers/llamacpp-vocab/ggml-vocab-" + name + ".gguf");
  std::string texts = readFile(path + ".inp");
  std::istringstream lines(readFile(path + ".out"));
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<VectorCase> cases;
  size_t at = 0;
  for (std::string line; std::getline(lines, line);) {
    size_t end = texts.find(separator, at);
    if (end == std::string::npos)
      break;
    VectorCase one{texts.substr(at, end - at), {}};
    std::istringstream numbers(line);
    for (int32_t id; numbers >> id;)
      one.ids.push_back(id);
    cases.push_back(std::move(one));
    at = end + separator.size();
  }
  return cases;
}

// GPT-2's byte alphabet spelled out for the bytes that tests use: printable
// ASCII stands for itself, a space is Ġ.
inline nlohmann::json smallByteLevelJson() {
  using nlohmann::json;
  json vocab = json::object();
  int id = 0;
  for (int c = 0x21; c < 0x7F; ++c)
    vocab[std::string(1, static_cast<char>(c))] = id++;
  for (int c = 0x100; c < 0x100 + 68; ++c) // the 68 that are not printable
    vocab[std::string{static_cast<char>(0xC0 | c >> 6),
                      static_cast<char>(0x80 | (c & 0x3F))}] = id++;
  for (int c = 0xA1; c <= 0xFF; ++c)
    if (c != 0xAD)
      vocab[std::string{static_cast<char>(0xC0 | c >> 6),
                        static_cast<char>(0x80 | (c & 0x3F))}] = id++;
  for (const char *token : {"he", "\xC4\xA0t", "\xC4\xA0the", "ll", "llo"})
    vocab[token] = id++; // 256 ...
  auto byteLevel = [](bool regex) {
    return json{{"type", "ByteLevel"},
                {"add_prefix_space", false},
                {"trim_offsets", true},
                {"use_regex", regex}};
  };
  return json{{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", json::array({{{"id", id},
                                             {"content", "<eos>"},
                                             {"single_word", false},
                                             {"lstrip", false},
                                             {"rstrip", false},
                                             {"normalized", false},
                                             {"special", true}}})},
              {"normalizer", nullptr},
              {"pre_tokenizer", byteLevel(true)},
              {"post_processor", nullptr},
              {"decoder", byteLevel(true)},
              {"model",
               {{"type", "BPE"},
                {"unk_token", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"vocab", vocab},
                {"merges", json::array({"h e", "\xC4\xA0 t", "\xC4\xA0t he",
                                        "l l", "ll o"})}}}};
}

} // namespace ingot::test

// Skips a test that needs the shared data where it is absent.
#define INGOT_NEED_SHARED(NAME)                                                \
  if (!std::filesystem::exists(::ingot::test::sharedPath(NAME)))               \
  GTEST_SKIP() << "shared test data is absent: " << NAME
