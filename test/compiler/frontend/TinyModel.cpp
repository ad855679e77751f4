#include "test/compiler/frontend/TinyModel.h"

#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "test/compiler/frontend/GgufBuilder.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace ingot::testing {
namespace {

using Json = nlohmann::json;

void check(const Status &status) {
  if (!status.isOk())
    throw std::runtime_error(status.message());
}

std::vector<std::uint8_t> rawBytes(const TinyTensor &tensor) {
  std::vector<std::uint8_t> raw;
  for (float value : tensor.values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (tensor.dtype == "BF16") {
      raw.push_back(bits >> 16);
      raw.push_back(bits >> 24);
    } else {
      for (int shift = 0; shift < 32; shift += 8)
        raw.push_back(bits >> shift);
    }
  }
  return raw;
}

void addTo(SafetensorsWriter &writer, const std::string &name,
           const TinyTensor &tensor) {
  check(writer.add(name,
                   tensor.dtype == "BF16" ? SafetensorsDtype::BF16
                                          : SafetensorsDtype::F32,
                   tensor.shape, rawBytes(tensor)));
}

void writeText(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The other files of a folder, those that are not null.
void writeConfigs(const TinyModel &model, const std::string &folder) {
  writeText(folder + "/config.json", model.config.dump(1));
  if (!model.generationConfig.is_null())
    writeText(folder + "/generation_config.json",
              model.generationConfig.dump(1));
  if (!model.tokenizerConfig.is_null())
    writeText(folder + "/tokenizer_config.json", model.tokenizerConfig.dump(1));
}

// Logical row s*(D/2) + i of each head goes to row 2*i + s.
TinyTensor permuteRows(const TinyTensor &tensor, std::uint64_t heads) {
  TinyTensor result = tensor;
  std::uint64_t rows = tensor.shape[0], width = tensor.values.size() / rows;
  std::uint64_t headDim = rows / heads, half = headDim / 2;
  for (std::uint64_t head = 0; head < heads; ++head)
    for (std::uint64_t s = 0; s < 2; ++s)
      for (std::uint64_t i = 0; i < half; ++i)
        std::memcpy(&result.values[(head * headDim + 2 * i + s) * width],
                    &tensor.values[(head * headDim + s * half + i) * width],
                    width * sizeof(float));
  return result;
}

void replace(std::string &text, const std::string &from,
             const std::string &to) {
  std::size_t at = text.find(from);
  if (at != std::string::npos)
    text.replace(at, from.size(), to);
}

std::string ggufName(std::string name) {
  for (auto [from, to] : std::map<std::string, std::string>{
           {"model.embed_tokens", "token_embd"},
           {"model.norm", "output_norm"},
           {"lm_head", "output"},
           {"model.layers", "blk"},
           {"input_layernorm", "attn_norm"},
           {"post_attention_layernorm", "ffn_norm"},
           {"self_attn.q_proj", "attn_q"},
           {"self_attn.k_proj", "attn_k"},
           {"self_attn.v_proj", "attn_v"},
           {"self_attn.o_proj", "attn_output"},
           {"self_attn.q_norm", "attn_q_norm"},
           {"self_attn.k_norm", "attn_k_norm"},
           {"mlp.gate_proj", "ffn_gate"},
           {"mlp.up_proj", "ffn_up"},
           {"mlp.down_proj", "ffn_down"}})
    replace(name, from, to);
  return name;
}

} // namespace

TinyModel TinyModel::make(const std::string &family) {
  TinyModel model;
  std::uint64_t headDim = family == "qwen3" ? 8 : 4;
  std::map<std::string, std::string> classes = {
      {"llama", "LlamaForCausalLM"},
      {"mistral", "MistralForCausalLM"},
      {"qwen2", "Qwen2ForCausalLM"},
      {"qwen3", "Qwen3ForCausalLM"}};
  model.config = {{"model_type", family},
                  {"architectures", {classes.at(family)}},
                  {"vocab_size", 40},
                  {"hidden_size", 16},
                  {"intermediate_size", 24},
                  {"num_hidden_layers", 3},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},
                  {"max_position_embeddings", 128},
                  {"rms_norm_eps", 1e-5},
                  {"hidden_act", "silu"},
                  {"rope_theta", 10000.0},
                  {"tie_word_embeddings", false},
                  {"torch_dtype", "float32"},
                  {"bos_token_id", 1},
                  {"eos_token_id", 2}};
  if (family == "qwen3")
    model.config["head_dim"] = headDim;
  if (family == "mistral")
    model.config["sliding_window"] = nullptr;
  model.add("model.embed_tokens.weight", {40, 16});
  model.add("model.norm.weight", {16});
  model.add("lm_head.weight", {40, 16});
  for (int i = 0; i < 3; ++i) {
    std::string layer = "model.layers." + std::to_string(i) + ".";
    model.add(layer + "input_layernorm.weight", {16});
    model.add(layer + "post_attention_layernorm.weight", {16});
    model.add(layer + "self_attn.q_proj.weight", {4 * headDim, 16});
    model.add(layer + "self_attn.k_proj.weight", {2 * headDim, 16});
    model.add(layer + "self_attn.v_proj.weight", {2 * headDim, 16});
    model.add(layer + "self_attn.o_proj.weight", {16, 4 * headDim});
    model.add(layer + "mlp.gate_proj.weight", {24, 16});
    model.add(layer + "mlp.up_proj.weight", {24, 16});
    model.add(layer + "mlp.down_proj.weight", {16, 24});
    if (family == "qwen3") {
      model.add(layer + "self_attn.q_norm.weight", {headDim});
      model.add(layer + "self_attn.k_norm.weight", {headDim});
    }
  }
  if (family == "qwen2")
    model.addAttentionBiases(false);
  return model;
}

void TinyModel::add(const std::string &name,
                    const std::vector<std::uint64_t> &shape) {
  TinyTensor tensor;
  tensor.shape = shape;
  std::size_t count = 1;
  for (std::uint64_t dim : shape)
    count *= dim;
  // Multiples of 1/64 below 4, which every float type here holds exactly.
  std::uint32_t state = 12345 + static_cast<std::uint32_t>(tensors.size());
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    tensor.values.push_back((static_cast<int>(state >> 24) - 128) / 64.0f);
  }
  tensors[name] = std::move(tensor);
}

void TinyModel::addAttentionBiases(bool output) {
  for (std::int64_t i = 0; i < layers(); ++i)
    for (const char *name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      if (!output && std::string(name) == "o_proj")
        continue;
      std::string base =
          "model.layers." + std::to_string(i) + ".self_attn." + name + ".";
      add(base + "bias", {tensors.at(base + "weight").shape[0]});
    }
}

void TinyModel::addMlpBiases() {
  for (std::int64_t i = 0; i < layers(); ++i)
    for (const char *name : {"gate_proj", "up_proj", "down_proj"}) {
      std::string base =
          "model.layers." + std::to_string(i) + ".mlp." + name + ".";
      add(base + "bias", {tensors.at(base + "weight").shape[0]});
    }
}

std::vector<std::uint8_t> TinyModel::safetensors() const {
  SafetensorsWriter writer;
  for (const auto &[name, tensor] : tensors)
    addTo(writer, name, tensor);
  auto bytes = writer.bytes();
  check(bytes.status());
  return *bytes;
}

void TinyModel::writeFolder(const std::string &folder) const {
  writeConfigs(*this, folder);
  std::vector<std::uint8_t> bytes = safetensors();
  writeText(folder + "/model.safetensors",
            std::string(bytes.begin(), bytes.end()));
}

void TinyModel::writeSharded(const std::string &folder, int shards) const {
  writeConfigs(*this, folder);
  std::vector<SafetensorsWriter> writers(static_cast<std::size_t>(shards));
  Json map = Json::object();
  std::size_t next = 0;
  auto shardName = [&](std::size_t i) {
    return "model-0000" + std::to_string(i + 1) + "-of-0000" +
           std::to_string(shards) + ".safetensors";
  };
  for (const auto &[name, tensor] : tensors) {
    std::size_t shard = next++ % writers.size();
    addTo(writers[shard], name, tensor);
    map[name] = shardName(shard);
  }
  for (std::size_t i = 0; i < writers.size(); ++i)
    check(writers[i].write(folder + "/" + shardName(i)));
  writeText(
      folder + "/model.safetensors.index.json",
      Json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump(1));
}

std::vector<std::uint8_t> TinyModel::gguf() const {
  GgufBuilder out;
  std::string arch = config["model_type"];
  if (arch == "mistral")
    arch = "llama";
  out.text("general.architecture", arch);
  out.u32(arch + ".block_count", config["num_hidden_layers"]);
  out.u32(arch + ".context_length", config["max_position_embeddings"]);
  out.u32(arch + ".embedding_length", config["hidden_size"]);
  out.u32(arch + ".feed_forward_length", config["intermediate_size"]);
  out.u32(arch + ".attention.head_count", config["num_attention_heads"]);
  out.u32(arch + ".attention.head_count_kv", config["num_key_value_heads"]);
  out.f32(arch + ".attention.layer_norm_rms_epsilon",
          config["rms_norm_eps"].get<float>());
  out.f32(arch + ".rope.freq_base", config["rope_theta"].get<float>());
  if (config.contains("head_dim")) {
    out.u32(arch + ".attention.key_length", config["head_dim"]);
    out.u32(arch + ".attention.value_length", config["head_dim"]);
  }
  out.text("tokenizer.ggml.model", "llama");
  std::vector<std::string> tokens;
  for (int i = 0; i < config["vocab_size"].get<int>(); ++i)
    tokens.push_back("t" + std::to_string(i));
  out.texts("tokenizer.ggml.tokens", tokens);
  out.u32("tokenizer.ggml.bos_token_id", config["bos_token_id"]);
  out.u32("tokenizer.ggml.eos_token_id", config["eos_token_id"]);
  for (const auto &[name, tensor] : tensors) {
    bool q = name.find("q_proj") != std::string::npos;
    bool k = name.find("k_proj") != std::string::npos;
    TinyTensor stored = tensor;
    if (arch == "llama" && (q || k))
      stored = permuteRows(
          tensor, config[q ? "num_attention_heads" : "num_key_value_heads"]);
    out.tensor(ggufName(name), {tensor.shape.rbegin(), tensor.shape.rend()},
               tensor.dtype == "BF16" ? 30 : 0, rawBytes(stored));
  }
  return out.bytes();
}

} // namespace ingot::testing
