// The logits and greedy texts of the small models are those of Hugging Face
// transformers. GoldenComparison.h derives the bounds.
#include "test/e2e/GoldenComparison.h"
#include "test/e2e/Goldens.h"
#include "test/e2e/Sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

using namespace ingot::test;

namespace {

class GoldenLogitsTest : public ::testing::TestWithParam<std::string> {};
class GgufLogitsTest : public ::testing::TestWithParam<std::string> {};
class OnnxLogitsTest : public ::testing::TestWithParam<std::string> {};
class Int8CacheLogitsTest : public ::testing::TestWithParam<std::string> {};

// The names of what a folder of test/models holds, without extensions.
std::vector<std::string> namesIn(const std::string &folder,
                                 const std::string &prefix) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(
           INGOT_SOURCE_DIR "/test/models/" + folder))
    names.push_back(prefix + entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string testName(const ::testing::TestParamInfo<std::string> &info) {
  std::string name = info.param.substr(info.param.find('/') + 1);
  for (char other : {'-', '/'})
    std::replace(name.begin(), name.end(), other, '_');
  return name;
}

std::string sha256Of(const std::string &text) {
  Sha256 digest;
  digest.update(
      {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
  return digest.finish();
}

} // namespace

TEST_P(GoldenLogitsTest, agreesWithTransformers) {
  compareWithTransformers(smallModel(GetParam()));
}

// GGUF files that llama.cpp's converter made of the same models. The format has
// no key for the window of StarCoder 2 and Qwen 2, so that all their layers see
// everything; before the window of 40 tokens is full, that is the same.
TEST_P(GgufLogitsTest, agreesWithTransformers) {
  GoldenModel model = familyGguf(GetParam());
  if (GetParam() == "starcoder2" || GetParam() == "qwen2-window")
    model.longest = 40;
  compareWithTransformers(model);
}

// Its exports (test/models/export_onnx.py), against the goldens of the folder that
// they are exports of.
TEST_P(OnnxLogitsTest, agreesWithTransformers) {
  GoldenModel model = smallModel(GetParam().substr(0, GetParam().rfind('/')));
  model.source = model.path;
  model.path = INGOT_SOURCE_DIR "/test/models/" + GetParam() + ".onnx";
  compareWithTransformers(model);
}

// Measured: at most 0.036 with random weights and 0.013 with trained ones.
TEST_P(Int8CacheLogitsTest, isNearTransformers) {
  bool isTrained = GetParam() == "target" || GetParam() == "draft";
  compareInt8Cache(smallModel(GetParam()), isTrained ? 0.025 : 0.06);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenLogitsTest,
                         ::testing::Values("tiny-llama", "tiny-mistral",
                                           "tiny-qwen2", "tiny-qwen3", "target",
                                           "draft", "target-int4"),
                         testName);

// Every variation of a block, in models that are smaller still.
INSTANTIATE_TEST_SUITE_P(Families, GoldenLogitsTest,
                         ::testing::ValuesIn(namesIn("families", "families/")),
                         testName);

INSTANTIATE_TEST_SUITE_P(Families, GgufLogitsTest,
                         ::testing::ValuesIn(namesIn("families-gguf", "")),
                         testName);

INSTANTIATE_TEST_SUITE_P(
    Exports, OnnxLogitsTest,
    ::testing::Values("target/decomposed", "target/attention", "target/gqa",
                      "target-int4/int4", "families/gpt2/multi-head",
                      "families/phi3/decomposed", "families/gemma2/decomposed",
                      "families/gemma3/decomposed",
                      "families/cohere/decomposed",
                      "families/falcon-groups/decomposed",
                      "families/stablelm-norms/decomposed"),
    testName);

INSTANTIATE_TEST_SUITE_P(Models, Int8CacheLogitsTest,
                         ::testing::Values("tiny-llama", "tiny-mistral",
                                           "tiny-qwen2", "tiny-qwen3", "target",
                                           "draft"),
                         testName);
// Heads with capped scores and windows, without rotation, of one key head, with
// parallel blocks, with frequencies by length, and experts.
INSTANTIATE_TEST_SUITE_P(Families, Int8CacheLogitsTest,
                         ::testing::Values("families/gemma2", "families/gpt2",
                                           "families/falcon", "families/cohere",
                                           "families/llama-dynamic",
                                           "families/mixtral"),
                         testName);

// The examples of FIPS 180-4, and one that fills its last block.
TEST(GoldensTest, sha256) {
  EXPECT_EQ(sha256Of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495"
                          "991b7852b855");
  EXPECT_EQ(sha256Of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb"
                             "410ff61f20015ad");
  EXPECT_EQ(
      sha256Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256Of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The signs that goldens/README.md writes out.
TEST(GoldensTest, projectionSigns) {
  std::string signs[2];
  for (std::uint64_t j : {0, 1})
    for (std::uint64_t i = 0; i < 16; ++i)
      signs[j] += projectionSign(j, i) > 0 ? '+' : '-';
  EXPECT_EQ(signs[0], "---+++-+--++--+-");
  EXPECT_EQ(signs[1], "-+--++++-+++-+++");
}
