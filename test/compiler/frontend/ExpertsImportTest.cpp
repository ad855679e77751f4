// Models with experts: which layers have them, what stands in for what, one spec
// through either door, and faults by name.
#include "compiler/frontend/ImportModel.h"
#include "test/compiler/frontend/TempFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <functional>

using namespace ingot;
using ingot::testing::TempFolder;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

const std::string kModels = INGOT_SOURCE_DIR "/test/models/";

ModelSpec imported(const std::string &path) {
  Result<ModelSpec> spec = importModel(path);
  EXPECT_TRUE(spec.isOk()) << spec.status().message();
  return spec ? std::move(*spec) : ModelSpec();
}

// The status of a model of test/models whose config has been changed.
Status importChanged(const std::string &name,
                     const std::function<void(json &)> &change) {
  TempFolder folder;
  std::string from = kModels + "families/" + name + "/";
  std::ifstream text(from + "config.json");
  json config = json::parse(text);
  change(config);
  folder.write("config.json", config.dump());
  std::filesystem::copy(from + "model.safetensors",
                        folder.file("model.safetensors"));
  Result<ModelSpec> spec = importModel(folder.path());
  return spec ? Status::ok() : spec.status();
}

template <typename Member>
std::vector<std::int64_t> each(const ModelSpec &spec, Member member) {
  std::vector<std::int64_t> values;
  for (const LayerSpec &layer : spec.layers)
    values.push_back(layer.*member);
  return values;
}

} // namespace

// Each second layer has experts, but for one that is listed.
TEST(ExpertsImportTest, layersWithAndWithout) {
  ModelSpec spec = imported(kModels + "families/qwen3-moe-mixed");
  EXPECT_THAT(each(spec, &LayerSpec::experts), ElementsAre(0, 3, 0, 0));
  EXPECT_THAT(each(spec, &LayerSpec::expertsPerToken), ElementsAre(0, 3, 0, 0));
  EXPECT_THAT(each(spec, &LayerSpec::ffnSize), ElementsAre(48, 16, 48, 48));
  EXPECT_FALSE(spec.layers[1].expertsNormalized);
  EXPECT_TRUE(spec.parameters.count("layer.1.expert.2.down"));
  EXPECT_TRUE(spec.parameters.count("layer.1.router"));
  EXPECT_FALSE(spec.parameters.count("layer.1.gate"));
  EXPECT_TRUE(spec.parameters.count("layer.3.gate"));
}

// llama.cpp's converter stacks the matrices of all experts in one tensor.
TEST(ExpertsImportTest, ggufIsTheSame) {
  for (const char *name : {"mixtral", "qwen3-moe"}) {
    ModelSpec folder = imported(kModels + "families/" + name);
    ModelSpec gguf = imported(kModels + "families-gguf/" + name + ".gguf");
    EXPECT_EQ(folder.layers, gguf.layers) << name;
    ASSERT_EQ(folder.parameters.size(), gguf.parameters.size());
    for (const auto &[role, source] : folder.parameters) {
      ASSERT_TRUE(gguf.parameters.count(role)) << role;
      EXPECT_EQ(source.shape, gguf.parameters.at(role).shape) << role;
    }
    EXPECT_EQ(gguf.parameters.at("layer.0.expert.1.gate").first,
              folder.layers[0].ffnSize);
  }
}

TEST(ExpertsImportTest, faults) {
  struct Case {
    std::string name;
    std::function<void(json &)> change;
    ::testing::Matcher<std::string> message;
  };
  const Case cases[] = {
      {"qwen3-moe", [](json &c) { c["num_experts_per_tok"] = 9; },
       AllOf(HasSubstr("\"num_experts_per_tok\""), HasSubstr("1 to 8"))},
      {"qwen3-moe", [](json &c) { c["num_experts_per_tok"] = 0; },
       HasSubstr("\"num_experts_per_tok\"")},
      {"mixtral", [](json &c) { c["num_local_experts"] = 0; },
       HasSubstr("\"num_local_experts\"")},
      {"mixtral", [](json &c) { c["num_local_experts"] = 1 << 20; },
       HasSubstr("\"num_local_experts\"")},
      // The router and the tensors say another number.
      {"mixtral", [](json &c) { c["num_local_experts"] = 5; },
       AllOf(HasSubstr("block_sparse_moe.gate.weight\" expected [5, 32]"),
             HasSubstr("missing tensors"), HasSubstr("experts.4.w1.weight"))},
      {"mixtral", [](json &c) { c["num_local_experts"] = 3; },
       AllOf(HasSubstr("unknown tensors"), HasSubstr("experts.3.w1.weight"))},
      {"mixtral", [](json &c) { c["intermediate_size"] = 44; },
       HasSubstr("multiples of 8")},
      {"qwen3-moe", [](json &c) { c["moe_intermediate_size"] = 20; },
       AllOf(HasSubstr("\"moe_intermediate_size\""),
             HasSubstr("multiples of 8"))},
      {"qwen3-moe-mixed", [](json &c) { c["mlp_only_layers"] = {4}; },
       AllOf(HasSubstr("\"mlp_only_layers\""), HasSubstr("numbers of layers"))},
      {"qwen3-moe-mixed", [](json &c) { c["mlp_only_layers"] = "all"; },
       HasSubstr("\"mlp_only_layers\"")},
      {"qwen3-moe-mixed", [](json &c) { c["mlp_only_layers"] = {-1}; },
       HasSubstr("\"mlp_only_layers\"")},
      {"qwen3-moe-mixed", [](json &c) { c["decoder_sparse_step"] = 0; },
       HasSubstr("\"decoder_sparse_step\"")},
      {"qwen3-moe-mixed", [](json &c) { c["decoder_sparse_step"] = 1; },
       AllOf(HasSubstr("missing tensors"),
             HasSubstr("model.layers.0.mlp.gate.weight"),
             HasSubstr("unknown tensors"),
             HasSubstr("model.layers.0.mlp.gate_proj.weight"))},
  };
  for (const Case &one : cases) {
    Status status = importChanged(one.name, one.change);
    EXPECT_FALSE(status.isOk());
    EXPECT_THAT(std::string(status.message()), one.message) << one.name;
  }
  EXPECT_TRUE(importChanged("qwen3-moe-mixed", [](json &c) {
                c["mlp_only_layers"] = {0, 2, 3};
                c["decoder_sparse_step"] = 1;
              }).isOk());
}
