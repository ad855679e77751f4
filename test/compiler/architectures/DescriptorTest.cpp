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
  for (const Descriptor &descriptor : *descriptors)
    families.push_back(descriptor.family);
  EXPECT_THAT(families, ::testing::UnorderedElementsAre("llama", "mistral",
                                                        "qwen2", "qwen3"));
}

// Every ignored key of every built-in descriptor has a reason.
TEST(Descriptor, IgnoredKeysHaveReasons) {
  auto descriptors = loadDescriptors({});
  ASSERT_TRUE(descriptors.isOk());
  for (const Descriptor &descriptor : *descriptors)
    for (const RouteDescriptor *route :
         {&descriptor.huggingFace, &descriptor.gguf})
      for (const auto &[key, rule] : route->keys)
        if (rule.kind != KeyRule::Kind::Field)
          EXPECT_FALSE(rule.why.empty()) << descriptor.family << " " << key;
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
