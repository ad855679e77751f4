// tokenizer.json against small descriptions of our own: every spelling of the
// format, and every way to get it wrong.
#include "test/compiler/frontend/tokenizer/TokenizerFixtures.h"

#include <algorithm>

namespace ingot {
namespace {

using nlohmann::json;
using namespace test;

std::string failure(const json &description) {
  auto built = build(description);
  EXPECT_FALSE(built.isOk());
  return built.status().message();
}

void expectFailure(const json &description,
                   std::initializer_list<const char *> parts) {
  std::string message = failure(description);
  for (const char *part : parts)
    EXPECT_NE(message.find(part), std::string::npos)
        << "\"" << part << "\" in: " << message;
}

TEST(HuggingFaceTokenizer, EncodesAndDecodes) {
  OpenTokenizer tokenizer = open(build(smallByteLevelJson()));
  Ids ids = tokenizer.encode("hello the<eos> \xC3\xA9\n");
  EXPECT_EQ(ids[0], 256); // he
  EXPECT_EQ(ids[1], 260); // llo
  EXPECT_EQ(ids[2], 258); // " the"
  EXPECT_EQ(ids[3], 261); // <eos>
  EXPECT_EQ(tokenizer.decode(ids), "hello the<eos> \xC3\xA9\n");
  EXPECT_EQ(tokenizer.decode(ids, true), "hello the \xC3\xA9\n");
}

TEST(HuggingFaceTokenizer, SameInputSameBytes) {
  auto first = build(smallByteLevelJson()),
       second = build(smallByteLevelJson());
  ASSERT_TRUE(first.isOk() && second.isOk());
  EXPECT_EQ(*first, *second);
}

// Merges as strings and as pairs give the same tables.
TEST(HuggingFaceTokenizer, MergesAsPairs) {
  json pairs = smallByteLevelJson();
  for (json &merge : pairs["model"]["merges"]) {
    std::string line = merge;
    size_t space = line.find(' ');
    merge = json::array({line.substr(0, space), line.substr(space + 1)});
  }
  auto fromStrings = build(smallByteLevelJson()), fromPairs = build(pairs);
  ASSERT_TRUE(fromStrings.isOk() && fromPairs.isOk());
  EXPECT_EQ(*fromStrings, *fromPairs);
}

json sentencePieceJson() {
  json description = smallByteLevelJson();
  description["pre_tokenizer"] = nullptr;
  description["decoder"] = {
      {"type", "Sequence"},
      {"decoders",
       json::array({{{"type", "ByteFallback"}}, {{"type", "Fuse"}}})}};
  description["added_tokens"] = json::array();
  json vocab = {{"<unk>", 0}, {"a", 1},  {"b", 2},    {"c", 3}, {" ", 4},
                {"a b", 5},   {"a ", 6}, {"a bc", 7}, {"b ", 8}};
  description["model"]["vocab"] = vocab;
  description["model"]["unk_token"] = "<unk>";
  description["model"]["merges"] =
      json::array({json::array({"a", " "}), json::array({"a ", "b"}),
                   json::array({"a b", "c"})});
  return description;
}

// A piece that holds a space is never cut; in a string, the separator is the
// space that leaves two tokens.
TEST(HuggingFaceTokenizer, MergePiecesWithSpaces) {
  json pairs = sentencePieceJson(), strings = sentencePieceJson();
  strings["model"]["merges"] = json::array({"a  ", "a  b", "a b c"});
  OpenTokenizer fromPairs = open(build(pairs));
  OpenTokenizer fromStrings = open(build(strings));
  EXPECT_EQ(fromPairs.encode("a bc"), (Ids{7}));
  EXPECT_EQ(fromPairs.tables, fromStrings.tables);
}

TEST(HuggingFaceTokenizer, BadMerges) {
  auto with = [](json merges) {
    json description = smallByteLevelJson();
    description["model"]["merges"] = std::move(merges);
    return description;
  };
  expectFailure(with(json::array()),
                {"tokenizer.json.model", "merges", "empty"});
  expectFailure(with({"he"}), {"merges[0]"});
  expectFailure(with({"h e", "h  e"}), {"merges[1]"});
  expectFailure(with({"q z"}),
                {"merges[0]", "\"qz\"", "not in the vocabulary"});
  expectFailure(with(json::array({json::array({"h"})})), {"merges[0]"});
  expectFailure(with(json::array({json::array({"h", 3})})), {"merges[0]"});
  expectFailure(with({"h e", "h e"}), {"given twice"});
}

// With ignore_merges a piece that is a token is taken whole; without, only what
// merges reach.
TEST(HuggingFaceTokenizer, IgnoreMerges) {
  json description = smallByteLevelJson();
  description["model"]["vocab"]["hey"] = 262;
  EXPECT_EQ(open(build(description)).encode("hey").size(), 2u);
  description["model"]["ignore_merges"] = true;
  EXPECT_EQ(open(build(description)).encode("hey"), (Ids{262}));
  EXPECT_EQ(open(build(description)).encode("heyy").size(), 3u);
}

TEST(HuggingFaceTokenizer, UnknownTokens) {
  json description = sentencePieceJson();
  EXPECT_EQ(open(build(description)).encode("xyaz"), (Ids{0, 0, 1, 0}));
  description["model"]["fuse_unk"] = true;
  EXPECT_EQ(open(build(description)).encode("xyaz"), (Ids{0, 1, 0}));
  description["model"]["unk_token"] = "nope";
  expectFailure(description, {"unk_token", "nope"});
}

TEST(HuggingFaceTokenizer, ByteFallback) {
  json description = sentencePieceJson();
  description["model"]["byte_fallback"] = true;
  int id = 9;
  for (int b = 0; b < 256; ++b) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", b);
    description["model"]["vocab"][text] = id++;
  }
  OpenTokenizer tokenizer = open(build(description));
  EXPECT_EQ(tokenizer.encode("a\xC3\xA9"), (Ids{1, 9 + 0xC3, 9 + 0xA9}));
  EXPECT_EQ(tokenizer.decode({1, 9 + 0xC3, 9 + 0xA9, 9 + 0x0A}), "a\xC3\xA9\n");
}

// A small file that asks for much: refused by name, before the memory is taken.
TEST(HuggingFaceTokenizer, HostileGrowth) {
  const json small = smallByteLevelJson();
  auto sequence = [](const char *key, json step, size_t count) {
    return json{{"type", "Sequence"}, {key, std::vector<json>(count, step)}};
  };
  const json replace = {{"type", "Replace"},
                        {"pattern", {{"String", "a"}}},
                        {"content", std::string(60000, 'a')}};
  auto refusesText = [](const json &description, std::string_view text) {
    OpenTokenizer tokenizer = open(build(description));
    ASSERT_TRUE(tokenizer.tokenizer);
    auto ids = tokenizer->encode(text);
    ASSERT_FALSE(ids.isOk());
    EXPECT_NE(ids.status().message().find("become more than"),
              std::string::npos)
        << ids.status().message();
    EXPECT_TRUE(tokenizer->encode("he").isOk());
  };
  json description = small;
  description["normalizer"] = sequence("normalizers", replace, 3);
  refusesText(description, "aaaa");
  description["normalizer"]["normalizers"][0]["pattern"] = {{"Regex", "a"}};
  refusesText(description, "aaaa");
  // Each of these doubles what is not ASCII.
  description = small;
  json bytes = small["pre_tokenizer"];
  bytes["use_regex"] = false;
  description["pre_tokenizer"] = sequence("pretokenizers", bytes, 40);
  refusesText(description, "\xC3\xA9");
  description = small;
  description["normalizer"] =
      sequence("normalizers", {{"type", "ByteLevel"}}, 40);
  refusesText(description, "\xC3\xA9");

  description = small;
  description["decoder"] = sequence("decoders", replace, 3);
  expectFailure(description, {"decoder", "become more than"});
  description = small;
  description["model"]["vocab"]["hey"] = 3000000;
  expectFailure(description, {"\"hey\"", "expected an id from 0 to"});
  description = small;
  description["added_tokens"][0]["id"] = 3000000;
  expectFailure(description, {"added_tokens[0]", "expected an id from 0 to"});
}

// Anything that is not known is refused under its path.
TEST(HuggingFaceTokenizer, UnsupportedIsNamed) {
  auto with = [](const char *key, json value) {
    json description = smallByteLevelJson();
    description[key] = std::move(value);
    return description;
  };
  expectFailure(with("pre_tokenizer", {{"type", "FutureSplit"}}),
                {"tokenizer.json.pre_tokenizer", "FutureSplit"});
  expectFailure(with("pre_tokenizer",
                     {{"type", "Sequence"},
                      {"pretokenizers", json::array({{{"type", "Digits"}},
                                                     {{"type", "Nope"}}})}}),
                {"pre_tokenizer.pretokenizers[1]", "Nope"});
  expectFailure(with("normalizer", {{"type", "Sequenze"}}),
                {"tokenizer.json.normalizer", "Sequenze"});
  expectFailure(with("normalizer", {{"type", "Precompiled"},
                                    {"precompiled_charsmap", "####"}}),
                {"tokenizer.json.normalizer", "base64"});
  expectFailure(with("decoder", {{"type", "WordPieces"}}),
                {"tokenizer.json.decoder", "WordPieces"});
  // Joined text streams out: only its ends can still be changed.
  json late = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "b"}};
  expectFailure(
      with("decoder", {{"type", "Sequence"},
                       {"decoders", json::array({{{"type", "Fuse"}}, late})}}),
      {"tokenizer.json.decoder.decoders[1]", "Replace", "joined"});
  expectFailure(with("post_processor", {{"type", "RobertaProcessing2"}}),
                {"post_processor", "RobertaProcessing2"});
  expectFailure(with("post_processor", {{"type", "BertProcessing"},
                                        {"sep", {"[SEP]", 9999}},
                                        {"cls", {"[CLS]", 1}}}),
                {"post_processor", "9999"});
  expectFailure(with("surprise", 1), {"surprise"});
  json description = smallByteLevelJson();
  description["model"]["type"] = "Trigram";
  expectFailure(description, {"tokenizer.json.model", "Trigram"});
  description = smallByteLevelJson();
  description["model"]["type"] = "Unigram";
  expectFailure(description, {"tokenizer.json.model", "unknown key"});
  description = smallByteLevelJson();
  description["model"]["dropout"] = 0.1;
  expectFailure(description, {"dropout"});
  description = smallByteLevelJson();
  description["pre_tokenizer"]["new_switch"] = true;
  expectFailure(description, {"pre_tokenizer", "new_switch"});
}

// Escapes that PCRE2 reads otherwise than Oniguruma are refused, and a broken
// regex is an error of the build.
TEST(HuggingFaceTokenizer, Regexes) {
  auto with = [](const char *regex) {
    json description = smallByteLevelJson();
    description["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers", json::array({{{"type", "Split"},
                                        {"pattern", {{"Regex", regex}}},
                                        {"behavior", "Isolated"},
                                        {"invert", false}},
                                       {{"type", "ByteLevel"},
                                        {"add_prefix_space", false},
                                        {"trim_offsets", true},
                                        {"use_regex", false}}})}};
    return description;
  };
  expectFailure(with("\\R+"), {"pretokenizers[0]", "\\R"});
  expectFailure(with("a\\"), {"pretokenizers[0]"});
  expectFailure(with("(a"), {"regex"});
  expectFailure(with("\\p{Nope}"), {"property \"Nope\""});
  // U+180E is not white space.
  OpenTokenizer tokenizer = open(build(with("\\s|h")));
  EXPECT_EQ(tokenizer.encode("\xE1\xA0\x8Ehe").size(), 5u);
  EXPECT_EQ(tokenizer.encode("he").size(), 2u);
}

TEST(HuggingFaceTokenizer, AddedTokenFlags) {
  auto with = [](const char *flag, bool normalized = false) {
    json description = smallByteLevelJson();
    description["added_tokens"][0][flag] = true;
    description["added_tokens"][0]["normalized"] = normalized;
    return description;
  };
  auto pieces = [](const OpenTokenizer &tokenizer, std::string_view text) {
    std::string out;
    for (int32_t id : tokenizer.encode(text))
      out += id == 261 ? "#" : std::string(*tokenizer->tokenBytes(id));
    return out;
  };
  EXPECT_EQ(pieces(open(build(with("lstrip"))), "a  <eos> b"), "a# b");
  EXPECT_EQ(pieces(open(build(with("rstrip"))), "a <eos>\t\xC2\xA0 b"), "a #b");
  OpenTokenizer word = open(build(with("single_word")));
  EXPECT_EQ(pieces(word, "a <eos> b"), "a # b");
  EXPECT_EQ(pieces(word, "a<eos> b"), "a<eos> b");
  EXPECT_EQ(pieces(word, "\xC3\xA9<eos>"), "\xC3\xA9<eos>");
  EXPECT_EQ(pieces(word, "!<eos>!"), "!#!");
}

// An added token that is not normalised matches text as it came; one that is
// matches normalised text.
TEST(HuggingFaceTokenizer, NormalizationAndAddedTokens) {
  json description = smallByteLevelJson();
  description["normalizer"] = {
      {"type", "Sequence"},
      {"normalizers",
       json::array({{{"type", "NFC"}}, {{"type", "Lowercase"}}})}};
  EXPECT_EQ(open(build(description)).encode("<EOS>").size(), 5u);
  OpenTokenizer raw = open(build(description));
  EXPECT_EQ(raw.encode("<eos>"), (Ids{261}));
  EXPECT_EQ(raw.encode("HE"), (Ids{256}));
  EXPECT_EQ(raw.encode("e\xCC\x81"), raw.encode("\xC3\xA9"));
  description["added_tokens"][0]["normalized"] = true;
  description["added_tokens"][0]["content"] = "<EOS>";
  OpenTokenizer normalized = open(build(description));
  EXPECT_EQ(normalized.encode("<eos>"), (Ids{261}));
  EXPECT_EQ(normalized.encode("<EoS>"), (Ids{261}));
  EXPECT_EQ(normalized->idOf("<EOS>"), 261);
  // User text forms it in no spelling, whatever normalisation moves around it.
  const std::string text = "e\xCC\x81<EOS>e\xCC\x81<eos>";
  TextRange user{3, 11};
  EncodeOptions options;
  options.plainRanges = {&user, 1};
  auto ids = normalized->encode(text, options);
  ASSERT_TRUE(ids.isOk());
  EXPECT_EQ(std::count(ids->begin(), ids->end(), 261), 1);
  EXPECT_EQ(ids->back(), 261);
}

TEST(HuggingFaceTokenizer, Template) {
  json description = smallByteLevelJson();
  json eos = {{"SpecialToken", {{"id", "<eos>"}, {"type_id", 0}}}};
  json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  description["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::array({eos, text, eos})},
      {"pair", json::array()},
      {"special_tokens",
       {{"<eos>", {{"id", "<eos>"}, {"ids", {261}}, {"tokens", {"<eos>"}}}}}}};
  OpenTokenizer tokenizer = open(build(description));
  EXPECT_EQ(tokenizer.encode("he", true), (Ids{261, 256, 261}));
  EXPECT_EQ(tokenizer.encode("he", false), (Ids{256}));
  EXPECT_EQ(tokenizer.encode("", true), (Ids{261, 261}));
  description["post_processor"]["special_tokens"]["<eos>"]["ids"] = {9999};
  expectFailure(description, {"post_processor", "9999"});
  description["post_processor"]["single"] = json::array({eos});
  expectFailure(description, {"post_processor"});
}

TEST(HuggingFaceTokenizer, SpecialTokenFiles) {
  std::string text = smallByteLevelJson().dump();
  HuggingFaceTokenizer files;
  files.tokenizerJson = text;
  files.tokenizerConfigJson = R"({"eos_token": "<eos>", "bos_token": null,
    "pad_token": "[PAD]", "add_bos_token": true})";
  OpenTokenizer tokenizer = open(buildTokenizer(files));
  EXPECT_EQ(tokenizer->eosId(), 261);
  EXPECT_EQ(tokenizer->bosId(), std::nullopt);
  EXPECT_EQ(tokenizer->padId(), std::nullopt);
  ASSERT_EQ(tokenizer->endIds().size(), 1u);
  // tokenizer.json decides: add_bos_token adds nothing that it does not.
  EXPECT_EQ(tokenizer.encode("he", true), (Ids{256}));
  files.tokenizerConfigJson = R"({"eos_token": {"content": "</s>"}})";
  auto built = buildTokenizer(files);
  ASSERT_FALSE(built.isOk());
  EXPECT_NE(built.status().message().find("</s>"), std::string::npos);
}

TEST(HuggingFaceTokenizer, BadVocabulary) {
  json description = smallByteLevelJson();
  description["model"]["vocab"]["x1"] = 3;
  expectFailure(description, {"id 3"});
  for (json id : {json(-1), json(1 << 22), json(1e30), json("7"), json(1.5)}) {
    description = smallByteLevelJson();
    description["model"]["vocab"]["x1"] = id;
    expectFailure(description, {"model.vocab", "x1"});
  }
  description = smallByteLevelJson();
  description["added_tokens"][0]["id"] = 5;
  expectFailure(description, {"5"});
  // A hole in the ids is a token that never comes and reads as nothing.
  description = smallByteLevelJson();
  description["model"]["vocab"]["x1"] = 270;
  OpenTokenizer tokenizer = open(build(description));
  EXPECT_EQ(tokenizer->vocabSize(), 271);
  EXPECT_TRUE(tokenizer->isMissing(265));
  EXPECT_EQ(tokenizer.decode({265}), "");
}

// Unknown text is an error where the model has no token for it.
TEST(HuggingFaceTokenizer, UnknownWithoutToken) {
  auto with = [](json model) {
    json description = smallByteLevelJson();
    description["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
    description["added_tokens"] = json::array();
    description["model"] = std::move(model);
    return description;
  };
  for (const json &model :
       {json{{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"a", 0}}}},
        json{{"type", "WordPiece"},
             {"unk_token", "?"},
             {"continuing_subword_prefix", "##"},
             {"max_input_chars_per_word", 100},
             {"vocab", {{"a", 0}, {"##b", 1}}}},
        json{{"type", "Unigram"},
             {"unk_id", nullptr},
             {"vocab", json::array({json::array({"a", -1.0})})}}}) {
    OpenTokenizer tokenizer = open(build(with(model)));
    EXPECT_EQ(tokenizer.encode("a a"), (Ids{0, 0}));
    auto ids = tokenizer->encode("a xyz");
    ASSERT_FALSE(ids.isOk());
    EXPECT_NE(ids.status().message().find("xyz"), std::string::npos);
  }
}

TEST(HuggingFaceTokenizer, UnigramVocabulary) {
  json description = smallByteLevelJson();
  description["added_tokens"] = json::array();
  auto model = [&](json vocab, json unknown) {
    description["model"] = {{"type", "Unigram"},
                            {"unk_id", std::move(unknown)},
                            {"vocab", std::move(vocab)}};
    return description;
  };
  expectFailure(model(json::array(), 0), {"vocab"});
  expectFailure(model(json::array({json::array({"a", "b"})}), 0), {"vocab[0]"});
  expectFailure(model(json::array({json::array({"a", 1.0})}), 7), {"unk_id"});
  expectFailure(model({{"a", 1}}, 0), {"vocab", "array"});
}

// Hostile text of the file itself.
TEST(HuggingFaceTokenizer, HostileJson) {
  const std::string good = smallByteLevelJson().dump();
  std::vector<std::string> texts = {"",
                                    "{",
                                    "[]",
                                    "null",
                                    good + "x",
                                    std::string(100000, '['),
                                    R"({"model": {}, "model": {}})"};
  for (size_t size = 0; size < good.size(); size += 97)
    texts.push_back(good.substr(0, size));
  for (const std::string &text : texts) {
    HuggingFaceTokenizer files;
    files.tokenizerJson = text;
    EXPECT_FALSE(buildTokenizer(files).isOk()) << text.substr(0, 50);
  }
}

// Added tokens that only tokenizer_config.json names: the ids of transformers
// (make_configured_tokens.py).
TEST(HuggingFaceTokenizer, ConfiguredTokens) {
  const std::string source = INGOT_SOURCE_DIR "/test/";
  json tokenizer =
      json::parse(readFile(source + "models/tiny-llama/tokenizer.json"));
  json cases = json::parse(
      readFile(source + "compiler/frontend/tokenizer/ConfiguredTokens.json"));
  ASSERT_GE(cases.size(), 13u);
  for (const json &one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    json changed = tokenizer;
    changed["added_tokens"] = json::array();
    for (const json &token : tokenizer["added_tokens"])
      if (std::find(one["without"].begin(), one["without"].end(),
                    token["content"]) == one["without"].end())
        changed["added_tokens"].push_back(token);
    std::string text = changed.dump(), config = one["config"].dump();
    HuggingFaceTokenizer files;
    files.tokenizerJson = text;
    files.tokenizerConfigJson = config;
    OpenTokenizer opened = open(buildTokenizer(files));
    EXPECT_EQ(opened.encode(one["text"].get<std::string>()),
              one["ids"].get<Ids>());
    EXPECT_EQ(opened.decode(one["ids"].get<Ids>(), true),
              one["plain"].get<std::string>());

    // A model without rows for the new ones: they are text, and a note says so.
    std::vector<std::string> leftOut;
    files.rows = 1024;
    files.leftOut = &leftOut;
    OpenTokenizer bounded = open(buildTokenizer(files));
    EXPECT_EQ(bounded->vocabSize(), 1024);
    Ids ids = bounded.encode(one["text"].get<std::string>());
    EXPECT_LT(*std::max_element(ids.begin(), ids.end()), 1024);
    if (one["name"] != "listed with other flags") // which take a space away
      EXPECT_EQ(bounded.decode(ids), one["text"].get<std::string>());
    size_t expected = static_cast<size_t>(opened->vocabSize() - 1024);
    ASSERT_EQ(leftOut.size(), expected);
    if (expected > 0)
      EXPECT_NE(leftOut[0].find("of id 1024 is left out"), std::string::npos)
          << leftOut[0];
  }
}

// Rows below the vocabulary's own ids are no reason to leave those out.
TEST(HuggingFaceTokenizer, RowsBelowTheVocabulary) {
  std::string text = smallByteLevelJson().dump();
  std::vector<std::string> leftOut;
  HuggingFaceTokenizer files;
  files.tokenizerJson = text;
  files.rows = 258;
  files.leftOut = &leftOut;
  OpenTokenizer opened = open(buildTokenizer(files));
  EXPECT_EQ(opened->vocabSize(), 261);
  EXPECT_EQ(leftOut.size(), 1u);
}

// What is wrong in the list is named by its path.
TEST(HuggingFaceTokenizer, WrongConfiguredTokens) {
  std::string text = smallByteLevelJson().dump();
  for (auto [config, part] :
       {std::pair(R"({"added_tokens_decoder": 3})", "added_tokens_decoder"),
        std::pair(R"({"added_tokens_decoder": {"x": {}}})", "expected an id"),
        std::pair(R"({"added_tokens_decoder": {"3": {"content": "a"}}})",
                  "added_tokens_decoder.3")}) {
    HuggingFaceTokenizer files;
    files.tokenizerJson = text;
    files.tokenizerConfigJson = config;
    auto built = buildTokenizer(files);
    ASSERT_FALSE(built.isOk()) << config;
    EXPECT_NE(built.status().message().find(part), std::string::npos)
        << built.status().message();
  }
}

} // namespace
} // namespace ingot
