// Adapters: what PEFT itself merges, the same adapter on both kinds of input,
// and every way in which one can be of another kind or of another model.
#include "compiler/frontend/ImportModel.h"

#include "compiler/frontend/huggingface/SafetensorsFile.h"
#include "compiler/stored/StoredRows.h"
#include "runtime/support/MappedFile.h"
#include "test/compiler/frontend/TempFolder.h"
#include "test/compiler/frontend/TinyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace ingot;
using ingot::testing::TempFolder;
using ingot::testing::TinyModel;
using nlohmann::json;
using ::testing::HasSubstr;

namespace {

const std::string vectors =
    std::string(INGOT_SOURCE_DIR) + "/test/compiler/frontend/lora/";

// The numbers of a parameter, in the model's order, adapters added.
std::vector<float> valuesOf(const ModelSpec &spec, const std::string &role) {
  const TensorSource &source = spec.parameters.at(role);
  std::vector<MappedFile> files;
  for (const SourceFile &file : spec.sources) {
    auto mapped = MappedFile::open(file.path);
    EXPECT_TRUE(mapped) << mapped.status().message();
    files.push_back(std::move(*mapped));
  }
  StoredTensor tensor;
  tensor.name = source.name;
  tensor.form = source.dtype;
  tensor.bytes = files[source.fileIndex].bytes().subspan(source.byteOffset,
                                                         source.sizeBytes);
  tensor.rows = static_cast<std::uint64_t>(source.shape[0]);
  tensor.columns = static_cast<std::uint64_t>(source.shape[1]);
  tensor.permuteHeads = static_cast<std::uint32_t>(source.permutationHeads);
  tensor.storedRows = static_cast<std::uint64_t>(source.storedRows);
  tensor.first = static_cast<std::uint64_t>(source.first);
  tensor.run = static_cast<std::uint64_t>(source.run);
  tensor.stride = static_cast<std::uint64_t>(source.stride);
  tensor.transposed = source.transposed;
  tensor.details = source.details;
  tensor.details.forEachPlane([&](StoredPlane &plane) {
    plane.bytes = files[plane.fileIndex].bytes().subspan(plane.byteOffset,
                                                         plane.sizeBytes);
  });
  auto rows = StoredRows::create(tensor);
  EXPECT_TRUE(rows) << rows.status().message();
  std::vector<float> values(tensor.rows * tensor.columns);
  for (std::uint64_t n = 0; rows && n < tensor.rows; ++n)
    rows->widen(n,
                std::span(values).subspan(n * tensor.columns, tensor.columns));
  return values;
}

// Every weight that PEFT changes is the one that it makes, and no other has an
// adapter.
TEST(LoraAdapter, EqualsPeft) {
  auto expected = SafetensorsFile::open(vectors + "expected.safetensors");
  ASSERT_TRUE(expected) << expected.status().message();
  const std::map<std::string, std::vector<LoraRequest>> cases = {
      {"plain", {{vectors + "plain", 1.0}}},
      {"rslora", {{vectors + "rslora", 1.0}}},
      {"patterns", {{vectors + "patterns/", 1.0}}},
      {"embedding", {{vectors + "embedding", 1.0}}},
      {"half", {{vectors + "half", 1.0}}},
      {"both", {{vectors + "plain", 0.5}, {vectors + "rslora", 1.0}}}};
  for (const auto &[name, loras] : cases) {
    SCOPED_TRACE(name);
    ImportOptions options;
    options.loras = loras;
    auto spec = importModel(vectors + "base", options);
    ASSERT_TRUE(spec) << spec.status().message();
    std::size_t compared = 0;
    for (const auto &[role, source] : spec->parameters) {
      SCOPED_TRACE(role);
      const SafetensorsTensor *want = expected->find(name + "." + source.name);
      ASSERT_EQ(want != nullptr, !source.details.adapters.empty());
      if (!want)
        continue;
      ++compared;
      std::vector<float> values = valuesOf(*spec, role);
      std::vector<float> wanted(values.size());
      ASSERT_EQ(want->sizeBytes, wanted.size() * 4);
      std::memcpy(wanted.data(), expected->data(*want).data(), want->sizeBytes);
      // PEFT sums in the order of its matrix product, we by rank; and it rounds
      // the product of float16 adapters once more.
      const float most = 4e-7f + (name == "half" ? 5e-4f : 0.0f);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], wanted[i], most * (1 + std::fabs(wanted[i])))
            << i;
    }
    EXPECT_GT(compared, 0u);
  }
}

struct TinyAdapter {
  json config = {{"peft_type", "LORA"}, {"r", 2}, {"lora_alpha", 4}};
  SafetensorsWriter tensors;

  void add(const std::string &name, std::vector<std::uint64_t> shape) {
    std::vector<float> values(shape[0] * shape[1]);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 0.01f * static_cast<float>((i * 7 + name.size()) % 19) - 0.1f;
    ASSERT_TRUE(
        tensors.add(name, SafetensorsDtype::F32, shape,
                    {reinterpret_cast<const std::uint8_t *>(values.data()),
                     values.size() * 4}));
  }
  void addQ() {
    add("base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight",
        {2, 16});
    add("base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight",
        {16, 2});
  }
  void write(const TempFolder &folder) const {
    folder.write("adapter_config.json", config.dump());
    auto bytes = tensors.bytes();
    ASSERT_TRUE(bytes);
    folder.write("adapter_model.safetensors", *bytes);
  }
};

// A GGUF file holds other names and permuted rows; the merged weights are the
// same.
TEST(LoraAdapter, SameOnBothRoutes) {
  TinyModel model = TinyModel::make("llama");
  TempFolder folder, adapter;
  model.writeFolder(folder.path());
  TempFolder ggufFolder;
  ggufFolder.write("model.gguf", model.gguf());
  TinyAdapter tiny;
  tiny.addQ();
  tiny.add("base_model.model.model.layers.0.mlp.down_proj.lora_A.weight",
           {2, 24});
  tiny.add("base_model.model.model.layers.0.mlp.down_proj.lora_B.weight",
           {16, 2});
  tiny.write(adapter);
  ImportOptions options;
  options.loras = {{adapter.path(), 2.0}};
  auto fromFolder = importModel(folder.path(), options);
  auto fromGguf = importModel(ggufFolder.file("model.gguf"), options);
  auto plain = importModel(folder.path());
  ASSERT_TRUE(fromFolder) << fromFolder.status().message();
  ASSERT_TRUE(fromGguf) << fromGguf.status().message();
  for (const char *role : {"layer.1.q", "layer.0.down"}) {
    EXPECT_EQ(valuesOf(*fromFolder, role), valuesOf(*fromGguf, role)) << role;
    EXPECT_NE(valuesOf(*fromFolder, role), valuesOf(*plain, role)) << role;
  }
}

Status importWith(const TinyAdapter &tiny) {
  TinyModel model = TinyModel::make("llama");
  TempFolder folder, adapter;
  model.writeFolder(folder.path());
  tiny.write(adapter);
  ImportOptions options;
  options.loras = {{adapter.path(), 1.0}};
  return importModel(folder.path(), options).status();
}

TEST(LoraAdapter, RefusesOtherKinds) {
  const std::pair<const char *, const char *> changes[] = {
      {R"({"peft_type": "IA3"})", "IA3"},
      {R"({"use_dora": true})", "use_dora"},
      {R"({"use_qalora": true})", "use_qalora"},
      {R"({"bias": "all"})", "bias"},
      {R"({"lora_bias": true})", "lora_bias"},
      {R"({"modules_to_save": ["lm_head"]})", "modules_to_save"},
      {R"({"layer_replication": [[0, 2]]})", "layer_replication"},
      {R"({"init_lora_weights": "pissa"})", "pissa"},
      {R"({"init_lora_weights": "loftq"})", "loftq"},
      {R"({"trainable_token_indices": [1]})", "trainable_token_indices"},
      {R"({"target_parameters": ["x"]})", "target_parameters"},
      {R"({"rank_pattern": {".*q_[a-z]*": 2}})", "rank_pattern"},
      {R"({"a_new_key": 3})", "a_new_key"},
      {R"({"r": 0})", "\"r\" is 0"},
      {R"({"lora_alpha": "4"})", "lora_alpha"},
      {R"({"r": 3})", "is not of rank 3"},
  };
  for (const auto &[change, message] : changes) {
    SCOPED_TRACE(change);
    TinyAdapter tiny;
    tiny.addQ();
    const json changed = json::parse(change);
    for (const auto &item : changed.items())
      tiny.config[item.key()] = item.value();
    Status status = importWith(tiny);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

TEST(LoraAdapter, EveryTensorIsUsedOrAnError) {
  const std::string q = "base_model.model.model.layers.1.self_attn.q_proj.";
  struct Case {
    std::vector<std::pair<std::string, std::vector<std::uint64_t>>> tensors;
    const char *message;
  };
  const Case cases[] = {
      {{}, "the file has none"},
      {{{q + "lora_A.weight", {2, 16}}}, "only one of its two matrices"},
      {{{q + "lora_A.weight", {2, 16}}, {q + "lora_B.weight", {8, 2}}},
       "wrong shapes"},
      {{{q + "lora_A.weight", {2, 12}}, {q + "lora_B.weight", {16, 2}}},
       "wrong shapes"},
      {{{q + "lora_A.weight", {2, 16}},
        {q + "lora_B.weight", {16, 2}},
        {q + "lora_magnitude_vector", {16, 1}}},
       "lora_magnitude_vector"},
      {{{"base_model.model.model.layers.9.self_attn.q_proj.lora_A.weight",
         {2, 16}},
        {"base_model.model.model.layers.9.self_attn.q_proj.lora_B.weight",
         {16, 2}}},
       "the model has no weight of \"model.layers.9.self_attn.q_proj\""},
      {{{"model.layers.1.self_attn.q_proj.lora_A.weight", {2, 16}}},
       "unknown adapter tensors"},
      {{{"base_model.model.model.embed_tokens.base_layer.weight", {40, 16}},
        {q + "lora_A.weight", {2, 16}},
        {q + "lora_B.weight", {16, 2}}},
       "not a copy of the base weight"},
  };
  for (const Case &one : cases) {
    SCOPED_TRACE(one.message);
    TinyAdapter tiny;
    for (const auto &[name, shape] : one.tensors)
      tiny.add(name, shape);
    Status status = importWith(tiny);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.message(), HasSubstr(one.message));
  }
}

TEST(LoraAdapter, FilesMustBeThere) {
  TempFolder folder, adapter;
  TinyModel::make("llama").writeFolder(folder.path());
  ImportOptions options;
  options.loras = {{adapter.path(), 1.0}};
  EXPECT_FALSE(importModel(folder.path(), options));
  adapter.write("adapter_config.json",
                R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})");
  adapter.write("adapter_model.bin", "pickle");
  EXPECT_THAT(importModel(folder.path(), options).status().message(),
              HasSubstr("adapter_model.bin is not read"));
  options.loras = {{adapter.path() + "/none", 1.0}};
  EXPECT_FALSE(importModel(folder.path(), options));
}

} // namespace
