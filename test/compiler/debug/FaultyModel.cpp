#include "test/compiler/debug/FaultyModel.h"

#include "compiler/driver/CompileModel.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace ingot::testing {

FaultyModel::FaultyModel(const std::string &family, std::uint32_t seed)
    : random_(seed) {
  const std::map<std::string, const char *> classes = {
      {"llama", "LlamaForCausalLM"},
      {"qwen2", "Qwen2ForCausalLM"},
      {"mistral", "MistralForCausalLM"},
      {"gemma2", "Gemma2ForCausalLM"}};
  std::int64_t kvHeads = draw(1, 2), headDim = 16 * draw(1, 2);
  std::int64_t heads = kvHeads * draw(1, 3);
  // Two groups of 32 at least, and a short one in places.
  std::int64_t hidden =
      std::max<std::int64_t>(64, heads * headDim * draw(2, 3));
  if (family == "qwen2") { // has no head_dim of its own
    while (heads * headDim < 64)
      headDim *= 2;
    hidden = heads * headDim;
  }
  tiny.config = {{"model_type", family},
                 {"architectures", {classes.at(family)}},
                 {"vocab_size", 16 * draw(3, 6)},
                 {"hidden_size", hidden},
                 {"intermediate_size", 8 * draw(9, 20)},
                 {"num_hidden_layers", draw(2, 5)},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", kvHeads},
                 {"max_position_embeddings", 128},
                 {"rms_norm_eps", 1e-5},
                 {"hidden_act", "silu"},
                 {"rope_theta", 10000.0},
                 {"tie_word_embeddings", true},
                 {"torch_dtype", "float32"},
                 {"bos_token_id", 1},
                 {"eos_token_id", 2}};
  if (family != "qwen2")
    tiny.config["head_dim"] = headDim;
  if (family == "mistral") {
    window = draw(6, 14);
    tiny.config["sliding_window"] = window;
  }
  if (family == "gemma2") {
    tiny.config["hidden_activation"] = "gelu_pytorch_tanh";
    tiny.config["query_pre_attn_scalar"] = headDim;
    tiny.config["sliding_window"] = 64;
    tiny.config["attn_logit_softcapping"] = 2.0;
    tiny.config["final_logit_softcapping"] = 8.0;
  }
  addTensors(family);
}

void FaultyModel::addTensors(const std::string &family) {
  std::normal_distribution<float> normal;
  auto add = [&](const std::string &name,
                 const std::vector<std::uint64_t> &shape, float mean = 0,
                 float deviation = 0) {
    TinyTensor tensor;
    tensor.shape = shape;
    std::size_t count = shape[0] * (shape.size() == 2 ? shape[1] : 1);
    if (shape.size() == 2)
      deviation = 1.2f / std::sqrt(static_cast<float>(shape[1]));
    for (std::size_t i = 0; i < count; ++i)
      tensor.values.push_back(mean + deviation * normal(random_));
    tiny.tensors[name] = std::move(tensor);
  };
  auto size = [&](const char *key) {
    return tiny.config[key].get<std::uint64_t>();
  };
  std::uint64_t hidden = size("hidden_size"), ffn = size("intermediate_size");
  std::uint64_t heads = size("num_attention_heads");
  std::uint64_t headDim =
      tiny.config.contains("head_dim") ? size("head_dim") : hidden / heads;
  std::uint64_t q = heads * headDim, kv = size("num_key_value_heads") * headDim;
  float unit = family == "gemma2" ? 0.0f : 1.0f; // its norms add one
  add("model.embed_tokens.weight", {size("vocab_size"), hidden});
  for (float &value : tiny.tensors["model.embed_tokens.weight"].values)
    value *= 6; // rows of about one
  add("model.norm.weight", {hidden}, unit, 0.1f);
  for (std::int64_t i = 0; i < layers(); ++i) {
    std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", {hidden}, unit, 0.1f);
    add(layer + "post_attention_layernorm.weight", {hidden}, unit, 0.1f);
    if (family == "gemma2") {
      add(layer + "pre_feedforward_layernorm.weight", {hidden}, unit, 0.1f);
      add(layer + "post_feedforward_layernorm.weight", {hidden}, unit, 0.1f);
    }
    add(layer + "self_attn.q_proj.weight", {q, hidden});
    add(layer + "self_attn.k_proj.weight", {kv, hidden});
    add(layer + "self_attn.v_proj.weight", {kv, hidden});
    add(layer + "self_attn.o_proj.weight", {hidden, q});
    add(layer + "mlp.gate_proj.weight", {ffn, hidden});
    add(layer + "mlp.up_proj.weight", {ffn, hidden});
    add(layer + "mlp.down_proj.weight", {hidden, ffn});
    if (family == "qwen2") {
      add(layer + "self_attn.q_proj.bias", {q}, 0, 0.3f);
      add(layer + "self_attn.k_proj.bias", {kv}, 0, 0.3f);
      add(layer + "self_attn.v_proj.bias", {kv}, 0, 0.3f);
    }
  }
}

std::int64_t FaultyModel::draw(std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(
                     random_() % static_cast<std::uint32_t>(most - least + 1));
}

std::string FaultyModel::drawEncoding() {
  const char *encodings[] = {"none", "int8-g32", "int4-g32"};
  return encodings[draw(0, 2)];
}

std::vector<std::int32_t> FaultyModel::tokens(std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(
        draw(0, tiny.config["vocab_size"].get<std::int64_t>() - 1)));
  return tokens;
}

std::string FaultyModel::describe() const { return tiny.config.dump(); }

std::string FaultyModel::folder() {
  return folder("model", [](TinyModel &) {});
}

std::string
FaultyModel::folder(const std::string &name,
                    const std::function<void(TinyModel &)> &change) {
  TinyModel copy = tiny;
  change(copy);
  std::filesystem::create_directories(files.file(name));
  copy.writeFolder(files.file(name));
  return files.file(name);
}

std::string FaultyModel::compile(const std::string &model,
                                 const std::string &name,
                                 const std::string &quantize,
                                 const std::vector<std::int64_t> &exits,
                                 const std::string &exitMaps,
                                 const std::string &stages) {
  CompileRequest request;
  request.modelPath = model;
  request.outputPath = files.file(name);
  request.options.quantize = quantize;
  request.options.levels = {"x86-64-v3"};
  request.stagesFolder = stages;
  if (model.ends_with(".mlir"))
    request.from = Phase::Import;
  if (!exits.empty()) {
    request.options.exits = exits;
    request.options.exitMaps = exitMaps;
  }
  std::string diagnostics;
  request.diagnostic = [&](const std::string &text) {
    diagnostics += text + "\n";
  };
  mlir::MLIRContext context;
  prepareContext(context);
  Result<CompiledModel> compiled = compileModel(context, request);
  EXPECT_TRUE(compiled) << compiled.status().message() << "\n" << diagnostics;
  return compiled ? request.outputPath : std::string();
}

std::string
FaultyModel::compileChanged(const std::string &name,
                            const std::string &quantize,
                            const std::function<void(mlir::ModuleOp)> &change) {
  mlir::MLIRContext context;
  prepareContext(context);
  CompileRequest request;
  request.modelPath = folder();
  request.until = Phase::Import;
  Result<CompiledModel> imported = compileModel(context, request);
  EXPECT_TRUE(imported) << imported.status().message();
  if (!imported)
    return {};
  change(*imported->module);
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*imported->module)));
  files.write(name + ".mlir", stageText(*imported->module));
  return compile(files.file(name + ".mlir"), name, quantize);
}

} // namespace ingot::testing
