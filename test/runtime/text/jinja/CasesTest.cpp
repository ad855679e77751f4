// Renders compared byte by byte with what Jinja2 makes under Hugging Face's
// settings: one case per feature (Cases.json), and whole chat templates.
#include "Support.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>

using namespace ingot;
using namespace ingot::jinjatest;
using Json = nlohmann::ordered_json;

TEST(JinjaCases, SameAsTheReference) {
  Json file = Json::parse(readFile(std::string(INGOT_SOURCE_DIR) +
                                   "/test/runtime/text/jinja/Cases.json"));
  ASSERT_GT(file["cases"].size(), 140u);
  Request request;
  request.messages = file["messages"].dump();
  request.tools = file["tools"].dump();
  for (auto &entry : file["cases"]) {
    std::string source = entry["template"];
    auto out = render(source, request);
    if (entry.contains("error")) {
      EXPECT_FALSE(out.isOk())
          << source << "\nrendered, but the reference says: " << entry["error"];
      continue;
    }
    ASSERT_TRUE(out.isOk()) << source << "\n" << out.status().message();
    EXPECT_EQ(out->text, entry["output"].get<std::string>()) << source;
  }
}

class SharedTemplates : public testing::Test {
protected:
  void SetUp() override {
    folder = std::string(INGOT_SHARED_DIR) + "/data/chat-templates/";
    if (!std::filesystem::exists(folder + "golden.json"))
      GTEST_SKIP() << "no test data: " << folder;
  }
  std::string folder;
};

TEST_F(SharedTemplates, RenderLikeTheGoldens) {
  Json golden = Json::parse(readFile(folder + "golden.json"));
  // `same`: those on which two implementations of Jinja agree.
  int rendered = 0, refused = 0, same = 0, wantedSame = 0;
  for (auto &[name, conversations] : golden["goldens"].items()) {
    std::string source = readFile(folder + "templates/" + name);
    for (auto &[conversation, want] : conversations.items()) {
      const Json &input = golden["conversations"][conversation];
      Request request;
      request.messages = input["messages"].dump();
      if (input.contains("tools"))
        request.tools = input["tools"].dump();
      request.addGenerationPrompt = input.value("agp", true);
      auto out = render(source, request);
      SCOPED_TRACE(name + " " + conversation);
      bool isSame = want.value("huggingface_jinja_js", "") == "same";
      wantedSame += isSame;
      if (want.contains("output")) {
        ASSERT_TRUE(out.isOk()) << out.status().message();
        EXPECT_EQ(out->text, want["output"].get<std::string>());
        ++rendered;
        same += isSame && out->text == want["output"].get<std::string>();
      } else {
        EXPECT_FALSE(out.isOk()) << want["error"];
        ++refused;
      }
    }
  }
  std::printf("%d goldens rendered, %d of them and of %d marked same are "
              "byte-equal, %d refused as there\n",
              rendered, same, wantedSame, refused);
  RecordProperty("rendered", rendered);
  RecordProperty("same", same);
  EXPECT_EQ(same, wantedSame);
  EXPECT_GE(same, 100);
  EXPECT_GE(rendered, 160);
  EXPECT_GE(refused, 10);
}

TEST_F(SharedTemplates, AllParse) {
  int count = 0;
  for (auto &file : std::filesystem::directory_iterator(folder + "templates")) {
    auto parsed = ChatTemplate::parse(readFile(file.path()));
    EXPECT_TRUE(parsed.isOk()) << file.path() << parsed.status().message();
    ++count;
  }
  EXPECT_GE(count, 30);
}

TEST(ChatTemplateSet, PicksAsHuggingFaceDoes) {
  auto set = ChatTemplateSet::fromJson(Json::parse(
      R"([{"name":"default","template":"D"},{"name":"tool_use","template":"T"},
          {"name":"rag","template":"R"}])"));
  ASSERT_TRUE(set.isOk()) << set.status().message();
  EXPECT_EQ((*set->choose(false))->source(), "D");
  EXPECT_EQ((*set->choose(true))->source(), "T");
  EXPECT_EQ((*set->choose(true, "rag"))->source(), "R");
  auto missing = set->choose(false, "nope");
  ASSERT_FALSE(missing.isOk());
  EXPECT_EQ(missing.status().code(), StatusCode::NotFound);

  // An empty list of tools is a list of tools; null is none.
  Json messages = Json::array(), tools = Json::array(), null;
  ChatInputs inputs;
  inputs.messages = &messages;
  inputs.tools = &tools;
  EXPECT_EQ(set->render(inputs)->text, "T");
  inputs.tools = &null;
  EXPECT_EQ(set->render(inputs)->text, "D");

  auto single = ChatTemplateSet::fromJson(Json("S"));
  ASSERT_TRUE(single.isOk());
  EXPECT_EQ((*single->choose(true))->source(), "S");
  auto unclear = ChatTemplateSet::fromNamed({{"a", "A"}, {"b", "B"}});
  ASSERT_TRUE(unclear.isOk());
  EXPECT_FALSE(unclear->choose(false).isOk());
}

TEST(ChatTemplateSet, RefusesWhatItDoesNotKnow) {
  for (const char *json :
       {"null", "1", "[]", "[1]", R"([{"name":"a"}])",
        R"([{"name":"a","template":1}])",
        R"([{"name":"a","template":"x","more":1}])",
        R"([{"name":"a","template":"x"},{"name":"a","template":"y"}])",
        R"([{"name":"a","template":"{{"}])"})
    EXPECT_FALSE(ChatTemplateSet::fromJson(Json::parse(json)).isOk()) << json;
}

TEST(ChatInputs, MessagesAreNormalized) {
  Request request;
  request.messages =
      R"([{"role":"assistant","content":null,"reasoning":"why"}])";
  EXPECT_EQ(text("{{ messages[0] }}", request),
            "{'thinking': 'why', 'role': 'assistant', 'reasoning': 'why', "
            "'reasoning_content': 'why'}");
  request.normalizeMessages = false;
  EXPECT_EQ(text("{{ messages[0] }}", request),
            "{'role': 'assistant', 'content': None, 'reasoning': 'why'}");
}

TEST(ChatInputs, KwargsWinOverSpecialTokens) {
  Request request;
  request.kwargs = R"({"enable_thinking": false, "bos_token": "B"})";
  EXPECT_EQ(
      text("{{ bos_token }}{{ eos_token }}{{ enable_thinking }}", request),
      "B</s>False");
  request.kwargs = R"({"messages": []})";
  EXPECT_EQ(text("x", request),
            "ERROR: chat template: chat_template_kwargs must not set "
            "'messages'");
}

// A block within another adds nothing to what the outer one covers.
TEST(ChatInputs, NestedGenerationRanges) {
  auto out = render("a{% generation %}b{% generation %}c{% endgeneration %}d"
                    "{% endgeneration %}e{% generation %}f{% endgeneration %}");
  ASSERT_TRUE(out.isOk()) << out.status().message();
  EXPECT_EQ(out->text, "abcdef");
  EXPECT_EQ(out->generationRanges,
            (std::vector<Rendered::Range>{{1, 4}, {5, 6}}));
}

TEST(ChatInputs, GenerationRanges) {
  auto out = render("a{% generation %}bc{% endgeneration %}d");
  ASSERT_TRUE(out.isOk());
  ASSERT_EQ(out->generationRanges.size(), 1u);
  EXPECT_EQ(out->generationRanges[0], (Rendered::Range{1, 3}));
}
