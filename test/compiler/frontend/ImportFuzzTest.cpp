// Mutated headers never crash the importers: thousands of small changes to
// good inputs, each imported. Meant to run under the sanitizers as well.
#include "compiler/frontend/ImportModel.h"
#include "compiler/frontend/gguf/GgufFile.h"
#include "compiler/frontend/huggingface/SafetensorsFile.h"

#include "test/compiler/frontend/TempFolder.h"
#include "test/compiler/frontend/TinyModel.h"

#include <gtest/gtest.h>
#include <random>

using namespace ingot;
using ingot::testing::TempFolder;
using ingot::testing::TinyModel;

namespace {

using Bytes = std::vector<std::uint8_t>;

// One to four changes within the first `limit` bytes.
Bytes mutate(Bytes bytes, std::size_t limit, std::mt19937 &random) {
  static const std::uint64_t numbers[] = {
      0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 1ull << 42, 1ull << 63, ~0ull};
  static const std::string tokens[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       ",",
                                       "-1",
                                       "1e999",
                                       "null",
                                       "true",
                                       "[0]",
                                       "{}",
                                       "18446744073709551616",
                                       "\\u0000"};
  for (int change = std::uniform_int_distribution<int>(1, 4)(random);
       change > 0; --change) {
    if (bytes.empty())
      return bytes;
    std::size_t at = random() % std::min(limit, bytes.size());
    switch (random() % 6) {
    case 0:
      bytes[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
      break;
    case 1:
      bytes[at] = static_cast<std::uint8_t>(random());
      break;
    case 2: { // an edge value over a word
      std::uint64_t number = numbers[random() % std::size(numbers)];
      std::size_t width = random() % 2 ? 8 : 4;
      for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<std::uint8_t>(number >> (8 * i));
      break;
    }
    case 3: { // bytes go
      std::size_t count =
          std::min<std::size_t>(random() % 16, bytes.size() - at);
      bytes.erase(bytes.begin() + std::ptrdiff_t(at),
                  bytes.begin() + std::ptrdiff_t(at + count));
      break;
    }
    case 4: { // bytes come
      const std::string &token = tokens[random() % std::size(tokens)];
      bytes.insert(bytes.begin() + std::ptrdiff_t(at), token.begin(),
                   token.end());
      break;
    }
    case 5: // the end goes
      if (random() % 8 == 0)
        bytes.resize(at);
      break;
    }
  }
  return bytes;
}

// Touches every byte that the reader says is a tensor's.
template <typename File> std::uint64_t touch(const File &file) {
  std::uint64_t sum = 0;
  for (const auto &tensor : file.tensors())
    for (std::uint8_t byte : file.data(tensor))
      sum += byte;
  return sum;
}

TEST(ImportFuzz, Safetensors) {
  Bytes good = TinyModel::make("qwen3").safetensors();
  std::size_t header = 8 + (good[0] | good[1] << 8);
  std::mt19937 random(1);
  int read = 0;
  for (int round = 0; round < 6000; ++round) {
    Bytes bytes = mutate(good, round % 3 ? header : 16, random);
    auto file = SafetensorsFile::fromMemory(bytes, "fuzz");
    if (file.isOk()) {
      ++read;
      touch(*file);
    } else {
      EXPECT_FALSE(file.status().message().empty());
    }
  }
  // Some changes (of a name, say) leave a good file; most do not.
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 3000);
}

TEST(ImportFuzz, Gguf) {
  Bytes good = TinyModel::make("llama").gguf();
  auto file = GgufFile::fromMemory(good, "good");
  ASSERT_TRUE(file.isOk());
  std::size_t header = file->tensors()[0].fileOffset;
  TempFolder folder;
  std::mt19937 random(2);
  int read = 0;
  for (int round = 0; round < 6000; ++round) {
    Bytes bytes = mutate(good, header, random);
    auto mutated = GgufFile::fromMemory(bytes, "fuzz");
    if (!mutated.isOk())
      continue;
    ++read;
    touch(*mutated);
    folder.write("x", bytes);
    auto spec = importModel(folder.file("x"));
    if (!spec.isOk()) {
      EXPECT_FALSE(spec.status().message().empty());
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 5000);
}

// Configs: values of every kind in the place of every value, and bytes.
TEST(ImportFuzz, Configs) {
  using nlohmann::json;
  const std::vector<json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    3,
                                    4096,
                                    2147483647,
                                    9223372036854775807ll,
                                    18446744073709551615ull,
                                    0.5,
                                    -1e300,
                                    "",
                                    "x",
                                    json::array(),
                                    json::object(),
                                    json::array({1, "x", nullptr}),
                                    {{"rope_type", "linear"}}};
  TempFolder folder;
  std::mt19937 random(3);
  int good = 0;
  for (const char *family : {"llama", "mistral", "qwen2", "qwen3"}) {
    TinyModel model = TinyModel::make(family);
    model.config["rope_scaling"] = {{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 64}};
    model.generationConfig = {{"eos_token_id", 2}, {"temperature", 0.5}};
    model.tokenizerConfig = {{"chat_template", "x"}, {"eos_token", nullptr}};
    model.writeFolder(folder.path());
    ASSERT_TRUE(importModel(folder.path()).isOk());
    for (const auto &item : model.config.items())
      for (const json &value : values) {
        json config = model.config;
        config[item.key()] = value;
        folder.write("config.json", config.dump());
        good += importModel(folder.path()).isOk();
      }
    for (const auto &item : model.config["rope_scaling"].items())
      for (const json &value : values) {
        json config = model.config;
        config["rope_scaling"][item.key()] = value;
        folder.write("config.json", config.dump());
        good += importModel(folder.path()).isOk();
      }
    for (const char *name :
         {"config.json", "generation_config.json", "tokenizer_config.json"}) {
      model.writeFolder(folder.path());
      std::string text = (std::string(name) == "config.json" ? model.config
                          : std::string(name) == "generation_config.json"
                              ? model.generationConfig
                              : model.tokenizerConfig)
                             .dump();
      for (int round = 0; round < 300; ++round) {
        Bytes bytes = mutate({text.begin(), text.end()}, text.size(), random);
        folder.write(name, bytes);
        good += importModel(folder.path()).isOk();
      }
    }
  }
  EXPECT_GT(good, 0);
}

} // namespace
