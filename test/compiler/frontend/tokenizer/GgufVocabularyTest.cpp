// GGUF vocabularies: small ones of our own for each rule.
#include "test/compiler/frontend/tokenizer/TokenizerFixtures.h"

namespace ingot {
namespace {

using namespace test;

GgufVocabulary bytePair(const char *pre) {
  GgufVocabulary out;
  out.model = "gpt2";
  out.pre = pre;
  nlohmann::json small = smallByteLevelJson();
  out.tokens.resize(256 + 5 + 3);
  for (const auto &[token, id] : small["model"]["vocab"].items())
    out.tokens[id.get<size_t>()] = token;
  out.tokens[261] = "<|im_end|>";
  out.tokens[262] = "<tool>";
  out.tokens[263] = "12";
  out.types.assign(out.tokens.size(), 1);
  out.types[261] = 3;
  out.types[262] = 4;
  for (const auto &merge : small["model"]["merges"])
    out.merges.push_back(merge);
  out.merges.push_back("1 2");
  out.bosId = out.eosId = 261;
  return out;
}

GgufVocabulary wordPiece() {
  GgufVocabulary out;
  out.model = "bert";
  const std::string mark = "\xE2\x96\x81";
  out.tokens = {"[UNK]",      "[CLS]",     "[SEP]", mark + "un", "able",
                mark + "aff", "[unused1]", "s",     mark + "e",  mark + "!"};
  out.types.assign(out.tokens.size(), 1);
  for (size_t id : {0, 1, 2})
    out.types[id] = 3;
  out.unknownId = 0;
  out.clsId = 1;
  out.sepId = 2;
  return out;
}

GgufVocabulary sentencePiece() {
  GgufVocabulary out;
  out.model = "llama";
  auto add = [&](std::string text, float score, int type) {
    out.tokens.push_back(std::move(text));
    out.scores.push_back(score);
    out.types.push_back(type);
  };
  add("<unk>", 0, 2);
  add("<s>", 0, 3);
  add("</s>", 0, 3);
  for (int b = 0; b < 256; ++b) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", b);
    add(text, 0, 6);
  }
  const std::string mark = "\xE2\x96\x81";
  for (std::string text :
       {mark, std::string("a"), std::string("b"), std::string("<"),
        std::string("s"), std::string(">")})
    add(text, -100, 1);   // 259 ...
  add("ab", -3, 1);       // 265
  add("ba", -2, 1);       // 266
  add(mark + "a", -4, 1); // 267
  add("s>", -1, 1);       // 268
  add("aa", -5, 1);       // 269
  out.bosId = 1;
  out.eosId = 2;
  out.unknownId = 0;
  return out;
}

TEST(GgufVocabulary, BytePair) {
  OpenTokenizer tokenizer = open(buildTokenizer(bytePair("gpt-2")));
  EXPECT_EQ(tokenizer.encode("hello the 12"),
            (Ids{256, 260, 258, *tokenizer->idOf("\xC4\xA0"), 263}));
  EXPECT_EQ(tokenizer.encode("<|im_end|><tool>"), (Ids{261, 262}));
  EXPECT_TRUE(tokenizer->isSpecial(261));
  EXPECT_FALSE(tokenizer->isSpecial(262));
  EXPECT_EQ(tokenizer.encode("he", true), (Ids{256}));
}

// Digits stand alone under smollm; llama3 adds BOS and takes tokens whole.
TEST(GgufVocabulary, PreTokenizerNames) {
  EXPECT_EQ(open(buildTokenizer(bytePair("smollm"))).encode("12").size(), 2u);
  EXPECT_EQ(open(buildTokenizer(bytePair("qwen2"))).encode("12").size(), 2u);
  OpenTokenizer llama3 = open(buildTokenizer(bytePair("llama-bpe")));
  EXPECT_EQ(llama3.encode("12", true), (Ids{261, 263}));
  GgufVocabulary noBos = bytePair("llama-bpe");
  noBos.addBos = false;
  noBos.addEos = true;
  EXPECT_EQ(open(buildTokenizer(noBos)).encode("12", true), (Ids{263, 261}));
  // Falcon cuts digits in threes, from the left.
  GgufVocabulary falcon = bytePair("falcon");
  falcon.tokens.push_back("34");
  falcon.types.push_back(1);
  falcon.merges.push_back("3 4");
  EXPECT_EQ(open(buildTokenizer(falcon)).encode("12345").size(), 4u);
  falcon.pre = "gpt-2";
  EXPECT_EQ(open(buildTokenizer(falcon)).encode("12345").size(), 3u);
  // A small letter ends a word that began with capitals, or not.
  GgufVocabulary cases = bytePair("tekken");
  for (const char *pair : {"A b", "a B"}) {
    cases.tokens.push_back({pair[0], pair[2]});
    cases.types.push_back(1);
    cases.merges.push_back(pair);
  }
  for (const char *name : {"tekken", "gpt-4o"}) {
    cases.pre = name;
    OpenTokenizer tokenizer = open(buildTokenizer(cases));
    EXPECT_EQ(tokenizer.encode("Ab"), (Ids{264})) << name;
    EXPECT_EQ(tokenizer.encode("aB").size(), 2u) << name;
    EXPECT_EQ(tokenizer.encode("12"),
              name[0] == 't' ? (Ids{0x31 - 0x21, 0x32 - 0x21}) : (Ids{263}))
        << name;
  }
  cases.pre = "dbrx";
  EXPECT_EQ(open(buildTokenizer(cases)).encode("aB"), (Ids{265}));
  for (const char *name : {"default", "starcoder", "deepseek-coder", "falcon"})
    EXPECT_EQ(open(buildTokenizer(bytePair(name))).encode("he"), (Ids{256}))
        << name;
  for (const char *name : {"", "made-up"}) {
    auto built = buildTokenizer(bytePair(name));
    ASSERT_FALSE(built.isOk());
    EXPECT_NE(built.status().message().find("tokenizer.ggml.pre \"" +
                                            std::string(name) + "\""),
              std::string::npos);
  }
}

// Highest score first, equal scores from the left.
TEST(GgufVocabulary, SentencePieceScores) {
  OpenTokenizer tokenizer = open(buildTokenizer(sentencePiece()));
  EXPECT_EQ(tokenizer.encode("aba"), (Ids{267, 266}));
  EXPECT_EQ(tokenizer.encode("aba", true), (Ids{1, 267, 266}));
  GgufVocabulary noPrefix = sentencePiece();
  noPrefix.addSpacePrefix = false;
  OpenTokenizer plain = open(buildTokenizer(noPrefix));
  EXPECT_EQ(plain.encode("aba"), (Ids{260, 266}));
  EXPECT_EQ(plain.encode("aaa"), (Ids{269, 260}));
  EXPECT_EQ(plain.encode("a\xC3\xA9\n"),
            (Ids{260, 3 + 0xC3, 3 + 0xA9, 3 + 0x0A}));
  for (const char *text : {"aba", " a  b ", "\xF0\x9F\x98\x80", ""}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    EXPECT_EQ(plain.decode(plain.encode(text)), text);
  }
}

// "s>" and "<" are tokens, and so is "<s>": merging must not make a control
// token of user text.
TEST(GgufVocabulary, MergesMakeNoControlToken) {
  OpenTokenizer tokenizer = open(buildTokenizer(sentencePiece()));
  EXPECT_EQ(tokenizer.encode("<s>"), (Ids{1}));
  TextRange all{0, 3};
  EncodeOptions options;
  options.addSpecialTokens = false;
  options.plainRanges = {&all, 1};
  auto ids = tokenizer->encode("<s>", options);
  ASSERT_TRUE(ids.isOk());
  EXPECT_EQ(*ids, (Ids{259, 262, 268}));
}

// Words from the left, longest first; text is lowercased and loses its accents.
TEST(GgufVocabulary, WordPiece) {
  OpenTokenizer tokenizer = open(buildTokenizer(wordPiece()));
  EXPECT_EQ(tokenizer.encode("Unable unaffs\xC3\x89 \xC3\xA9!"),
            (Ids{3, 4, 0, 8, 9}));
  EXPECT_EQ(tokenizer.encode("unables", true), (Ids{1, 3, 4, 7, 2}));
  EXPECT_EQ(tokenizer.encode("[SEP] " + std::string(101, 'e')), (Ids{2, 0}));
  EXPECT_EQ(tokenizer.decode({1, 3, 4, 7, 9, 2}, true), "unables!");
  EXPECT_EQ(tokenizer->idOf("##able"), 4);
}

TEST(GgufVocabulary, RefusesWhatIsWrong) {
  auto refused = [](GgufVocabulary vocabulary, const char *part) {
    auto built = buildTokenizer(vocabulary);
    ASSERT_FALSE(built.isOk()) << part;
    EXPECT_NE(built.status().message().find(part), std::string::npos)
        << built.status().message();
  };
  GgufVocabulary v = bytePair("gpt-2");
  v.model = "t5";
  refused(v, "\"t5\"");
  v = bytePair("gpt-2");
  v.types.pop_back();
  refused(v, "token_type");
  v = bytePair("gpt-2");
  v.types[0] = 9;
  refused(v, "token_type[0]");
  v = bytePair("gpt-2");
  v.merges.clear();
  refused(v, "merges");
  v = bytePair("gpt-2");
  v.merges[1] = "nospace";
  refused(v, "merges[1]");
  v = bytePair("gpt-2");
  v.tokens[3] = "\xFF";
  refused(v, "tokens[3]");
  v = bytePair("gpt-2");
  v.tokens[3] = v.tokens[4];
  refused(v, "twice");
  v = bytePair("gpt-2");
  v.eosId = 264;
  refused(v, "eos_token_id");
  v = bytePair("llama-bpe");
  v.bosId.reset();
  refused(v, "bos_token_id");
  v = bytePair("gpt-2");
  v.tokens.clear();
  refused(v, "tokens");
  v = sentencePiece();
  v.scores.pop_back();
  refused(v, "scores");
  v = sentencePiece();
  v.scores[5] = std::numeric_limits<float>::quiet_NaN();
  refused(v, "scores[5]");
  v = sentencePiece();
  v.tokens[10] = "<0xZZ>";
  refused(v, "<0x07>");
  v = wordPiece();
  v.unknownId.reset();
  refused(v, "unknown_token_id");
  v = wordPiece();
  v.sepId = 10;
  refused(v, "seperator_token_id");
  v = wordPiece();
  v.tokens[5] = "\xE2\x96\x81"
                "Aff";
  refused(v, "capital letters");
}

} // namespace
} // namespace ingot
