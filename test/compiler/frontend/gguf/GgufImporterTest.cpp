// GGUF files to specs: what the metadata says, what the tensors alone say, and
// two real files where they are at hand.
#include "compiler/frontend/gguf/GgufImporter.h"

#include "compiler/frontend/gguf/GgufFile.h"
#include "test/compiler/frontend/GgufBuilder.h"
#include "test/compiler/frontend/TempFolder.h"
#include "test/compiler/frontend/TinyModel.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <unistd.h>

using namespace ingot;
using ingot::testing::GgufBuilder;
using ingot::testing::TempFolder;
using ingot::testing::TinyModel;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

// A copy of a file's metadata and tensors into a builder, some left out, so
// that a test changes one thing of a good file.
GgufBuilder copyOf(const std::vector<std::uint8_t> &bytes,
                   const std::vector<std::string> &without = {}) {
  auto file = GgufFile::fromMemory(bytes, "copy");
  GgufBuilder out;
  auto leftOut = [&](const std::string &name) {
    return std::find(without.begin(), without.end(), name) != without.end();
  };
  for (const auto &[key, value] : file->metadata()) {
    if (leftOut(key))
      continue;
    if (auto text = value.asString())
      out.text(key, std::string(*text));
    else if (auto texts = value.asStrings())
      out.texts(key, {texts->begin(), texts->end()});
    else if (auto integer = value.asInteger())
      out.u32(key, static_cast<std::uint32_t>(*integer));
    else
      out.f32(key, static_cast<float>(*value.asFloat()));
  }
  for (const GgufTensor &tensor : file->tensors())
    if (!leftOut(tensor.name)) {
      auto data = file->data(tensor);
      out.tensor(tensor.name, tensor.dims, tensor.type->id,
                 {data.begin(), data.end()});
    }
  return out;
}

Result<ModelSpec> import(const GgufBuilder &builder) {
  TempFolder folder;
  folder.write("x.gguf", builder.bytes());
  return importGguf(folder.file("x.gguf"));
}

ModelSpec imported(const GgufBuilder &builder) {
  auto spec = import(builder);
  EXPECT_TRUE(spec.isOk()) << spec.status().message();
  return spec.isOk() ? *spec : ModelSpec();
}

void expectFault(const GgufBuilder &builder,
                 const ::testing::Matcher<std::string> &message) {
  auto spec = import(builder);
  ASSERT_FALSE(spec.isOk());
  EXPECT_THAT(spec.status().message(), message);
}

std::vector<std::uint8_t> llama() { return TinyModel::make("llama").gguf(); }

std::vector<std::uint8_t> floats(const std::vector<float> &values) {
  std::vector<std::uint8_t> bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(GgufImporter, ListsEverythingWrong) {
  GgufBuilder builder =
      copyOf(llama(), {"blk.1.attn_k.weight", "output_norm.weight"});
  builder.u32("llama.novel", 1);
  builder.u32("other.key", 1);
  builder.tensor("surplus.weight", {2, 3}, 0, std::vector<std::uint8_t>(24));
  builder.tensor("output_norm.weight", {17}, 0, std::vector<std::uint8_t>(68));
  expectFault(builder,
              AllOf(HasSubstr("\"llama.novel\""), HasSubstr("\"other.key\""),
                    HasSubstr("\"surplus.weight\" [3, 2]"),
                    HasSubstr("missing tensors: \"blk.1.attn_k.weight\""),
                    HasSubstr("\"output_norm.weight\" expected [16], found "
                              "[17]")));
}

TEST(GgufImporter, RequiredKeys) {
  for (const char *key :
       {"llama.block_count", "llama.context_length", "llama.embedding_length",
        "llama.feed_forward_length", "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon", "general.architecture"})
    expectFault(copyOf(llama(), {key}), HasSubstr(key));
  EXPECT_EQ(imported(copyOf(llama(), {"llama.rope.freq_base"}))
                .layers[0]
                .rotary.theta,
            10000.0);
}

// Quantised types that cannot be read are refused by name, all of them.
TEST(GgufImporter, UnsupportedTypes) {
  GgufBuilder builder =
      copyOf(llama(), {"blk.0.ffn_up.weight", "blk.1.ffn_up.weight"});
  builder.tensor("blk.0.ffn_up.weight", {256, 1}, 10,
                 std::vector<std::uint8_t>(84));
  builder.tensor("blk.1.ffn_up.weight", {16, 24}, 26,
                 std::vector<std::uint8_t>(16 * 24 * 4));
  expectFault(builder,
              AllOf(HasSubstr("unsupported dtype Q2_K (ggml type 10) in tensor "
                              "\"blk.0.ffn_up.weight\""),
                    HasSubstr("unsupported dtype I32 (ggml type 26) in tensor "
                              "\"blk.1.ffn_up.weight\"")));
  const std::tuple<const char *, std::uint32_t, std::size_t> types[] = {
      {"Q8_1", 9, 8 * 40}, {"Q2_K", 10, 84},      {"Q3_K", 11, 110},
      {"Q8_K", 15, 292},   {"IQ2_XXS", 16, 66},   {"IQ2_XS", 17, 74},
      {"IQ3_XXS", 18, 98}, {"IQ1_S", 19, 50},     {"IQ4_NL", 20, 8 * 18},
      {"IQ3_S", 21, 110},  {"IQ2_S", 22, 82},     {"IQ4_XS", 23, 136},
      {"I8", 24, 256},     {"I16", 25, 512},      {"I32", 26, 1024},
      {"I64", 27, 2048},   {"IQ1_M", 29, 56},     {"TQ1_0", 34, 54},
      {"TQ2_0", 35, 66},   {"MXFP4", 39, 8 * 17}, {"NVFP4", 40, 4 * 36},
      {"Q1_0", 41, 2 * 18}};
  for (const auto &[name, id, size] : types) {
    SCOPED_TRACE(name);
    GgufBuilder one = copyOf(llama(), {"blk.0.ffn_up.weight"});
    one.tensor("blk.0.ffn_up.weight", {256, 1}, id,
               std::vector<std::uint8_t>(size));
    expectFault(one, HasSubstr(std::string("unsupported dtype ") + name +
                               " (ggml type " + std::to_string(id) +
                               ") in tensor \"blk.0.ffn_up.weight\""));
  }
}

// X28: rows of q and k are stored permuted, and are stated so exactly where
// they are; undoing it gives the rows of the original.
TEST(GgufImporter, PermutedRows) {
  TinyModel model = TinyModel::make("llama");
  model.addAttentionBiases(false);
  TempFolder folder;
  folder.write("x.gguf", model.gguf());
  auto spec = importGguf(folder.file("x.gguf"));
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  auto file = GgufFile::open(folder.file("x.gguf"));
  ASSERT_TRUE(file.isOk());
  for (const auto &[role, source] : spec->parameters) {
    bool q = role.find(".q") != std::string::npos;
    bool k = role.find(".k") != std::string::npos;
    EXPECT_EQ(source.permutation != RowPermutation::None, q || k) << role;
    EXPECT_EQ(source.permutationHeads, q ? 4 : k ? 2 : 0) << role;
    if (role != "layer.1.q" && role != "layer.1.k" && role != "layer.1.k.bias")
      continue;
    std::string name = std::string("model.layers.1.self_attn.") +
                       (q ? "q_proj" : "k_proj") +
                       (role.ends_with("bias") ? ".bias" : ".weight");
    const auto &original = model.tensors.at(name).values;
    std::size_t width = original.size() / std::size_t(source.shape[0]);
    for (const GgufTensor &tensor : file->tensors()) {
      if (tensor.name != source.name)
        continue;
      auto data = file->data(tensor);
      bool moved = false;
      for (std::int64_t row = 0; row < source.shape[0]; ++row) {
        std::int64_t stored = storedRow(source, row);
        moved |= stored != row;
        EXPECT_EQ(std::memcmp(data.data() + stored * std::int64_t(width * 4),
                              original.data() + row * std::int64_t(width),
                              width * 4),
                  0)
            << role << " row " << row;
      }
      EXPECT_TRUE(moved);
    }
  }
}

TEST(GgufImporter, PermutedRowsOfPartialRotary) {
  GgufBuilder builder = copyOf(llama());
  builder.u32("llama.rope.dimension_count", 2);
  expectFault(builder, HasSubstr("rows permuted for a rotation of 2 of 4"));
}

TEST(GgufImporter, TiedHead) {
  ModelSpec spec = imported(copyOf(llama(), {"output.weight"}));
  EXPECT_TRUE(spec.tiedHead);
  EXPECT_FALSE(imported(copyOf(llama())).tiedHead);
}

// rope_freqs.weight divides the frequencies, and is consumed.
TEST(GgufImporter, FrequencyFactors) {
  ModelSpec plain = imported(copyOf(llama()));
  GgufBuilder builder = copyOf(llama());
  builder.tensor("rope_freqs.weight", {2}, 0, floats({1.0f, 8.0f}));
  ModelSpec spec = imported(builder);
  for (const LayerSpec &layer : spec.layers) {
    EXPECT_EQ(layer.rotary.kind, RotaryKind::FrequencyFactors);
    EXPECT_EQ(layer.rotary.invFreq[0], 1.0f);
    EXPECT_EQ(layer.rotary.invFreq[1],
              plain.layers[0].rotary.invFreq[1] / 8.0f);
  }
  builder = copyOf(llama());
  builder.tensor("rope_freqs.weight", {3}, 0, floats({1, 1, 1}));
  expectFault(builder, HasSubstr("\"rope_freqs.weight\" expected [2]"));
  builder = copyOf(llama());
  builder.tensor("rope_freqs.weight", {2}, 0, floats({1.0f, 0.0f}));
  expectFault(builder, HasSubstr("a frequency factor in tensor "
                                 "\"rope_freqs.weight\" is not a positive"));
}

TEST(GgufImporter, RotaryScaling) {
  GgufBuilder builder = copyOf(llama());
  builder.text("llama.rope.scaling.type", "linear");
  builder.f32("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(imported(builder).layers[0].rotary.kind, RotaryKind::Linear);
  EXPECT_EQ(imported(builder).layers[0].rotary.invFreq[1], 0.01f / 4.0f);
  builder = copyOf(llama());
  builder.text("llama.rope.scaling.type", "none");
  EXPECT_EQ(imported(builder).layers[0].rotary.kind, RotaryKind::Default);
  for (const char *type : {"longrope", "x"}) {
    builder = copyOf(llama());
    builder.text("llama.rope.scaling.type", type);
    builder.f32("llama.rope.scaling.factor", 4.0f);
    expectFault(builder,
                HasSubstr(std::string("unsupported rotary types: \"") + type));
  }
  builder = copyOf(llama());
  builder.f32("llama.rope.scaling.factor", 4.0f);
  expectFault(builder, HasSubstr("llama.rope.scaling.factor"));
  builder = copyOf(llama());
  builder.text("llama.rope.scaling.type", "linear");
  expectFault(builder, HasSubstr("llama.rope.scaling.type"));
}

// An encoder's pooling by llama.cpp's numbers; what makes no vector of a text is
// refused.
TEST(GgufImporter, PoolingOfEncoders) {
  std::ifstream in(INGOT_SOURCE_DIR "/test/models/encoders-gguf/bert.gguf",
                   std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string> without = {"bert.attention.causal",
                                      "bert.pooling_type"};
  for (const char *key : {"model", "pre", "tokens", "token_type",
                          "unknown_token_id", "seperator_token_id",
                          "padding_token_id", "bos_token_id", "mask_token_id"})
    without.push_back(std::string("tokenizer.ggml.") + key);
  auto encoder = [&](int pooling) {
    GgufBuilder builder = copyOf(bytes, without);
    builder.boolean("bert.attention.causal", 0);
    if (pooling >= 0)
      builder.u32("bert.pooling_type", static_cast<std::uint32_t>(pooling));
    return builder;
  };
  for (auto [number, pooling] :
       {std::pair(-1, Pooling::Mean), std::pair(1, Pooling::Mean),
        std::pair(2, Pooling::Cls), std::pair(3, Pooling::Last)}) {
    ModelSpec spec = imported(encoder(number));
    ASSERT_TRUE(spec.embedding) << number;
    EXPECT_EQ(spec.embedding->pooling, pooling);
    EXPECT_TRUE(spec.embedding->normalized);
    EXPECT_TRUE(spec.layers[0].bidirectional);
    EXPECT_EQ(spec.vocabSize, 160);
  }
  expectFault(encoder(0), HasSubstr("a vector of each token is not made"));
  expectFault(encoder(4), HasSubstr("a model that ranks is not read"));
  expectFault(encoder(5), HasSubstr("bert.pooling_type"));
  GgufBuilder causal = copyOf(bytes, without);
  causal.boolean("bert.attention.causal", 1);
  expectFault(causal, HasSubstr("bert.attention.causal"));
}

// Layers need not be alike: sizes can be given for each.
TEST(GgufImporter, SizesForEachLayer) {
  GgufBuilder builder =
      copyOf(llama(), {"llama.feed_forward_length", "blk.1.ffn_up.weight",
                       "blk.1.ffn_gate.weight", "blk.1.ffn_down.weight"});
  builder.array<std::uint32_t>("llama.feed_forward_length", 4, {24, 8, 24});
  builder.tensor("blk.1.ffn_up.weight", {16, 8}, 0,
                 std::vector<std::uint8_t>(512));
  builder.tensor("blk.1.ffn_gate.weight", {16, 8}, 0,
                 std::vector<std::uint8_t>(512));
  builder.tensor("blk.1.ffn_down.weight", {8, 16}, 0,
                 std::vector<std::uint8_t>(512));
  ModelSpec spec = imported(builder);
  EXPECT_EQ(spec.layers[1].ffnSize, 8);
  EXPECT_EQ(spec.layers[2].ffnSize, 24);
  builder = copyOf(llama(), {"llama.feed_forward_length"});
  builder.array<std::uint32_t>("llama.feed_forward_length", 4, {24, 24});
  expectFault(builder, HasSubstr("one for each of 3 layers"));
}

// A vocabulary from the tokens, from the key, or from the embedding's rows.
TEST(GgufImporter, Vocabulary) {
  GgufBuilder builder = copyOf(llama());
  builder.u32("llama.vocab_size", 40);
  EXPECT_EQ(imported(builder).vocabSize, 40);
  builder = copyOf(llama());
  builder.u32("llama.vocab_size", 39);
  expectFault(builder, AllOf(HasSubstr("40 tokens for a vocabulary of 39"),
                             HasSubstr("\"token_embd.weight\" expected [39")));
  EXPECT_EQ(imported(copyOf(llama(), {"tokenizer.ggml.tokens"})).vocabSize, 40);
}

// B12: every id that ends a text.
TEST(GgufImporter, EosIdsAndTexts) {
  GgufBuilder builder = copyOf(llama());
  builder.u32("tokenizer.ggml.eot_token_id", 9);
  builder.u32("tokenizer.ggml.eom_token_id", 5);
  builder.text("tokenizer.chat_template", "T");
  builder.text("tokenizer.chat_template.tool", "U");
  builder.text("general.license", "apache-2.0");
  builder.text("general.license.link", "http://x");
  builder.text("general.description", "tiny");
  builder.f32("general.sampling.temp", 0.5f);
  builder.text("general.base_model.0.name", "x");
  ModelSpec spec = imported(builder);
  EXPECT_THAT(spec.eosIds, ElementsAre(2, 5, 9));
  EXPECT_EQ(spec.bosId, 1);
  EXPECT_THAT(spec.chatTemplates, ElementsAre(TemplateSource{"default", "T"},
                                              TemplateSource{"tool", "U"}));
  EXPECT_EQ(spec.licence, "apache-2.0\nhttp://x");
  EXPECT_EQ(spec.modelCard, "tiny");
  EXPECT_EQ(spec.sampling.temperature, 0.5);
  EXPECT_EQ(spec.tokenizer.kind, TokenizerLocation::Kind::Gguf);
  builder = copyOf(llama());
  builder.u32("tokenizer.ggml.eot_token_id", 40);
  expectFault(builder, HasSubstr("tokenizer.ggml.eot_token_id"));
}

TEST(GgufImporter, RefusesByName) {
  GgufBuilder split = copyOf(llama());
  split.u32("split.count", 3);
  expectFault(split, HasSubstr("\"split.count\""));
  GgufBuilder experts = copyOf(llama());
  experts.u32("llama.expert_count", 8);
  expectFault(experts, HasSubstr("\"llama.expert_count\""));
  GgufBuilder adapter = copyOf(llama());
  adapter.text("general.type", "adapter");
  expectFault(adapter, HasSubstr("\"general.type\""));
  GgufBuilder other = copyOf(llama(), {"general.architecture"});
  other.text("general.architecture", "novel");
  expectFault(other, AllOf(HasSubstr("\"novel\""), HasSubstr("llama")));
  GgufBuilder nan = copyOf(llama(), {"llama.rope.freq_base"});
  nan.f32("llama.rope.freq_base", NAN);
  expectFault(nan, HasSubstr("\"llama.rope.freq_base\""));
  GgufBuilder window = copyOf(TinyModel::make("qwen2").gguf());
  window.u32("qwen2.attention.sliding_window", 8);
  expectFault(window, HasSubstr("\"qwen2.attention.sliding_window\""));
}

// X28: a whole model of more than 16 GiB in Q4_K and Q6_K, as large ones come
// (sparse: it takes no room on the disk).
TEST(GgufImporter, LargeModel) {
  constexpr std::uint64_t kLayers = 36, kHidden = 8192, kFfn = 28672;
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  builder.u32("llama.block_count", kLayers);
  builder.u32("llama.context_length", 4096);
  builder.u32("llama.embedding_length", kHidden);
  builder.u32("llama.feed_forward_length", kFfn);
  builder.u32("llama.attention.head_count", 64);
  builder.u32("llama.attention.head_count_kv", 8);
  builder.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  builder.text("tokenizer.ggml.model", "llama");
  std::map<std::string, std::uint64_t> offsets;
  std::uint64_t end = 0;
  auto add = [&](const std::string &name, std::uint64_t columns,
                 std::uint64_t rows, std::uint32_t type) {
    const std::uint64_t block = type == 12 ? 144 : 210; // of 256 weights
    offsets[name] = end;
    if (type == 0)
      builder.tensorAt(name, {columns}, type, end);
    else
      builder.tensorAt(name, {columns, rows}, type, end);
    end += type == 0 ? columns * 4 : columns / 256 * block * rows;
    end = (end + 31) / 32 * 32;
  };
  add("token_embd.weight", kHidden, 32000, 12);
  for (std::uint64_t i = 0; i < kLayers; ++i) {
    std::string base = "blk." + std::to_string(i) + ".";
    add(base + "attn_norm.weight", kHidden, 1, 0);
    add(base + "attn_q.weight", kHidden, kHidden, 12);
    add(base + "attn_k.weight", kHidden, 1024, 12);
    add(base + "attn_v.weight", kHidden, 1024, 14);
    add(base + "attn_output.weight", kHidden, kHidden, 12);
    add(base + "ffn_norm.weight", kHidden, 1, 0);
    add(base + "ffn_gate.weight", kHidden, kFfn, 12);
    add(base + "ffn_up.weight", kHidden, kFfn, 12);
    add(base + "ffn_down.weight", kFfn, kHidden, 14);
  }
  add("output_norm.weight", kHidden, 1, 0);
  add("output.weight", kHidden, 32000, 14);
  ASSERT_GT(end, 16'800'000'000u);
  TempFolder folder;
  std::vector<std::uint8_t> bytes = builder.bytes();
  const std::uint64_t begin = bytes.size();
  folder.write("big.gguf", bytes);
  if (::truncate(folder.file("big.gguf").c_str(), off_t(begin + end)) != 0)
    GTEST_SKIP() << "the file system has no sparse files of this size";
  auto spec = importGguf(folder.file("big.gguf"));
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->layers.size(), kLayers);
  EXPECT_EQ(spec->vocabSize, 32000);
  EXPECT_EQ(spec->parameters.size(), offsets.size());
  for (const auto &[role, source] : spec->parameters)
    EXPECT_EQ(source.byteOffset, begin + offsets.at(source.name)) << role;
  const auto &head = spec->parameters.at("lm_head");
  EXPECT_EQ(head.dtype, WeightDtype::Q6_K);
  EXPECT_EQ(head.byteOffset + head.sizeBytes, begin + end);
}

TEST(GgufImporter, TinyRandomLlama) {
  std::string path = INGOT_SHARED_DIR "/data/models/llama-2-tiny-random.gguf";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not here";
  auto spec = importGguf(path);
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->layers.size(), 1u);
  EXPECT_EQ(spec->hiddenSize, 8);
  EXPECT_EQ(spec->vocabSize, 32000);
  EXPECT_FALSE(spec->tiedHead);
  EXPECT_EQ(spec->parameters.size(), 12u);
  EXPECT_EQ(spec->parameters.at("layer.0.q").dtype, WeightDtype::F16);
  EXPECT_THAT(spec->eosIds, ElementsAre(2));
}

TEST(GgufImporter, SmolLM2) {
  const char *path = std::getenv("INGOT_SMOLLM2");
  if (!path)
    GTEST_SKIP() << "INGOT_SMOLLM2 does not name SmolLM2-135M-Instruct's GGUF";
  auto spec = importGguf(path);
  ASSERT_TRUE(spec.isOk()) << spec.status().message();
  EXPECT_EQ(spec->family, "llama");
  EXPECT_EQ(spec->layers.size(), 30u);
  EXPECT_EQ(spec->hiddenSize, 576);
  EXPECT_EQ(spec->vocabSize, 49152);
  EXPECT_EQ(spec->contextLength, 8192);
  EXPECT_TRUE(spec->tiedHead);
  EXPECT_EQ(spec->parameters.size(), 272u);
  EXPECT_EQ(spec->parameters.at("embed").dtype, WeightDtype::Q8_0);
  EXPECT_EQ(spec->parameters.at("layer.29.down").dtype, WeightDtype::Q4_1);
  EXPECT_EQ(spec->parameters.at("layer.0.k").permutationHeads, 3);
  EXPECT_EQ(spec->layers[0].headDim, 64);
  EXPECT_EQ(spec->layers[0].rotary.theta, 100000.0);
  EXPECT_THAT(spec->eosIds, ElementsAre(2));
  EXPECT_EQ(spec->licence, "apache-2.0");
  EXPECT_EQ(spec->chatTemplates.size(), 1u);
}

} // namespace
