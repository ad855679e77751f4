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

std::vector<std::string> familyModels() {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(
           INGOT_SOURCE_DIR "/test/models/families"))
    names.push_back("families/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
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

INSTANTIATE_TEST_SUITE_P(Models, GoldenLogitsTest,
                         ::testing::Values("tiny-llama", "tiny-mistral",
                                           "tiny-qwen2", "tiny-qwen3", "target",
                                           "draft"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Every variation of a block, in models that are smaller still.
INSTANTIATE_TEST_SUITE_P(Families, GoldenLogitsTest,
                         ::testing::ValuesIn(familyModels()),
                         [](const auto &info) {
                           std::string name =
                               info.param.substr(info.param.find('/') + 1);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

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
