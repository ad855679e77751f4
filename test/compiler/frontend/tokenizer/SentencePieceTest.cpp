// SentencePiece model files that are wrong in one way or another, built field by
// field; and what the configuration beside a model says.
#include "test/compiler/frontend/tokenizer/TokenizerFixtures.h"

#include <cstring>

namespace ingot {
namespace {

using namespace test;

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}
std::string number(uint32_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string text(uint32_t field, const std::string &bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string real(uint32_t field, float value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return varint(field << 3 | 5) + bytes;
}
std::string piece(const std::string &spelling, float score, int type = 1) {
  return text(1, text(1, spelling) + real(2, score) +
                     (type == 1 ? "" : number(3, uint64_t(type))));
}

// 0 <unk>, 1 <s>, 2 </s>, then the space mark, a, b, ab, the mark with ab
std::string pieces() {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) +
         piece("\xE2\x96\x81", -3) + piece("a", -4) + piece("b", -5) +
         piece("ab", -1) + piece("\xE2\x96\x81\x61\x62", -2);
}
std::string model(int kind = 2, const std::string &trainer = "",
                  const std::string &normalizer = "") {
  return pieces() + text(2, number(3, uint64_t(kind)) + trainer) +
         text(3, normalizer);
}

Result<std::vector<uint8_t>> buildModel(const std::string &bytes,
                                        const char *config = nullptr) {
  SentencePieceTokenizer description;
  description.model = bytes;
  if (config)
    description.tokenizerConfigJson = config;
  return buildTokenizer(description);
}

void expectFailure(const std::string &bytes,
                   std::initializer_list<const char *> parts,
                   const char *config = nullptr) {
  auto built = buildModel(bytes, config);
  ASSERT_FALSE(built.isOk());
  for (const char *part : parts)
    EXPECT_NE(built.status().message().find(part), std::string::npos)
        << '"' << part << "\" in: " << built.status().message();
}

TEST(SentencePiece, BytePairsAndUnigram) {
  for (int kind : {1, 2}) {
    OpenTokenizer tokenizer = open(buildModel(model(kind)));
    EXPECT_EQ(tokenizer.encode("ab  ab"), (Ids{7, 7}));
    EXPECT_EQ(tokenizer.encode("ba zz a"), (Ids{3, 5, 4, 3, 0, 3, 4}));
    EXPECT_EQ(tokenizer.encode("   "), (Ids{}));
    EXPECT_EQ(tokenizer.encode("a<s>"), (Ids{3, 4, 1}));
    EXPECT_EQ(tokenizer.decode({7, 7}), "ab ab");
  }
}

TEST(SentencePiece, SpacesAsTheModelSays) {
  // add_dummy_prefix, remove_extra_whitespaces
  OpenTokenizer tokenizer =
      open(buildModel(model(2, "", number(3, 0) + number(4, 0))));
  EXPECT_EQ(tokenizer.encode(" ab  a"), (Ids{7, 3, 3, 4}));
  EXPECT_EQ(tokenizer.decode({7, 3, 4}), " ab a");
}

TEST(SentencePiece, Configuration) {
  OpenTokenizer tokenizer = open(
      buildModel(model(2, "", number(4, 0)),
                 R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>",
        "eos_token": "</s>", "legacy": false, "added_tokens_decoder":
        {"8": {"content": "<x>", "lstrip": false, "rstrip": false,
               "normalized": false, "single_word": false, "special": true}}})"));
  EXPECT_EQ(tokenizer.encode("ab", true), (Ids{1, 7}));
  // The dummy prefix is for the start of the input only.
  EXPECT_EQ(tokenizer.encode("<x>ab<x> ab"), (Ids{8, 6, 8, 7}));
  EXPECT_EQ(tokenizer->eosId(), 2);
  OpenTokenizer legacy = open(
      buildModel(model(), R"({"add_bos_token": false, "add_eos_token": true,
        "eos_token": "</s>"})"));
  EXPECT_EQ(legacy.encode("ab</s>ab", true), (Ids{7, 2, 7, 2}));
  expectFailure(model(), {"tokenizer_class", "add_bos_token"}, "{}");
  expectFailure(model(), {"eos_token"}, R"({"eos_token": "<nope>"})");
}

TEST(SentencePiece, RefusedByName) {
  expectFailure(model(3), {"model_type 3", "words"});
  expectFailure(model(4), {"model_type 4", "characters"});
  expectFailure(model(2, "", number(5, 0)), {"escape_whitespaces"});
  expectFailure(model() + piece("c", 0, 5), {"piece 8", "unused"});
  expectFailure(model() + piece("a", 0), {"piece 8", "twice"});
  expectFailure(model() + piece("c", 0, 7), {"piece 8", "type 7"});
  expectFailure(model() + piece("u", 0, 2), {"second unknown"});
  expectFailure(model(2, number(35, 1)), {"byte_fallback", "<0x00>"});
  expectFailure(piece("a", 0), {"no unknown piece"});
  expectFailure("", {"no pieces"});
}

TEST(SentencePiece, HostileBytes) {
  const std::string good = model();
  for (size_t size = 1; size < good.size(); ++size)
    (void)buildModel(good.substr(0, size));
  expectFailure(varint(1 << 3 | 2) + varint(1u << 30) + "abc", {"field 1"});
  expectFailure(std::string(11, '\xFF'), {"number of more than ten bytes"});
  expectFailure(varint(1 << 3 | 3), {"wire type 3"});
  expectFailure(varint(0), {"field number 0"});
  expectFailure(number(1, 7), {"field 1", "a string"});
  expectFailure(text(1, real(1, 0)), {"piece 0"});
  expectFailure(text(1, text(1, "\xFF")), {"valid UTF-8"});
  expectFailure(good + piece("x", std::numeric_limits<float>::quiet_NaN()),
                {"finite"});
  // A character map whose trie leads in a circle, or out of its bytes.
  std::string circle("\x08\0\0\0\0\0\0\0\1\4\0\0", 12);
  expectFailure(model(2, "", text(2, circle)), {"precompiled_charsmap"});
  expectFailure(model(2, "", text(2, "\xFF\xFF\xFF\x7F")),
                {"precompiled_charsmap"});
}

} // namespace
} // namespace ingot
