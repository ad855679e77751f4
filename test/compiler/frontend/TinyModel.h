// A model of a few kilobytes with the shape of a real one, which a test can
// write as a Hugging Face folder (one file or shards) or as GGUF, whole or
// with something changed.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ingot::testing {

struct TinyTensor {
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
  std::string dtype = "F32"; // as safetensors spells it
};

struct TinyModel {
  nlohmann::json config;
  nlohmann::json generationConfig;
  nlohmann::json tokenizerConfig;
  std::map<std::string, TinyTensor> tensors; // by Hugging Face name

  // Family "llama", "mistral", "qwen2" or "qwen3": 3 layers, hidden 16,
  // 4 heads of 4 (8 for qwen3), 2 key and value heads, ffn 24, vocabulary 40.
  static TinyModel make(const std::string &family);

  std::int64_t layers() const { return config["num_hidden_layers"]; }
  // Adds a tensor with values of its own.
  void add(const std::string &name, const std::vector<std::uint64_t> &shape);
  void addAttentionBiases(bool output);
  void addMlpBiases();

  void writeFolder(const std::string &folder) const;
  void writeSharded(const std::string &folder, int shards) const;
  std::vector<std::uint8_t> safetensors() const;
  // As the converter of llama.cpp would: names, metadata, permuted rows.
  std::vector<std::uint8_t> gguf() const;
};

} // namespace ingot::testing
