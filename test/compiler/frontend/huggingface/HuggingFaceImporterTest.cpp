// Hugging Face folders to specs: each rule of the descriptors, each trap of
// the configs, as whole kinds of input.
#include "compiler/frontend/huggingface/HuggingFaceImporter.h"

#include "test/compiler/frontend/TempFolder.h"
#include "test/compiler/frontend/TinyModel.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ingot;
using ingot::testing::TempFolder;
using ingot::testing::TinyModel;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

Result<ModelSpec> import(const TinyModel &model,
                         const ImportOptions &options = {}) {
  TempFolder folder;
  model.writeFolder(folder.path());
  return importHuggingFace(folder.path(), options);
}

ModelSpec imported(const TinyModel &model, const ImportOptions &options = {}) {
  auto spec = import(model, options);
  EXPECT_TRUE(spec.isOk()) << spec.status().message();
  return spec.isOk() ? *spec : ModelSpec();
}

void expectFault(const TinyModel &model,
                 const ::testing::Matcher<std::string> &message) {
  auto spec = import(model);
  ASSERT_FALSE(spec.isOk());
  EXPECT_THAT(spec.status().message(), message);
}

std::vector<std::int64_t> windowsOf(const ModelSpec &spec) {
  std::vector<std::int64_t> windows;
  for (const LayerSpec &layer : spec.layers)
    windows.push_back(layer.slidingWindow);
  return windows;
}

class EveryFamily : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Families, EveryFamily,
                         ::testing::Values("llama", "mistral", "qwen2",
                                           "qwen3"));

TEST_P(EveryFamily, CompleteSpec) {
  TinyModel model = TinyModel::make(GetParam());
  TempFolder folder;
  model.writeFolder(folder.path());
  auto spec = importHuggingFace(folder.path());
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  std::int64_t headDim = std::string(GetParam()) == "qwen3" ? 8 : 4;
  EXPECT_EQ(spec->family, GetParam());
  EXPECT_EQ(spec->vocabSize, 40);
  EXPECT_EQ(spec->hiddenSize, 16);
  EXPECT_EQ(spec->contextLength, 128);
  EXPECT_FALSE(spec->tiedHead);
  EXPECT_EQ(spec->normEps, double(1e-5f));
  EXPECT_THAT(spec->eosIds, ElementsAre(2));
  EXPECT_EQ(spec->bosId, 1);
  ASSERT_EQ(spec->layers.size(), 3u);
  for (const LayerSpec &layer : spec->layers) {
    EXPECT_EQ(layer.heads, 4);
    EXPECT_EQ(layer.kvHeads, 2);
    EXPECT_EQ(layer.headDim, headDim);
    EXPECT_EQ(layer.ffnSize, 24);
    EXPECT_EQ(layer.rotary.dim, headDim);
    EXPECT_EQ(layer.rotary.layout, RotaryLayout::Half);
    EXPECT_EQ(layer.rotary.invFreq.size(), std::size_t(headDim / 2));
    EXPECT_EQ(layer.rotary.invFreq[0], 1.0f);
    EXPECT_EQ(layer.slidingWindow, 0);
    EXPECT_EQ(layer.qkNorm != QkNorm::None, std::string(GetParam()) == "qwen3");
    EXPECT_EQ(layer.biases.q, std::string(GetParam()) == "qwen2");
    EXPECT_FALSE(layer.biases.o);
    EXPECT_DOUBLE_EQ(layer.softmaxScale, 1 / std::sqrt(double(headDim)));
  }
  // Every tensor is a parameter, and its bytes are in the file.
  EXPECT_EQ(spec->parameters.size(), model.tensors.size());
  ASSERT_EQ(spec->sources.size(), 1u);
  for (const auto &[role, source] : spec->parameters) {
    EXPECT_LE(source.byteOffset + source.sizeBytes, spec->sources[0].sizeBytes);
    std::vector<std::int64_t> shape(model.tensors[source.name].shape.begin(),
                                    model.tensors[source.name].shape.end());
    EXPECT_EQ(source.shape, shape) << role;
    EXPECT_EQ(source.permutation, RowPermutation::None);
  }
  EXPECT_EQ(spec->parameters.at("layer.2.down").name,
            "model.layers.2.mlp.down_proj.weight");
}

// The sharded folder gives the same spec as the single file.
TEST_P(EveryFamily, ShardedIsTheSame) {
  TinyModel model = TinyModel::make(GetParam());
  TempFolder sharded;
  model.writeSharded(sharded.path(), 3);
  auto spec = importHuggingFace(sharded.path());
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  ModelSpec single = imported(model);
  EXPECT_EQ(spec->sources.size(), 3u);
  EXPECT_EQ(spec->layers, single.layers);
  ASSERT_EQ(spec->parameters.size(), single.parameters.size());
  for (const auto &[role, source] : spec->parameters)
    EXPECT_EQ(source.name, single.parameters.at(role).name);
}

// Everything that is unknown or wrong is listed in one message.
TEST_P(EveryFamily, ListsEverythingWrong) {
  TinyModel model = TinyModel::make(GetParam());
  model.config["novel_key"] = 1;
  model.config["another_key"] = "x";
  model.add("model.layers.1.mlp.extra.weight", {4});
  model.add("surplus.weight", {2, 2});
  model.add("model.norm.weight", {17});
  model.add("model.layers.0.mlp.up_proj.weight", {16, 24});
  model.tensors.erase("model.layers.2.self_attn.k_proj.weight");
  expectFault(model,
              AllOf(HasSubstr("\"novel_key\""), HasSubstr("\"another_key\""),
                    HasSubstr("\"model.layers.1.mlp.extra.weight\" [4]"),
                    HasSubstr("\"surplus.weight\" [2, 2]"),
                    HasSubstr("\"model.norm.weight\" expected [16], found "
                              "[17]"),
                    HasSubstr("\"model.layers.0.mlp.up_proj.weight\" expected "
                              "[24, 16], found [16, 24]"),
                    HasSubstr("missing tensors: "
                              "\"model.layers.2.self_attn.k_proj.weight\"")));
}

// Any tensor left out is a fault that names it, and any key that is required.
TEST_P(EveryFamily, NothingMayBeMissing) {
  TinyModel model = TinyModel::make(GetParam());
  for (const auto &[name, tensor] : model.tensors) {
    TinyModel less = model;
    less.tensors.erase(name);
    expectFault(less, HasSubstr("\"" + name + "\""));
  }
  for (const char *key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "max_position_embeddings"}) {
    TinyModel less = model;
    less.config.erase(key);
    expectFault(less, HasSubstr(std::string("\"") + key + "\""));
  }
}

// A value of a wrong kind or range names its key.
TEST_P(EveryFamily, WrongValues) {
  for (auto [key, value] : std::vector<std::pair<const char *, json>>{
           {"vocab_size", -1},
           {"hidden_size", "16"},
           {"hidden_size", 16.5},
           {"num_hidden_layers", 0},
           {"num_hidden_layers", 1e18},
           {"num_hidden_layers", 18446744073709551615ull},
           {"num_attention_heads", json::array({4, 4})},
           {"num_attention_heads", 5000000000ll},
           {"rms_norm_eps", -1.0},
           {"rms_norm_eps", 0},
           {"rms_norm_eps", 1e-60}, // zero in float32
           {"rms_norm_eps", 1e39},
           {"rms_norm_eps", "1e-5"},
           {"rope_theta", 0},
           {"rope_theta", "x"},
           {"hidden_act", 7},
           {"tie_word_embeddings", "yes"},
           {"head_dim", 3},
           {"head_dim", 100000},
           {"eos_token_id", 40},
           {"eos_token_id", -1},
           {"bos_token_id", "<s>"}}) {
    TinyModel model = TinyModel::make(GetParam());
    model.config[key] = value;
    expectFault(model, HasSubstr(std::string("\"") + key + "\""));
  }
}

TEST_P(EveryFamily, RefusesByName) {
  TinyModel model = TinyModel::make(GetParam());
  model.config["hidden_act"] = "relu2";
  expectFault(model, HasSubstr("unsupported activations: \"relu2\""));
  model = TinyModel::make(GetParam());
  model.config["quantization_config"] = {{"quant_method", "gptq"}};
  expectFault(model, HasSubstr("missing quantization_config keys: \"bits\""));
  model.config["quantization_config"] = {{"quant_method", "hqq"}};
  expectFault(model, HasSubstr("\"quant_method\" is \"hqq\""));
  model.config["quantization_config"] = {
      {"quant_method", "awq"}, {"bits", 4}, {"group_size", 32}};
  expectFault(model, HasSubstr("no tensor is quantised so"));
  model = TinyModel::make(GetParam());
  model.config["architectures"] = {"LlamaForSequenceClassification"};
  expectFault(model, HasSubstr("\"LlamaForSequenceClassification\""));
  model = TinyModel::make(GetParam());
  model.config["model_type"] = "novel";
  expectFault(model, AllOf(HasSubstr("unsupported model_type \"novel\""),
                           HasSubstr("llama")));
}

// B06 (a): tied, no head.
TEST_P(EveryFamily, TiedHead) {
  TinyModel model = TinyModel::make(GetParam());
  model.config["tie_word_embeddings"] = true;
  model.tensors.erase("lm_head.weight");
  ModelSpec spec = imported(model);
  EXPECT_TRUE(spec.tiedHead);
  EXPECT_FALSE(spec.parameters.count("lm_head"));
}

// B06 (b): tied, and a head in the file: used when it differs.
TEST_P(EveryFamily, TiedHeadInFile) {
  TinyModel model = TinyModel::make(GetParam());
  model.config["tie_word_embeddings"] = true;
  ModelSpec spec = imported(model);
  EXPECT_FALSE(spec.tiedHead);
  EXPECT_EQ(spec.parameters.at("lm_head").name, "lm_head.weight");
  EXPECT_THAT(spec.notes, Contains(HasSubstr("differs")));
  model.tensors["lm_head.weight"] = model.tensors["model.embed_tokens.weight"];
  spec = imported(model);
  EXPECT_TRUE(spec.tiedHead);
  EXPECT_FALSE(spec.parameters.count("lm_head"));
}

// B06 (c): not tied, no head: a named error, or tied by request.
TEST_P(EveryFamily, MissingHead) {
  TinyModel model = TinyModel::make(GetParam());
  model.tensors.erase("lm_head.weight");
  expectFault(model, AllOf(HasSubstr("\"lm_head.weight\""),
                           HasSubstr("tie_word_embeddings")));
  model.config.erase("tie_word_embeddings"); // these families: false
  expectFault(model, HasSubstr("\"lm_head.weight\""));
  ImportOptions options;
  options.tieMissingHead = true;
  EXPECT_TRUE(imported(model, options).tiedHead);
}

// B06 (d): what the nested text config says wins.
TEST_P(EveryFamily, NestedTextConfig) {
  for (bool outer : {false, true}) {
    TinyModel model = TinyModel::make(GetParam());
    model.tensors.erase("lm_head.weight");
    model.config["text_config"] = {{"tie_word_embeddings", true}};
    if (outer)
      model.config["tie_word_embeddings"] = false;
    else
      model.config.erase("tie_word_embeddings");
    EXPECT_TRUE(imported(model).tiedHead);
  }
  TinyModel model = TinyModel::make(GetParam());
  model.config["tie_word_embeddings"] = true;
  model.config["text_config"] = {{"tie_word_embeddings", false}};
  EXPECT_FALSE(imported(model).tiedHead);
}

// B07: the head size of the config, not hidden / heads, rules every shape.
TEST_P(EveryFamily, HeadDimOfItsOwn) {
  TinyModel model = TinyModel::make(GetParam());
  std::string family = GetParam();
  model.config["head_dim"] = 6;
  for (int i = 0; i < 3; ++i) {
    std::string base = "model.layers." + std::to_string(i) + ".self_attn.";
    model.add(base + "q_proj.weight", {24, 16});
    model.add(base + "k_proj.weight", {12, 16});
    model.add(base + "v_proj.weight", {12, 16});
    model.add(base + "o_proj.weight", {16, 24});
    if (family == "qwen2") {
      model.add(base + "q_proj.bias", {24});
      model.add(base + "k_proj.bias", {12});
      model.add(base + "v_proj.bias", {12});
    }
    if (family == "qwen3") {
      model.add(base + "q_norm.weight", {6});
      model.add(base + "k_norm.weight", {6});
    }
  }
  ModelSpec spec = imported(model);
  ASSERT_EQ(spec.layers.size(), 3u);
  EXPECT_EQ(spec.layers[0].headDim, 6);
  EXPECT_DOUBLE_EQ(spec.layers[0].softmaxScale, 1 / std::sqrt(6.0));
  EXPECT_EQ(spec.layers[0].rotary.invFreq.size(), 3u);
}

// X04: missing and null key-value heads are the heads; no odd quotient.
TEST_P(EveryFamily, KeyValueHeads) {
  for (bool null : {false, true}) {
    TinyModel model = TinyModel::make(GetParam());
    if (null)
      model.config["num_key_value_heads"] = nullptr;
    else
      model.config.erase("num_key_value_heads");
    std::uint64_t rows = 4 * (std::string(GetParam()) == "qwen3" ? 8 : 4);
    for (int i = 0; i < 3; ++i)
      for (const char *name : {"k_proj", "v_proj"}) {
        std::string base =
            "model.layers." + std::to_string(i) + ".self_attn." + name;
        model.add(base + ".weight", {rows, 16});
        if (std::string(GetParam()) == "qwen2")
          model.add(base + ".bias", {rows});
      }
    EXPECT_EQ(imported(model).layers[1].kvHeads, 4);
  }
  TinyModel model = TinyModel::make(GetParam());
  model.config["num_attention_heads"] = 7;
  model.config["head_dim"] = 4;
  expectFault(model, AllOf(HasSubstr("\"num_key_value_heads\""),
                           HasSubstr("7 heads are not a multiple of 2")));
}

TEST(HuggingFaceImporter, HiddenSizeWithoutHeadDim) {
  TinyModel model = TinyModel::make("llama");
  model.config["num_attention_heads"] = 5;
  model.config["num_key_value_heads"] = 5;
  expectFault(model, HasSubstr("not a multiple of the heads"));
}

// X05: flags announce biases; biases that no flag announces are left over.
TEST(HuggingFaceImporter, LlamaBiases) {
  TinyModel model = TinyModel::make("llama");
  model.config["attention_bias"] = true;
  model.config["mlp_bias"] = true;
  model.addAttentionBiases(true);
  model.addMlpBiases();
  ModelSpec spec = imported(model);
  EXPECT_TRUE(spec.layers[2].biases.o && spec.layers[2].biases.down);
  EXPECT_EQ(spec.parameters.at("layer.2.o.bias").shape,
            (std::vector<std::int64_t>{16}));
  EXPECT_EQ(spec.parameters.at("layer.0.k.bias").shape,
            (std::vector<std::int64_t>{8}));
  model.config["mlp_bias"] = false;
  expectFault(model, AllOf(HasSubstr("model.layers.0.mlp.gate_proj.bias"),
                           HasSubstr("model.layers.2.mlp.down_proj.bias")));
  model = TinyModel::make("llama");
  model.config["attention_bias"] = true;
  expectFault(model, HasSubstr("model.layers.0.self_attn.o_proj.bias"));
}

TEST(HuggingFaceImporter, QwenBiases) {
  ModelSpec spec = imported(TinyModel::make("qwen2"));
  EXPECT_TRUE(spec.layers[0].biases.q && spec.layers[0].biases.k &&
              spec.layers[0].biases.v);
  EXPECT_TRUE(spec.parameters.count("layer.1.v.bias"));
  TinyModel model = TinyModel::make("qwen2");
  model.addAttentionBiases(true);
  expectFault(model, HasSubstr("o_proj.bias"));
  model = TinyModel::make("qwen3");
  model.config["attention_bias"] = true;
  model.addAttentionBiases(true);
  EXPECT_TRUE(imported(model).layers[0].biases.o);
}

// Tables that older versions saved are left out by rule, with a note.
TEST(HuggingFaceImporter, IgnoredTensors) {
  TinyModel model = TinyModel::make("llama");
  model.add("model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  model.add("model.layers.1.self_attn.rotary_emb.inv_freq", {2});
  ModelSpec spec = imported(model);
  EXPECT_THAT(spec.notes, Contains(HasSubstr("2 tensors are left out")));
  model.add("model.layers.x.self_attn.rotary_emb.inv_freq", {2});
  expectFault(model, HasSubstr("model.layers.x.self_attn"));
}

json llama3(const char *typeKey) {
  return {{typeKey, "llama3"},
          {"factor", 8.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 64}};
}

// B08: every spelling of the same rotary gives the same rotary.
TEST_P(EveryFamily, RotarySpellings) {
  TinyModel model = TinyModel::make(GetParam());
  model.config["rope_theta"] = 500000.0;
  model.config["rope_scaling"] = llama3("rope_type");
  ModelSpec expected = imported(model);
  EXPECT_EQ(expected.layers[0].rotary.kind, RotaryKind::Llama3);
  EXPECT_EQ(expected.layers[0].rotary.originalContextLength, 64);

  model.config["rope_scaling"] = llama3("type");
  EXPECT_EQ(imported(model).layers, expected.layers);
  model.config["rope_scaling"]["rope_type"] = "llama3";
  EXPECT_EQ(imported(model).layers, expected.layers);
  // transformers 5: one object, which holds theta.
  model.config.erase("rope_scaling");
  model.config.erase("rope_theta");
  model.config["rope_parameters"] = llama3("rope_type");
  model.config["rope_parameters"]["rope_theta"] = 500000.0;
  EXPECT_EQ(imported(model).layers, expected.layers);
  model.config["rope_scaling"] = nullptr;
  EXPECT_EQ(imported(model).layers, expected.layers);

  TinyModel plain = TinyModel::make(GetParam());
  ModelSpec plainSpec = imported(plain);
  plain.config["rope_scaling"] = nullptr;
  EXPECT_EQ(imported(plain).layers, plainSpec.layers);
  plain.config.erase("rope_scaling");
  plain.config.erase("rope_theta");
  plain.config["rope_parameters"] = {{"rope_type", "default"},
                                     {"rope_theta", 10000.0}};
  EXPECT_EQ(imported(plain).layers, plainSpec.layers);
}

TEST_P(EveryFamily, RotaryLinear) {
  TinyModel model = TinyModel::make(GetParam());
  ModelSpec plain = imported(model);
  model.config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  ModelSpec spec = imported(model);
  EXPECT_EQ(spec.layers[0].rotary.kind, RotaryKind::Linear);
  for (std::size_t i = 0; i < spec.layers[0].rotary.invFreq.size(); ++i)
    EXPECT_EQ(spec.layers[0].rotary.invFreq[i],
              plain.layers[0].rotary.invFreq[i] / 4.0f);
}

TEST_P(EveryFamily, RotaryRefusals) {
  for (const char *where : {"rope_scaling", "rope_parameters"})
    for (const char *value : {"[]", "[1]", "\"\"", "0", "false"}) {
      TinyModel model = TinyModel::make(GetParam());
      model.config[where] = nlohmann::json::parse(value);
      auto spec = import(model);
      ASSERT_FALSE(spec.isOk()) << value;
      EXPECT_THAT(spec.status().message(), HasSubstr("expected an object"));
    }
  for (const char *type : {"mrope", "ntk", "x"}) {
    for (const char *key : {"rope_type", "type"})
      for (const char *where : {"rope_scaling", "rope_parameters"}) {
        TinyModel model = TinyModel::make(GetParam());
        model.config[where] = {{key, type}, {"factor", 2.0}};
        auto spec = import(model);
        ASSERT_FALSE(spec.isOk());
        EXPECT_EQ(spec.status().code(), StatusCode::Unsupported);
        EXPECT_THAT(spec.status().message(),
                    HasSubstr("unsupported rotary types: \"" +
                              std::string(type) + "\""));
      }
  }
  for (json scaling : std::vector<json>{
           {{"type", "linear"}},
           {{"type", "linear"}, {"factor", "x"}},
           {{"type", "linear"}, {"factor", 0}},
           {{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 1}},
           {{"type", "linear"}, {"rope_type", "llama3"}, {"factor", 2.0}},
           {{"rope_type", "llama3"}, {"factor", 8.0}},
           {{"rope_type", 3}},
           json::array({1})}) {
    TinyModel model = TinyModel::make(GetParam());
    model.config["rope_scaling"] = scaling;
    expectFault(model, HasSubstr("\"rope_scaling\""));
  }
  TinyModel model = TinyModel::make(GetParam());
  model.config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  model.config["rope_parameters"] = {{"rope_type", "default"}};
  expectFault(model, HasSubstr("contradicts"));
}

// B10: part of the head rotates; absent means all of it in these families.
TEST_P(EveryFamily, PartialRotary) {
  TinyModel model = TinyModel::make(GetParam());
  std::int64_t headDim = imported(model).layers[0].headDim;
  EXPECT_EQ(imported(model).layers[0].rotary.dim, headDim);
  model.config["partial_rotary_factor"] = 0.5;
  EXPECT_EQ(imported(model).layers[0].rotary.dim, headDim / 2);
  model.config["partial_rotary_factor"] = 1.5;
  expectFault(model, HasSubstr("partial_rotary_factor"));
}

class QwenFamily : public ::testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Families, QwenFamily,
                         ::testing::Values("qwen2", "qwen3"));

// B11: a window counts only where the gate is open, and only from the layer
// that the config states.
TEST_P(QwenFamily, WindowGates) {
  TinyModel model = TinyModel::make(GetParam());
  model.config["sliding_window"] = 2048;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 0, 0));
  model.config["use_sliding_window"] = false;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 0, 0));
  model.config["use_sliding_window"] = true; // max_window_layers: 28
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 0, 0));
  model.config["max_window_layers"] = 1;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 2048, 2048));
  model.config["max_window_layers"] = 0;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(2048, 2048, 2048));
  model.config["sliding_window"] = nullptr;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 0, 0));
  model.config["sliding_window"] = 4;
  model.config["layer_types"] = {"full_attention", "sliding_attention",
                                 "full_attention"};
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 4, 0));
  model.config["use_sliding_window"] = false;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 0, 0));
  model.config["layer_types"] = {"full_attention"};
  expectFault(model, HasSubstr("\"layer_types\""));
  model.config["layer_types"] = {"full_attention", "linear_attention",
                                 "full_attention"};
  expectFault(model, HasSubstr("\"layer_types\""));
}

TEST(HuggingFaceImporter, MistralWindow) {
  TinyModel model = TinyModel::make("mistral");
  model.config["sliding_window"] = 4;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(4, 4, 4));
  model.config["sliding_window"] = nullptr;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 0, 0));
  model.config.erase("sliding_window");
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(4096, 4096, 4096));
}

TEST(HuggingFaceImporter, LlamaHasNoWindow) {
  TinyModel model = TinyModel::make("llama");
  model.config["sliding_window"] = 4;
  expectFault(model, HasSubstr("\"sliding_window\""));
  model.config["sliding_window"] = nullptr;
  EXPECT_THAT(windowsOf(imported(model)), ElementsAre(0, 0, 0));
}

// B12: the stop set is the union of all files, each an id or a list.
TEST(HuggingFaceImporter, EosIds) {
  TinyModel model = TinyModel::make("llama");
  model.config["eos_token_id"] = 7;
  model.generationConfig = {{"eos_token_id", {9, 8}}, {"bos_token_id", 3}};
  EXPECT_THAT(imported(model).eosIds, ElementsAre(7, 8, 9));
  EXPECT_EQ(imported(model).bosId, 1);
  model.tokenizerConfig = {
      {"eos_token", "<end>"},
      {"added_tokens_decoder", {{"11", {{"content", "<end>"}}}}}};
  EXPECT_THAT(imported(model).eosIds, ElementsAre(7, 8, 9, 11));
  model.tokenizerConfig["eos_token"] = {{"content", "<end>"}};
  EXPECT_THAT(imported(model).eosIds, ElementsAre(7, 8, 9, 11));
  model.config.erase("eos_token_id");
  model.config["bos_token_id"] = nullptr;
  model.generationConfig["eos_token_id"] = 7;
  EXPECT_THAT(imported(model).eosIds, ElementsAre(7, 11));
  EXPECT_EQ(imported(model).bosId, 3);
  model.tokenizerConfig["eos_token"] = "<other>";
  expectFault(model, HasSubstr("\"<other>\""));
  model.tokenizerConfig = nullptr;
  model.generationConfig["eos_token_id"] = {1, 40};
  expectFault(model, HasSubstr("\"eos_token_id\""));
}

// The end token's id from tokenizer.json, in each of the forms of that file.
TEST(HuggingFaceImporter, EosIdFromTokenizer) {
  for (const char *tokenizer :
       {R"({"added_tokens":[{"id":5,"content":"<e>"}],"model":{"vocab":{}}})",
        R"({"added_tokens":[],"model":{"vocab":{"a":0,"<e>":5}}})",
        R"({"model":{"vocab":[["a",0],["b",0],["c",0],["d",0],["x",0],)"
        R"(["<e>",0]]}})"}) {
    TempFolder folder;
    TinyModel model = TinyModel::make("llama");
    model.tokenizerConfig = {{"eos_token", "<e>"}};
    model.writeFolder(folder.path());
    folder.write("tokenizer.json", std::string(tokenizer));
    auto spec = importHuggingFace(folder.path());
    ASSERT_TRUE(spec.isOk()) << spec.status().message();
    EXPECT_THAT(spec->eosIds, ElementsAre(2, 5));
    EXPECT_EQ(spec->tokenizer.kind, TokenizerLocation::Kind::HuggingFaceJson);
    EXPECT_EQ(spec->tokenizer.path, folder.file("tokenizer.json"));
  }
}

TEST(HuggingFaceImporter, GenerationConfig) {
  TinyModel model = TinyModel::make("qwen2");
  model.generationConfig = {{"do_sample", true},
                            {"temperature", 0.7},
                            {"top_p", 0.8},
                            {"top_k", 20},
                            {"min_p", 0.05},
                            {"repetition_penalty", 1.05},
                            {"pad_token_id", 3},
                            {"max_new_tokens", 512},
                            {"transformers_version", "4.37.0"}};
  ModelSpec spec = imported(model);
  EXPECT_EQ(spec.sampling.doSample, true);
  EXPECT_EQ(spec.sampling.temperature, 0.7);
  EXPECT_EQ(spec.sampling.topP, 0.8);
  EXPECT_EQ(spec.sampling.topK, 20);
  EXPECT_EQ(spec.sampling.minP, 0.05);
  EXPECT_EQ(spec.sampling.repetitionPenalty, 1.05);
  EXPECT_EQ(imported(TinyModel::make("qwen2")).sampling, DefaultSampling());
  model.generationConfig["novel"] = 1;
  model.generationConfig["num_beams"] = 4;
  model.generationConfig["top_p"] = 1.5;
  expectFault(model, AllOf(HasSubstr("\"novel\""), HasSubstr("\"num_beams\""),
                           HasSubstr("\"top_p\"")));
}

TEST(HuggingFaceImporter, TextsOfTheFolder) {
  TempFolder folder;
  TinyModel model = TinyModel::make("llama");
  model.tokenizerConfig = {{"chat_template", "T"}};
  model.writeFolder(folder.path());
  folder.write("LICENSE", std::string("be good"));
  folder.write("README.md", std::string("# Tiny"));
  auto spec = importHuggingFace(folder.path());
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->licence, "be good");
  EXPECT_EQ(spec->modelCard, "# Tiny");
  EXPECT_THAT(spec->chatTemplates, ElementsAre(TemplateSource{"default", "T"}));
  // A file of its own stands above; named ones lie in a folder.
  folder.write("chat_template.jinja", std::string("F"));
  std::filesystem::create_directory(folder.file("additional_chat_templates"));
  folder.write("additional_chat_templates/tool.jinja", std::string("U"));
  spec = importHuggingFace(folder.path());
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_THAT(spec->chatTemplates, ElementsAre(TemplateSource{"default", "F"},
                                               TemplateSource{"tool", "U"}));
}

TEST(HuggingFaceImporter, NamedChatTemplates) {
  TinyModel model = TinyModel::make("llama");
  model.tokenizerConfig["chat_template"] = {
      {{"name", "rag"}, {"template", "R"}},
      {{"name", "default"}, {"template", "D"}}};
  EXPECT_THAT(
      imported(model).chatTemplates,
      ElementsAre(TemplateSource{"default", "D"}, TemplateSource{"rag", "R"}));
  model.tokenizerConfig["chat_template"][0]["name"] = "default";
  expectFault(model, HasSubstr("given twice"));
  model.tokenizerConfig["chat_template"] = 3;
  expectFault(model, HasSubstr("chat_template"));
}

// Weights of a dtype that no kernel takes are refused by dtype and name.
TEST(HuggingFaceImporter, Dtypes) {
  TinyModel model = TinyModel::make("llama");
  for (auto &[name, tensor] : model.tensors)
    tensor.dtype = "BF16";
  ModelSpec spec = imported(model);
  EXPECT_EQ(spec.parameters.at("layer.0.q").dtype, WeightDtype::BF16);
  EXPECT_EQ(spec.parameters.at("layer.0.q").sizeBytes, 16u * 16u * 2u);
  TempFolder folder;
  model.writeFolder(folder.path());
  std::vector<std::uint8_t> bytes = model.safetensors();
  std::string text(bytes.begin(), bytes.end());
  std::size_t at;
  while ((at = text.find("\"BF16\"")) != std::string::npos)
    text.replace(at, 6, "\"I16\" ");
  folder.write("model.safetensors", text);
  auto refused = importHuggingFace(folder.path());
  ASSERT_FALSE(refused.isOk());
  EXPECT_EQ(refused.status().code(), StatusCode::Unsupported);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("unsupported dtype I16 in tensor "
                              "\"model.norm.weight\""),
                    HasSubstr("tensor \"lm_head.weight\"")));
}

// A descriptor of the user reads a family that is not built in.
TEST(HuggingFaceImporter, UserDescriptor) {
  TempFolder folder;
  TinyModel model = TinyModel::make("llama");
  model.config["model_type"] = "novel";
  model.config["architectures"] = {"NovelForCausalLM"};
  EXPECT_FALSE(import(model).isOk());
  json descriptor = {{"family", "novel"},
                     {"about", "A test."},
                     {"block",
                      {{"rotaryLayout", "half"},
                       {"qkNorm", "none"},
                       {"slidingWindow", "everyLayer"},
                       {"biases",
                        {{"q", "never"},
                         {"k", "never"},
                         {"v", "never"},
                         {"o", "never"},
                         {"gate", "never"},
                         {"up", "never"},
                         {"down", "never"}}}}}};
  json source = json::parse(
      std::ifstream(INGOT_SOURCE_DIR "/compiler/architectures/mistral.json"));
  descriptor["huggingface"] = source["huggingface"];
  descriptor["huggingface"]["names"] = {"novel"};
  descriptor["huggingface"]["architectures"] = {"NovelForCausalLM"};
  folder.write("novel.json", descriptor.dump());
  ImportOptions options;
  options.descriptorPaths = {folder.file("novel.json")};
  model.config["sliding_window"] = 4;
  EXPECT_EQ(imported(model, options).family, "novel");
  folder.write("novel.json", std::string("{}"));
  EXPECT_FALSE(import(model, options).isOk());
}

// A folder that is something else is named as that.
TEST(HuggingFaceImporter, FolderWithoutConfig) {
  for (auto [file, advice] :
       {std::pair("adapter_config.json", "--lora"),
        std::pair("model.gguf", "give that file itself"),
        std::pair("params.json", "another form"),
        std::pair("README.md", "holds no \"config.json\"")}) {
    TempFolder folder;
    folder.write(file, "{}");
    auto spec = importHuggingFace(folder.path());
    ASSERT_FALSE(spec.isOk());
    EXPECT_EQ(spec.status().code(), StatusCode::NotFound);
    EXPECT_THAT(spec.status().message(), HasSubstr(advice));
  }
}

// A tokenizer that is not read is no model without one.
TEST(HuggingFaceImporter, OtherFormsOfTokenizer) {
  for (const char *name : {"vocab.json", "merges.txt", "vocab.txt",
                           "tekken.json", "spiece.model", "qwen.tiktoken"}) {
    TempFolder folder;
    TinyModel::make("llama").writeFolder(folder.path());
    folder.write(name, "{}");
    auto spec = importHuggingFace(folder.path());
    ASSERT_FALSE(spec.isOk()) << name;
    EXPECT_EQ(spec.status().code(), StatusCode::Unsupported);
    EXPECT_THAT(spec.status().message(),
                AllOf(HasSubstr(name), HasSubstr("tokenizer.json")));
    folder.write("tokenizer.json", "{}");
    EXPECT_TRUE(importHuggingFace(folder.path()).isOk()) << name;
  }
}

// The text part of a model that also sees images: keys, tensors and classes of
// the other parts are left out, those of the text part read as any model's.
TEST(HuggingFaceImporter, TextPart) {
  auto wrap = [](const std::string &family, const std::string &whole,
                 const std::string &architecture, const std::string &prefix,
                 const std::string &innerType) {
    TinyModel model = TinyModel::make(family);
    json inner = model.config;
    inner.erase("architectures");
    inner["model_type"] = innerType;
    model.config = {{"model_type", whole},
                    {"architectures", {architecture}},
                    {"vision_config", {{"hidden_size", 4}}},
                    {"text_config", inner},
                    {"torch_dtype", "float32"}};
    std::map<std::string, ingot::testing::TinyTensor> tensors;
    for (auto &[name, tensor] : model.tensors)
      tensors[name.starts_with("model.") ? prefix + name.substr(6) : name] =
          std::move(tensor);
    model.tensors = std::move(tensors);
    return model;
  };
  ModelSpec plain = imported(TinyModel::make("qwen2"));
  TinyModel model =
      wrap("qwen2", "qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration",
           "model.language_model.", "qwen2_5_vl_text");
  model.add("model.visual.blocks.0.norm1.weight", {4});
  model.config["image_token_id"] = 5;
  model.config["text_config"].erase("rope_theta");
  model.config["text_config"]["rope_scaling"] = {{"type", "mrope"},
                                                 {"mrope_section", {1, 1, 0}}};
  model.config["text_config"]["rope_theta"] = 10000.0;
  ModelSpec spec = imported(model);
  EXPECT_EQ(spec.family, "qwen2");
  EXPECT_EQ(spec.layers, plain.layers);
  EXPECT_EQ(spec.parameters.size(), plain.parameters.size());
  EXPECT_THAT(spec.notes, Contains(HasSubstr("1 tensors of parts that read no "
                                             "text")));

  // The older form, with all keys in one object and no names of its own.
  TinyModel flat = TinyModel::make("qwen2");
  flat.config["model_type"] = "qwen2_vl";
  flat.config["architectures"] = {"Qwen2VLForConditionalGeneration"};
  flat.config["vision_config"] = {{"depth", 1}};
  flat.config["rope_scaling"] = {{"type", "mrope"},
                                 {"mrope_section", {1, 1, 0}}};
  flat.add("visual.merger.ln_q.weight", {4});
  EXPECT_EQ(imported(flat).layers, plain.layers);

  // What is known neither to the wrapper nor to the family is refused.
  model.config["video_mode"] = 1;
  expectFault(model,
              AllOf(HasSubstr("unknown config keys"), HasSubstr("video_mode")));
  model.config.erase("video_mode");
  model.add("model.audio.weight", {4});
  expectFault(model, AllOf(HasSubstr("unknown tensors"),
                           HasSubstr("model.audio.weight")));
  model.tensors.erase("model.audio.weight");
  model.config["architectures"] = {"OtherModel"};
  expectFault(model, AllOf(HasSubstr("unsupported architectures"),
                           HasSubstr("OtherModel"), HasSubstr("qwen2_5_vl")));
  model.config["architectures"] = {"Qwen2_5_VLForConditionalGeneration"};
  model.config["text_config"]["model_type"] = "other";
  expectFault(model, AllOf(HasSubstr("the text part of model_type"),
                           HasSubstr("\"other\"")));
  model.config.erase("text_config");
  flat = TinyModel::make("llama");
  flat.config["model_type"] = "llava";
  flat.config.erase("architectures");
  expectFault(flat, HasSubstr("is not nested"));
  flat.config["text_config"] = 3;
  expectFault(flat, HasSubstr("text_config: expected an object"));
}

// The slopes of heads as transformers has them, of a power of two of heads and not.
TEST(HuggingFaceImporter, AlibiSlopes) {
  const std::string models = INGOT_SOURCE_DIR "/test/models/families/";
  auto slopesOf = [&](const char *name) {
    auto spec = importHuggingFace(models + name);
    EXPECT_TRUE(spec.isOk()) << spec.status().message();
    return spec.isOk() ? spec->layers.at(1) : LayerSpec();
  };
  using ::testing::FloatEq;
  // build_alibi_tensor: four heads of base 1/4, then odd powers of 1/2.
  EXPECT_THAT(slopesOf("bloom").slopes,
              ElementsAre(FloatEq(1.f / 4), FloatEq(1.f / 16),
                          FloatEq(1.f / 64), FloatEq(1.f / 256),
                          FloatEq(1.f / 2), FloatEq(1.f / 8)));
  EXPECT_FALSE(slopesOf("bloom").roundedSlopes);
  // build_mpt_alibi_tensor: even powers of 1/2 up to the eighth, then odd ones.
  EXPECT_THAT(slopesOf("mpt").slopes,
              ElementsAre(FloatEq(1.f / 4), FloatEq(1.f / 16),
                          FloatEq(1.f / 64), FloatEq(1.f / 256),
                          FloatEq(1.f / 2), FloatEq(1.f / 8)));
  EXPECT_THAT(slopesOf("falcon-alibi").slopes,
              ElementsAre(1.f / 4, 1.f / 16, 1.f / 64, 1.f / 256));
  EXPECT_TRUE(slopesOf("falcon-alibi").roundedSlopes);
  EXPECT_TRUE(slopesOf("falcon").slopes.empty());
}

// An object whose keys have rules of their own.
TEST(HuggingFaceImporter, NestedKeys) {
  TempFolder folder;
  const std::string from = INGOT_SOURCE_DIR "/test/models/families/mpt/";
  std::filesystem::copy_file(from + "model.safetensors",
                             folder.file("model.safetensors"));
  std::ifstream in(from + "config.json");
  json config = json::parse(in);
  auto faultOf = [&](const json &changed) {
    folder.write("config.json", changed.dump());
    auto spec = importHuggingFace(folder.path());
    return spec.isOk() ? std::string() : spec.status().message();
  };
  EXPECT_EQ(faultOf(config), "");
  json other = config;
  other["attn_config"]["clip_qkv"] = 6;
  EXPECT_THAT(faultOf(other), HasSubstr("attn_config.clip_qkv"));
  other = config;
  other["attn_config"]["alibi"] = false;
  EXPECT_THAT(faultOf(other), AllOf(HasSubstr("attn_config.alibi"),
                                    HasSubstr("learned positions")));
  other = config;
  other["attn_config"]["rope"] = true;
  EXPECT_THAT(faultOf(other), AllOf(HasSubstr("unknown config keys"),
                                    HasSubstr("attn_config.rope")));
}

} // namespace
