// Descriptors are data that steers the importers: the built-in ones load, and
// a wrong one is refused with its fault named.
#include "compiler/architectures/Descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ingot;
using nlohmann::json;
using ::testing::HasSubstr;

namespace {

json builtIn(const std::string &name) {
  for (const EmbeddedDescriptor &file : embeddedDescriptors())
    if (name == file.name)
      return json::parse(file.text);
  ADD_FAILURE() << name << " is not embedded";
  return {};
}

std::string faultOf(const json &descriptor) {
  auto result = parseDescriptor(descriptor.dump(), "{}", "test.json");
  return result.isOk() ? "" : result.status().message();
}

TEST(Descriptor, BuiltInFamiliesLoad) {
  auto descriptors = loadDescriptors({});
  ASSERT_TRUE(descriptors.isOk()) << descriptors.status().message();
  std::vector<std::string> families;
  for (const auto &descriptor : *descriptors)
    families.push_back(descriptor->family);
  EXPECT_THAT(families,
              ::testing::IsSupersetOf(
                  {"llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3",
                   "phi3", "gpt2", "gpt_neox", "olmo2", "smollm3", "granite",
                   "starcoder2", "stablelm", "cohere", "cohere2", "falcon"}));
}

// Cases replace parts of a descriptor, in order, where their fields hold.
TEST(Descriptor, Cases) {
  json source = builtIn("llama.json");
  source["huggingface"]["config"]["p"] = {{"field", "flag.parallel"}};
  source["cases"] = {
      {{"when", {{"flag.parallel", true}}},
       {"block", {{"parallel", true}, {"norms", {"attn"}}}}},
      {{"when", {{"flag.parallel", true}, {"layerCount", 3}}},
       {"huggingface", {{"tensors", {{"layer.{i}.attn_norm", "norm.{i}"}}}}}},
      {{"when", {{"tensor.x", true}}}, {"block", {{"windowPattern", 2}}}}};
  auto descriptor = parseDescriptor(source.dump(), "{}", "test.json");
  ASSERT_TRUE(descriptor.isOk()) << descriptor.status().message();
  std::map<std::string, json> fields;
  auto find = [&](const std::string &name) {
    auto found = fields.find(name);
    return found == fields.end() ? nullptr : &found->second;
  };
  auto plain = resolveCases(*descriptor, find, {});
  ASSERT_TRUE(plain.isOk());
  EXPECT_FALSE(plain->huggingFace.block.parallel);
  fields["flag.parallel"] = true;
  fields["layerCount"] = 3;
  auto both = resolveCases(*descriptor, find, {"x"});
  ASSERT_TRUE(both.isOk()) << both.status().message();
  EXPECT_TRUE(both->huggingFace.block.parallel);
  EXPECT_TRUE(both->gguf.block.parallel);
  EXPECT_EQ(both->huggingFace.tensors.at("layer.{i}.attn_norm"), "norm.{i}");
  EXPECT_EQ(both->gguf.tensors.at("layer.{i}.attn_norm"),
            "blk.{i}.attn_norm.weight");
  EXPECT_EQ(both->gguf.block.windowPattern, 2);

  // A case that cannot be read is a fault of the descriptor at once.
  json bad = source;
  bad["cases"][0]["block"]["qkNorm"] = "all";
  EXPECT_THAT(faultOf(bad), HasSubstr("cases[0]: block.qkNorm"));
  bad = source;
  bad["cases"][0]["when"] = {{"noSuchField", 1}};
  EXPECT_THAT(faultOf(bad), HasSubstr("unknown field \"noSuchField\""));
  bad = source;
  bad["cases"][1]["family"] = "x";
  EXPECT_THAT(faultOf(bad), HasSubstr("cases[1]: unknown key \"family\""));
  bad = source;
  bad["cases"] = {1};
  EXPECT_THAT(faultOf(bad), HasSubstr("expected an object with \"when\""));
}

// What a block says must go together, and each part has its names.
TEST(Descriptor, BlocksAreWhole) {
  json good = builtIn("llama.json");
  auto with = [&](const char *key, json value) {
    json changed = good;
    changed["block"][key] = std::move(value);
    return faultOf(changed);
  };
  EXPECT_THAT(with("norm", {{"kind", "layer"}, {"bias", true}}),
              HasSubstr("role \"final_norm.bias\" is missing"));
  EXPECT_THAT(with("norm", {{"kind", "rms"}, {"bias", true}}),
              HasSubstr("block.norm"));
  EXPECT_THAT(with("norm", {{"kind", "batch"}}),
              HasSubstr("expected one of \"rms\", \"layer\""));
  EXPECT_THAT(with("norms", {"attn", "ffn", "ffn_post"}),
              HasSubstr("role \"layer.{i}.ffn_post_norm\" is missing"));
  EXPECT_THAT(with("norms", {"before"}), HasSubstr("unknown place \"before\""));
  EXPECT_THAT(with("learnedPositions", true),
              HasSubstr("role \"positions\" is missing"));
  EXPECT_THAT(with("qkNorm", "row"),
              HasSubstr("role \"layer.{i}.q_norm\" is missing"));
  EXPECT_THAT(with("mlp", "plain"), HasSubstr("no gate to bias"));
  EXPECT_THAT(with("ffnMultiple", 0), HasSubstr("block.ffnMultiple"));
  json parallel = good;
  parallel["block"]["parallel"] = true;
  parallel["block"]["norms"] = {"attn_post", "ffn_post"};
  EXPECT_THAT(faultOf(parallel), HasSubstr("a parallel block has"));
  json fused = good;
  fused["huggingface"]["tensors"].erase("layer.{i}.q");
  fused["huggingface"]["tensors"]["layer.{i}.qkv"] = "x.{i}";
  EXPECT_THAT(faultOf(fused), HasSubstr("\"layer.{i}.qkv.bias\" is missing"));
  fused["huggingface"]["transposed"] = {"layer.{i}.q"};
  EXPECT_THAT(faultOf(fused), HasSubstr("has no tensor"));
}

// Every ignored key of every built-in descriptor has a reason.
TEST(Descriptor, IgnoredKeysHaveReasons) {
  auto descriptors = loadDescriptors({});
  ASSERT_TRUE(descriptors.isOk());
  for (const auto &descriptor : *descriptors)
    for (const RouteDescriptor *route :
         {&descriptor->huggingFace, &descriptor->gguf})
      for (const auto &[key, rule] : route->keys)
        if (rule.kind != KeyRule::Kind::Field)
          EXPECT_FALSE(rule.why.empty()) << descriptor->family << " " << key;
}

TEST(Descriptor, FamilyRuleReplacesSharedRule) {
  json descriptor = builtIn("llama.json");
  descriptor["huggingface"]["config"]["use_cache"] = {{"ignore", "mine"}};
  json shared = builtIn("shared.json");
  auto result = parseDescriptor(descriptor.dump(), shared.dump(), "test.json");
  ASSERT_TRUE(result.isOk()) << result.status().message();
  EXPECT_EQ(findKeyRule(result->huggingFace.keys, "use_cache")->why, "mine");
  EXPECT_NE(findKeyRule(result->huggingFace.keys, "torch_dtype"), nullptr);
}

// The longest prefix rule wins, and an exact rule before it.
TEST(Descriptor, PrefixRules) {
  KeyRules rules;
  rules["a.*"].why = "short";
  rules["a.b.*"].why = "long";
  rules["a.b.c"].why = "exact";
  EXPECT_EQ(findKeyRule(rules, "a.x")->why, "short");
  EXPECT_EQ(findKeyRule(rules, "a.b.x")->why, "long");
  EXPECT_EQ(findKeyRule(rules, "a.b.c")->why, "exact");
  EXPECT_EQ(findKeyRule(rules, "b.c"), nullptr);
}

TEST(Descriptor, RefusesWhatNoImporterKnows) {
  json good = builtIn("llama.json");
  EXPECT_EQ(faultOf(good), "");
  json bad = good;
  bad["huggingface"]["config"]["x"] = {{"field", "noSuchField"}};
  EXPECT_THAT(faultOf(bad), HasSubstr("unknown field \"noSuchField\""));
  bad = good;
  bad["huggingface"]["tensors"]["layer.{i}.extra"] = "x.{i}";
  EXPECT_THAT(faultOf(bad), HasSubstr("unknown role \"layer.{i}.extra\""));
  bad = good;
  bad["huggingface"]["tensors"].erase("layer.{i}.q");
  EXPECT_THAT(faultOf(bad), HasSubstr("role \"layer.{i}.q\" is missing"));
  bad = good;
  bad["huggingface"]["tensors"]["layer.{i}.q"] = "no.number";
  EXPECT_THAT(faultOf(bad), HasSubstr("must both hold {i}"));
  bad = good;
  bad["huggingface"]["config"]["x"] = {{"ignore", ""}};
  EXPECT_THAT(faultOf(bad), HasSubstr("needs a reason"));
  bad = good;
  bad["huggingface"]["config"].erase("hidden_size");
  EXPECT_THAT(faultOf(bad), HasSubstr("no key feeds the field \"hiddenSize\""));
  bad = good;
  bad["block"]["slidingWindow"] = "sometimes";
  EXPECT_THAT(faultOf(bad), HasSubstr("block.slidingWindow"));
  bad = good;
  bad["extra"] = 1;
  EXPECT_THAT(faultOf(bad), HasSubstr("unknown key \"extra\""));
  bad = good;
  bad["block"]["biases"].erase("o");
  EXPECT_THAT(faultOf(bad), HasSubstr("block.biases"));
}

TEST(Descriptor, Patterns) {
  EXPECT_EQ(expandPattern("blk.{i}.x", 12), "blk.12.x");
  EXPECT_EQ(expandPattern("x", 12), "x");
  EXPECT_TRUE(matchesPattern("blk.{i}.x", "blk.12.x"));
  EXPECT_TRUE(matchesPattern("blk.{i}.x", "blk.0.x"));
  EXPECT_FALSE(matchesPattern("blk.{i}.x", "blk..x"));
  EXPECT_FALSE(matchesPattern("blk.{i}.x", "blk.01.x"));
  EXPECT_FALSE(matchesPattern("blk.{i}.x", "blk.1a.x"));
  EXPECT_FALSE(matchesPattern("blk.{i}.x", "blk.1.y"));
}

} // namespace
