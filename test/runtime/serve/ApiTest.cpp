// The API's answers and refusals, as OpenAI's clients read them: every field
// with a wrong type and an odd value, streams against whole answers, keys and
// limits.
#include "test/runtime/serve/RunningServer.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

Json errorOf(const TestResponse &response) { return response.json()["error"]; }

} // namespace

TEST(ApiTest, completion) {
  RunningServer server;
  TestResponse response = server.complete(", \"max_tokens\": 5");
  ASSERT_EQ(response.status, 200);
  Json body = response.json();
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["model"], "fake");
  EXPECT_THAT(body["id"].get<std::string>(), HasSubstr("cmpl-"));
  EXPECT_EQ(body["choices"],
            Json::parse(R"([{"index": 0, "text": "abcde", "logprobs": null,
                            "finish_reason": "length"}])"));
  // "hi" is two bytes and the tokenizer's prefix.
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(body["usage"]["completion_tokens"], 5);
  EXPECT_EQ(body["usage"]["total_tokens"], 8);
  // OpenAI's default.
  EXPECT_EQ(server.complete("").json()["usage"]["completion_tokens"], 16);
}

TEST(ApiTest, chat) {
  RunningServer server;
  TestResponse response = server.chat(", \"max_tokens\": 3");
  ASSERT_EQ(response.status, 200);
  Json body = response.json();
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "abc");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  // Parts of text are joined by line breaks before the template sees them.
  auto tokens = [&](const char *content) {
    return server
        .post("/tokenize", std::string(R"({"messages": [{"role": "user",
              "content": )") + content +
                               "}]}")
        .json()["tokens"];
  };
  EXPECT_EQ(tokens(R"([{"type": "text", "text": "a"},
                       {"type": "text", "text": "b"}])"),
            tokens(R"("a\nb")"));
}

// Every field of both endpoints with values that it does not take: 400, with
// the field as `param`, and the server goes on.
TEST(ApiTest, wrongValuesNameTheirField) {
  RunningServer server;
  struct {
    const char *field;
    std::vector<const char *> values;
    const char *param; // where it is not the field
  } shared[] = {
      {"model", {"1", "[]"}, nullptr},
      {"temperature", {"\"x\"", "-0.1", "101", "true", "[]"}, nullptr},
      {"top_p", {"\"x\"", "1.5", "-1", "{}"}, nullptr},
      {"top_k", {"\"x\"", "1.5", "-7", "1e3"}, nullptr},
      {"min_p", {"\"x\"", "1.5", "-1"}, nullptr},
      {"repetition_penalty", {"\"x\"", "0", "-1", "1000"}, nullptr},
      {"presence_penalty", {"\"x\"", "2.5", "-3"}, nullptr},
      {"frequency_penalty", {"\"x\"", "2.5", "-3"}, nullptr},
      {"seed", {"\"x\"", "1.5", "99999999999999999999", "true"}, nullptr},
      {"n", {"\"x\"", "0", "-1", "129", "1.5"}, nullptr},
      {"max_tokens", {"\"x\"", "-1", "1.5", "99999999999"}, nullptr},
      {"stop", {"1", "{}", "\"\"", "[1]", "[\"\"]"}, nullptr},
      {"stop_token_ids",
       {"1", "[\"x\"]", "[-1]", "[262]", "[99999999999]"},
       nullptr},
      {"logit_bias",
       {"1", "[]", "{\"abc\": 1}", "{\"262\": 1}", "{\"-1\": 1}",
        "{\"1\": \"x\"}", "{\"1\": 101}", "{\"1 \": 1}"},
       nullptr},
      {"ignore_eos", {"1", "\"true\""}, nullptr},
      {"exit_threshold", {"\"x\"", "1.5", "-0.1", "true", "[]"}, nullptr},
      {"priority", {"\"x\"", "1.5", "99999999999"}, nullptr},
      {"cache_salt", {"1", "{}"}, nullptr},
      {"user", {"1", "{}"}, nullptr},
      {"stream", {"1", "\"true\"", "{}"}, nullptr},
      {"stream_options", {"{\"include_usage\": true}"}, nullptr},
      {"response_format", {"{\"type\": \"json_object\"}", "1"}, nullptr},
      {"no_such_field", {"1", "{}", "\"\""}, nullptr},
  };
  auto check = [&](const TestResponse &response, const std::string &field,
                   const std::string &what) {
    EXPECT_EQ(response.status, 400) << what << response.body;
    Json error = errorOf(response);
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(field)) << what;
    ASSERT_TRUE(error["param"].is_string()) << what << response.body;
    EXPECT_EQ(error["param"].get<std::string>().rfind(field, 0), 0u) << what;
    EXPECT_EQ(error["type"], "invalid_request_error") << what;
  };
  for (const auto &each : shared)
    for (const char *value : each.values) {
      std::string fields = std::string(", \"") + each.field + "\": " + value;
      check(server.complete(fields), each.field, fields);
      check(server.chat(fields), each.field, fields);
    }
  for (const char *field : {"suffix", "best_of"})
    check(server.complete(std::string(", \"") + field + "\": 7"), field, field);
  for (const char *value : {"21", "-1", "true", "\"5\""})
    check(server.complete(std::string(", \"logprobs\": ") + value), "logprobs",
          value);
  check(server.complete(", \"echo\": 1"), "echo", "echo");
  for (const char *field :
       {"tools", "functions", "tool_choice", "function_call", "audio",
        "modalities", "prediction", "reasoning_effort", "metadata", "store",
        "parallel_tool_calls", "web_search_options", "verbosity"})
    check(server.chat(std::string(", \"") + field + "\": [{}]"), field, field);
  for (const char *fields :
       {"\"logprobs\": 1", "\"logprobs\": true, \"top_logprobs\": 21",
        "\"top_logprobs\": 2", "\"chat_template_kwargs\": []",
        "\"add_generation_prompt\": 0", "\"service_tier\": \"flex\"",
        "\"max_tokens\": 1, \"max_completion_tokens\": 2"}) {
    TestResponse response = server.chat(std::string(", ") + fields);
    EXPECT_EQ(response.status, 400) << fields;
    EXPECT_TRUE(errorOf(response)["param"].is_string()) << fields;
  }
  EXPECT_EQ(server.engine->submitted, 0);
  EXPECT_EQ(server.complete("").status, 200);
}

// Values that mean "as if it were not there", and the odd ones in range.
TEST(ApiTest, neutralAndExtremeValuesPass) {
  RunningServer server;
  for (const char *fields :
       {"\"top_k\": 9999999", "\"top_k\": 0", "\"top_k\": -1", "\"top_p\": 0",
        "\"top_p\": 1e-9", "\"temperature\": 0", "\"seed\": -1",
        "\"seed\": 9223372036854775807", "\"stop\": null", "\"stop\": []",
        "\"n\": null", "\"max_tokens\": 0", "\"logit_bias\": {}",
        "\"logit_bias\": {\"5\": -100}", "\"user\": \"x\\ny\"",
        "\"exit_threshold\": 0", "\"exit_threshold\": 0.5",
        "\"exit_threshold\": 1", "\"response_format\": {\"type\": \"text\"}"}) {
    EXPECT_EQ(server.complete(std::string(", ") + fields).status, 200)
        << fields;
    // A chat answer goes on to the end of the context where nothing ends it.
    std::string length =
        std::string(fields).find("max_tokens") == std::string::npos
            ? ", \"max_tokens\": 3"
            : "";
    EXPECT_EQ(server.chat(std::string(", ") + fields + length).status, 200)
        << fields;
  }
  for (const char *fields :
       {"\"tools\": null", "\"tool_choice\": \"none\"", "\"store\": false",
        "\"modalities\": [\"text\"]", "\"service_tier\": \"auto\"",
        "\"max_tokens\": 2, \"max_completion_tokens\": 2"})
    EXPECT_EQ(server.chat(std::string(", ") + fields).status, 200) << fields;
  EXPECT_EQ(server.complete(", \"best_of\": 2, \"n\": 2").status, 200);
}

TEST(ApiTest, badMessagesNameTheirPlace) {
  RunningServer server;
  struct {
    const char *messages;
    const char *where;
  } cases[] = {
      {"1", "messages"},
      {"[]", "messages"},
      {"[1]", "messages[0]"},
      {"[{}]", "messages[0].role"},
      {R"([{"role": "user"}])", "messages[0].content"},
      {R"([{"role": "user", "content": 1}])", "messages[0].content"},
      {R"([{"role": "king", "content": "x"}])", "messages[0].role"},
      {R"([{"role": "tool", "content": "x"}])", "messages[0].role"},
      {R"([{"role": "user", "content": "x", "odd": 1}])", "messages[0].odd"},
      {R"([{"role": "assistant", "content": "x", "tool_calls": []}])",
       "messages[0].tool_calls"},
      {R"([{"role": "user", "content": [1]}])", "messages[0].content[0]"},
      {R"([{"role": "user", "content": [{"type": "text"}]}])",
       "messages[0].content[0].text"},
      {R"([{"role": "user", "content": [{"type": "image_url",
           "image_url": {"url": "x"}}]}])",
       "messages[0].content[0].type"},
  };
  for (const auto &each : cases) {
    TestResponse response =
        server.post("/v1/chat/completions",
                    std::string("{\"messages\": ") + each.messages + "}");
    EXPECT_EQ(response.status, 400) << each.messages;
    EXPECT_EQ(errorOf(response)["param"], each.where) << each.messages;
  }
  EXPECT_EQ(errorOf(server.post("/v1/chat/completions", "{}"))["param"],
            "messages");
}

// What is not JSON, too deep, said twice, or not UTF-8.
TEST(ApiTest, badBodies) {
  RunningServer server;
  const std::string deep = "{\"prompt\": " + std::string(100000, '[') +
                           std::string(100000, ']') + "}";
  for (const std::string &body :
       {std::string(), std::string("x"), std::string("[]"), std::string("1"),
        std::string("{\"prompt\": \"hi\""), std::string("{'prompt': 1}"),
        std::string("{\"prompt\": \"hi\"} x"),
        std::string("{\"prompt\": \"\xff\"}"),
        std::string("{\"prompt\": \"\\ud800\"}"),
        std::string("{\"prompt\": \"a\", \"prompt\": \"b\"}"),
        std::string("{\"prompt\": \"a\", \"temperature\": NaN}"),
        std::string("{\"prompt\": \"a\", \"temperature\": 1e999}"), deep}) {
    TestResponse response = server.post("/v1/completions", body);
    EXPECT_EQ(response.status, 400) << body.substr(0, 60);
    EXPECT_TRUE(errorOf(response)["message"].is_string());
  }
  EXPECT_EQ(server.complete("").status, 200);
}

TEST(ApiTest, promptsOfEveryShape) {
  RunningServer server;
  auto ask = [&](const char *prompt) {
    return server.post("/v1/completions",
                       std::string("{\"max_tokens\": 2, \"echo\": true, "
                                   "\"prompt\": ") +
                           prompt + "}");
  };
  auto texts = [&](const char *prompt) {
    std::vector<std::string> list;
    Json body = ask(prompt).json();
    for (const Json &choice : body["choices"])
      list.push_back(choice["text"]);
    return list;
  };
  EXPECT_THAT(texts("\"hi\""), ElementsAre("hiab"));
  EXPECT_THAT(texts("[\"x\", \"yz\"]"), ElementsAre("xab", "yzab"));
  EXPECT_THAT(texts("[104, 105]"), ElementsAre("hiab"));
  EXPECT_THAT(texts("[[104], [105]]"), ElementsAre("hab", "iab"));
  EXPECT_EQ(ask("[0]").status, 200);
  // This tokenizer has a prefix token: the empty text is one token.
  EXPECT_EQ(ask("\"\"").json()["usage"]["prompt_tokens"], 1);
  EXPECT_EQ(ask("[\"\"]").json()["usage"]["prompt_tokens"], 1);
  for (const char *prompt :
       {"[]", "[[]]", "[262]", "[-1]", "[2147483648]", "[1.5]", "[1, \"x\"]",
        "[\"x\", 1]", "[null]", "{}", "1", "null", "[true]"}) {
    TestResponse response = ask(prompt);
    EXPECT_EQ(response.status, 400) << prompt;
    EXPECT_EQ(errorOf(response)["param"].get<std::string>().rfind("prompt", 0),
              0u)
        << prompt;
  }
  // The id and the vocabulary are named.
  EXPECT_THAT(errorOf(ask("[1, 262]"))["message"].get<std::string>(),
              ::testing::AllOf(HasSubstr("prompt[1]"), HasSubstr("262"),
                               HasSubstr("vocabulary of 262")));
}

TEST(ApiTest, promptsThatDoNotFit) {
  RunningServer server;
  std::string longPrompt(5000, 'x');
  TestResponse response =
      server.post("/v1/completions", "{\"prompt\": \"" + longPrompt + "\"}");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(errorOf(response)["code"], "context_length_exceeded");
  EXPECT_THAT(errorOf(response)["message"].get<std::string>(),
              ::testing::AllOf(HasSubstr("5001"), HasSubstr("4096")));
  // More output than fits ends by length.
  std::string near(4090, 'x');
  response = server.post("/v1/completions", "{\"max_tokens\": 100, \"prompt\": "
                                            "\"" +
                                                near + "\"}");
  EXPECT_EQ(response.json()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(response.json()["usage"]["completion_tokens"], 5);
  // What the engine itself refuses is a 400 of this request, streamed or not.
  for (const char *stream : {"true", "false"})
    EXPECT_EQ(server
                  .post("/v1/completions",
                        std::string("{\"prompt\": \"no!\", \"stream\": ") +
                            stream + "}")
                  .status,
              400);
}

// A prompt that a template has rendered has its BOS already: it is answered as
// it is, and the log says what the client may not have meant.
TEST(ApiTest, aSecondBosIsNoted) {
  RunningServer server;
  std::size_t asked = 0;
  for (auto [prompt, isTwice] : {std::pair{R"("<eos>hi")", true},
                                 {R"("hi<eos>")", false},
                                 {R"("hi")", false},
                                 {R"([259, 259, 104])", false}}) {
    EXPECT_EQ(server
                  .post("/v1/completions",
                        std::string("{\"prompt\": ") + prompt + "}")
                  .status,
              200);
    ++asked;
    ASSERT_TRUE(eventually([&] { return server.records().size() == asked; }));
    std::string note = server.records().back().note;
    EXPECT_EQ(note.find("prompt begins with the model's BOS") == 0, isTwice)
        << prompt << ": " << note;
  }
}

// What lm-eval sends: the prompt's log-probabilities and no output.
TEST(ApiTest, echoAndLogprobs) {
  RunningServer server;
  TestResponse response = server.post(
      "/v1/completions",
      R"({"prompt": "yes", "max_tokens": 0, "echo": true, "logprobs": 1})");
  ASSERT_EQ(response.status, 200) << response.body;
  Json choice = response.json()["choices"][0];
  EXPECT_EQ(choice["text"], "yes");
  Json logprobs = choice["logprobs"];
  EXPECT_EQ(logprobs["token_logprobs"],
            Json::parse("[null, -0.5, -0.5, -0.5]"));
  EXPECT_EQ(logprobs["tokens"], Json::parse(R"(["<eos>", "y", "e", "s"])"));
  EXPECT_EQ(logprobs["text_offset"], Json::parse("[0, 0, 1, 2]"));
  EXPECT_EQ(logprobs["top_logprobs"],
            Json::parse(R"([null, {"y": -0.5}, {"e": -0.5}, {"s": -0.5}])"));
  EXPECT_EQ(response.json()["usage"]["completion_tokens"], 0);

  choice = server
               .post("/v1/completions",
                     R"({"prompt": "y", "max_tokens": 2, "echo": true,
                        "logprobs": 2})")
               .json()["choices"][0];
  EXPECT_EQ(choice["text"], "yab");
  EXPECT_EQ(choice["logprobs"]["tokens"],
            Json::parse(R"(["<eos>", "y", "a", "b"])"));
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json::parse("[0, 0, 1, 2]"));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][3],
            Json::parse(R"({"b": -0.5, "B": -1.5})"));

  Json chat = server
                  .chat(", \"max_tokens\": 1, \"logprobs\": true, "
                        "\"top_logprobs\": 2")
                  .json()["choices"][0]["logprobs"];
  EXPECT_EQ(chat, Json::parse(R"({"content": [{"token": "a", "logprob": -0.5,
      "bytes": [97], "top_logprobs": [
        {"token": "a", "logprob": -0.5, "bytes": [97]},
        {"token": "B", "logprob": -1.5, "bytes": [66]}]}], "refusal": null})"));
}

// The token that ends a text has no text, and stands in the log-probabilities
// of completions: whoever asks for one token is told of one.
TEST(ApiTest, theEndingTokenIsScored) {
  RunningServer server;
  for (const char *stream : {"false", "true"}) {
    TestResponse response = server.post(
        "/v1/completions",
        std::string(R"({"prompt": "y", "stop_token_ids": [99], "logprobs": 1,
                        "echo": true, "stream": )") +
            stream + "}");
    ASSERT_EQ(response.status, 200) << response.body;
    std::string text;
    Json tokens = Json::array(), logprobs = Json::array(),
         offsets = Json::array();
    auto take = [&](const Json &choice) {
      text += choice["text"].get<std::string>();
      if (choice["logprobs"].is_null())
        return;
      for (const Json &token : choice["logprobs"]["tokens"])
        tokens.push_back(token);
      for (const Json &logprob : choice["logprobs"]["token_logprobs"])
        logprobs.push_back(logprob);
      for (const Json &offset : choice["logprobs"]["text_offset"])
        offsets.push_back(offset);
    };
    if (*stream == 'f') {
      take(response.json()["choices"][0]);
      EXPECT_EQ(response.json()["usage"]["completion_tokens"], 2);
    } else {
      for (const std::string &event : response.events())
        if (event != "[DONE]")
          take(Json::parse(event)["choices"][0]);
    }
    EXPECT_EQ(text, "yab");
    EXPECT_EQ(tokens, Json::parse(R"(["<eos>", "y", "a", "b", "c"])"));
    EXPECT_EQ(logprobs, Json::parse("[null, -0.5, -0.5, -0.5, -0.5]"));
    EXPECT_EQ(offsets, Json::parse("[0, 0, 1, 2, 3]"));
  }
  // Nothing of a stop string, and nothing in a chat.
  Json stopped = server
                     .complete(", \"stop\": \"bc\", \"logprobs\": 0, "
                               "\"stop_token_ids\": [101]")
                     .json()["choices"][0];
  EXPECT_EQ(stopped["logprobs"]["tokens"], Json::parse(R"(["a"])"));
  Json chat = server.chat(", \"stop_token_ids\": [98], \"logprobs\": true")
                  .json()["choices"][0];
  EXPECT_EQ(chat["message"]["content"], "a");
  EXPECT_EQ(chat["logprobs"]["content"].size(), 1u);
}

// The exact order of a stream: role, pieces, reason, usage where asked for,
// [DONE].
TEST(ApiTest, chatStream) {
  RunningServer server;
  TestResponse response =
      server.chat(", \"max_tokens\": 2, \"stream\": true, "
                  "\"stream_options\": {\"include_usage\": true}");
  EXPECT_EQ(response.headers["content-type"],
            "text/event-stream; charset=utf-8");
  auto events = response.events();
  ASSERT_EQ(events.size(), 6u) << response.body;
  auto choice = [&](int i) { return Json::parse(events[i])["choices"][0]; };
  EXPECT_EQ(choice(0)["delta"],
            Json::parse(R"({"role": "assistant", "content": ""})"));
  EXPECT_EQ(choice(1)["delta"], Json::parse(R"({"content": "a"})"));
  EXPECT_EQ(choice(2)["delta"], Json::parse(R"({"content": "b"})"));
  EXPECT_EQ(choice(3)["delta"], Json::object());
  EXPECT_EQ(choice(3)["finish_reason"], "length");
  for (int i = 0; i < 4; ++i) {
    Json chunk = Json::parse(events[i]);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_TRUE(chunk.contains("usage"));
    EXPECT_TRUE(chunk["usage"].is_null());
    if (i < 3) {
      EXPECT_TRUE(choice(i)["finish_reason"].is_null());
    }
  }
  Json last = Json::parse(events[4]);
  EXPECT_EQ(last["choices"], Json::array());
  EXPECT_EQ(last["usage"]["completion_tokens"], 2);
  EXPECT_EQ(events[5], "[DONE]");

  // Not asked for: no usage anywhere.
  response = server.chat(", \"max_tokens\": 2, \"stream\": true");
  EXPECT_EQ(response.events().size(), 5u);
  EXPECT_THAT(response.body, ::testing::Not(HasSubstr("usage")));
}

// The same of completions, whatever the number of choices and prompts.
TEST(ApiTest, completionStreamUsage) {
  RunningServer server;
  const std::string body =
      R"({"prompt": ["hi", "you"], "n": 2, "max_tokens": 3, "stream": true)";
  auto events = [&](const char *options) {
    TestResponse response =
        server.post("/v1/completions", body + options + "}");
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_TRUE(response.isWhole);
    return response.events();
  };
  auto asked = events(", \"stream_options\": {\"include_usage\": true}");
  ASSERT_GT(asked.size(), 4u);
  EXPECT_EQ(asked.back(), "[DONE]");
  for (std::size_t i = 0; i + 2 < asked.size(); ++i) {
    Json chunk = Json::parse(asked[i]);
    ASSERT_TRUE(chunk.contains("usage")) << asked[i];
    EXPECT_TRUE(chunk["usage"].is_null()) << asked[i];
    EXPECT_EQ(chunk["choices"].size(), 1u);
  }
  Json last = Json::parse(asked[asked.size() - 2]);
  EXPECT_EQ(last["choices"], Json::array());
  EXPECT_EQ(last["usage"]["prompt_tokens"], 3 + 4);
  EXPECT_EQ(last["usage"]["completion_tokens"], 2 * 2 * 3);
  for (const char *options :
       {"", ", \"stream_options\": null", ", \"stream_options\": {}",
        ", \"stream_options\": {\"include_usage\": false}"}) {
    auto plain = events(options);
    EXPECT_EQ(plain.size(), asked.size() - 1) << options;
    EXPECT_EQ(plain.back(), "[DONE]");
    for (const std::string &event : plain)
      EXPECT_THAT(event, ::testing::Not(HasSubstr("usage"))) << options;
  }
}

// The pieces of a stream are the whole answer: text, tokens and all, for every
// shape of request.
TEST(ApiTest, streamIsTheWhole) {
  RunningServer server;
  for (const char *fields :
       {"", ", \"logprobs\": 3", ", \"n\": 3", ", \"stop\": \"fg\"",
        ", \"stop\": [\"cde\", \"defx\"], \"logprobs\": 0",
        ", \"echo\": true, \"logprobs\": 2, \"n\": 2",
        ", \"echo\": true, \"max_tokens\": 0, \"logprobs\": 1"}) {
    std::string body = std::string("{\"prompt\": [\"hi\", \"yo\"]") + fields;
    Json whole = server.post("/v1/completions", body + "}").json();
    TestResponse streamed =
        server.post("/v1/completions", body + ", \"stream\": true}");
    std::vector<Json> choices(whole["choices"].size());
    for (const std::string &event : streamed.events()) {
      if (event == "[DONE]")
        continue;
      Json chunk = Json::parse(event)["choices"][0];
      Json &choice = choices[chunk["index"].get<std::size_t>()];
      if (choice.is_null()) {
        choice = chunk;
        continue;
      }
      choice["text"] =
          choice["text"].get<std::string>() + chunk["text"].get<std::string>();
      choice["finish_reason"] = chunk["finish_reason"];
      if (chunk["logprobs"].is_null())
        continue;
      if (choice["logprobs"].is_null()) {
        choice["logprobs"] = chunk["logprobs"];
        continue;
      }
      for (const auto &[name, list] : chunk["logprobs"].items())
        if (list.is_array())
          for (const Json &item : list)
            choice["logprobs"][name].push_back(item);
    }
    for (std::size_t i = 0; i < choices.size(); ++i)
      EXPECT_EQ(choices[i], whole["choices"][i]) << body;
  }
}

// Nothing of a stop string, nor of the tokens that wrote it, gets out.
TEST(ApiTest, stopStrings) {
  RunningServer server;
  Json choice = server.complete(", \"stop\": \"defg\", \"logprobs\": 0")
                    .json()["choices"][0];
  EXPECT_EQ(choice["text"], "abc");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["logprobs"]["tokens"], Json::parse(R"(["a", "b", "c"])"));
  TestResponse stream =
      server.complete(", \"stop\": \"defg\", \"stream\": true");
  EXPECT_THAT(stream.body, ::testing::Not(HasSubstr("\"d\"")));
  // A beginning that comes to nothing is flushed.
  choice = server.complete(", \"stop\": \"efX\", \"max_tokens\": 6")
               .json()["choices"][0];
  EXPECT_EQ(choice["text"], "abcdef");
  EXPECT_EQ(choice["finish_reason"], "length");
}

// An engine that fails mid-stream: an error event, then the end. Before: 500.
TEST(ApiTest, engineFailures) {
  RunningServer server;
  server.engine->isHeld = true;
  TestClient client(server.port());
  client.send(TestClient::post("/v1/completions",
                               R"({"prompt": "hi", "stream": true})"));
  ASSERT_TRUE(eventually([&] { return server.engine->active == 1; }));
  client.receiveUntil("\r\n\r\n");
  server.engine->failsNext = true;
  auto events = client.receive().events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(Json::parse(events[0])["error"]["type"], "server_error");
  EXPECT_EQ(events[1], "[DONE]");
  server.engine->failsNext = true;
  EXPECT_EQ(server.complete("").status, 500);
  server.engine->isHeld = false;
  EXPECT_EQ(server.complete("").status, 200);
}

TEST(ApiTest, models) {
  RunningServer server({}, {"one", "two/with slash"});
  Json list = server.get("/v1/models").json();
  EXPECT_EQ(list["data"][0]["id"], "one");
  EXPECT_EQ(list["data"][1]["id"], "two/with slash");
  EXPECT_EQ(server.get("/v1/models/one").json()["object"], "model");
  EXPECT_EQ(server.get("/v1/models/three").status, 404);
  EXPECT_EQ(server.complete(", \"model\": \"one\"").json()["model"], "one");
  TestResponse missing = server.complete(", \"model\": \"three\"");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(errorOf(missing)["code"], "model_not_found");
  EXPECT_EQ(server.complete("").status, 400); // which one?
}

TEST(ApiTest, tokenizeAndBack) {
  RunningServer server;
  TestResponse response = server.post(
      "/tokenize", R"({"prompt": "hé", "return_token_strs": true})");
  Json body = response.json();
  EXPECT_EQ(body["tokens"], Json::parse("[259, 104, 195, 169]"));
  EXPECT_EQ(body["count"], 4);
  EXPECT_EQ(body["max_model_len"], 4096);
  EXPECT_EQ(body["token_strs"][2], "bytes:\\xc3");
  EXPECT_EQ(
      server
          .post("/tokenize", R"({"prompt": "h", "add_special_tokens": false})")
          .json()["tokens"],
      Json::parse("[104]"));
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": [104, 195, 169]})")
                .json()["prompt"],
            "hé");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": [262]})").status, 400);
  EXPECT_EQ(server.post("/detokenize", R"({"tokens": "x"})").status, 400);
}

TEST(ApiTest, requestIds) {
  RunningServer server;
  EXPECT_EQ(
      server.get("/version", "X-Request-Id: my-1\r\n").headers["x-request-id"],
      "my-1");
  std::string fresh = server.get("/version").headers["x-request-id"];
  EXPECT_FALSE(fresh.empty());
  EXPECT_NE(server.get("/version").headers["x-request-id"], fresh);
  EXPECT_NE(
      server.get("/version", "X-Request-Id: a b\r\n").headers["x-request-id"],
      "a b");
  Json body = server
                  .post("/v1/completions", R"({"prompt": "hi"})",
                        "X-Request-Id: my-2\r\n")
                  .json();
  EXPECT_EQ(body["id"], "cmpl-my-2");
}

TEST(ApiTest, keys) {
  serve::ServerOptions options;
  options.keys = {{"alice", "secret-alice"}, {"bob", "secret-bob"}};
  RunningServer server(options);
  auto with = [&](const std::string &value) {
    return server
        .get("/v1/models",
             value.empty() ? "" : "Authorization: " + value + "\r\n")
        .status;
  };
  EXPECT_EQ(with("Bearer secret-alice"), 200);
  EXPECT_EQ(with("bearer secret-bob"), 200);
  for (const char *wrong :
       {"", "Bearer", "Bearer ", "Bearer secret-alic", "Bearer secret-alicee",
        "Basic secret-alice", "secret-alice", "Bearer Secret-alice",
        "Bearer secret-alice secret-bob"})
    EXPECT_EQ(with(wrong), 401) << wrong;
  TestResponse refused = server.complete("");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(errorOf(refused)["code"], "invalid_api_key");
  EXPECT_EQ(refused.headers.count("www-authenticate"), 1u);
  for (const char *open : {"/health", "/version", "/metrics"})
    EXPECT_EQ(server.get(open).status, 200);
  EXPECT_EQ(server.engine->submitted, 0);
}

TEST(ApiTest, rateLimitIsOfAClient) {
  serve::ServerOptions options;
  options.keys = {{"alice", "secret-alice"}, {"bob", "secret-bob"}};
  options.requestsPerMinute = 3;
  RunningServer server(options);
  auto ask = [&](const std::string &key) {
    return server.post("/v1/completions", R"({"prompt": "hi"})",
                       "Authorization: Bearer secret-" + key + "\r\n");
  };
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ask("alice").status, 200);
  TestResponse refused = ask("alice");
  EXPECT_EQ(refused.status, 429);
  EXPECT_GE(std::stoi(refused.headers["retry-after"]), 1);
  EXPECT_EQ(ask("bob").status, 200);
}

TEST(ApiTest, queueIsBounded) {
  serve::ServerOptions options;
  options.maxQueue = 2; // beside the batch of four
  RunningServer server(options);
  server.engine->isHeld = true;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(
        TestClient::post("/v1/completions", R"({"prompt": "hi", "n": 2})"));
  }
  ASSERT_TRUE(eventually([&] { return server.engine->active == 6; }));
  TestResponse refused = server.complete("");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.count("retry-after"), 1u);
  // More than can ever fit is the request's fault.
  EXPECT_EQ(server.complete(", \"n\": 7").status, 400);
  clients.pop_back();
  ASSERT_TRUE(eventually([&] { return server.engine->active == 4; }));
  server.engine->isHeld = false;
  EXPECT_TRUE(eventually([&] { return server.complete("").status == 200; }));
}

// Alive, but an engine that does not move: /health says so.
TEST(ApiTest, healthIsProgress) {
  serve::ServerOptions options;
  options.stallTimeout = std::chrono::milliseconds(100);
  RunningServer server(options);
  EXPECT_EQ(server.get("/health").status, 200);
  server.engine->stepMicros = 1'000'000;
  TestClient client(server.port());
  client.send(TestClient::post("/v1/completions",
                               R"({"prompt": "hi", "max_tokens": 1})"));
  EXPECT_TRUE(eventually([&] { return server.get("/health").status == 503; }));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(eventually([&] { return server.get("/health").status == 200; }));
}

TEST(ApiTest, metricsAndRecords) {
  RunningServer server;
  server.complete(", \"max_tokens\": 5, \"user\": \"eve\"");
  server.complete(", \"temperature\": -1");
  ASSERT_TRUE(eventually([&] { return server.records().size() >= 2; }));
  std::string text = server.get("/metrics").body;
  for (const char *line :
       {"ingot_request_finished_total{model=\"fake\",finished_reason="
        "\"length\"} 1\n",
        "ingot_time_to_first_token_seconds_count{model=\"fake\"} 1\n",
        "ingot_inter_token_latency_seconds_count{model=\"fake\"} 4\n",
        "ingot_request_generation_tokens_sum{model=\"fake\"} 5\n",
        "ingot_kv_cache_blocks{model=\"fake\"} 100\n",
        "# TYPE ingot_e2e_request_latency_seconds histogram\n",
        "ingot_e2e_request_latency_seconds_bucket{model=\"fake\",le=\"+Inf\"} "
        "1\n",
        "ingot_http_requests_total{path=\"/v1/completions\",code=\"400\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
  auto record = server.records()[0];
  EXPECT_EQ(record.status, 200);
  EXPECT_EQ(record.user, "eve");
  EXPECT_EQ(record.promptTokens, 3);
  EXPECT_EQ(record.outputTokens, 5);
  EXPECT_EQ(record.finish, "length");
  EXPECT_GE(record.firstTokenSeconds, 0);
  EXPECT_EQ(server.records()[1].status, 400);
}

// A file that is written to under its mapping is not answered from, even if it
// looks as before again.
TEST(ApiTest, aChangedFileIsNotServed) {
  RunningServer server;
  EXPECT_EQ(server.complete("").status, 200);
  EXPECT_EQ(server.get("/health").status, 200);
  server.engine->isFileChanged = true;
  TestResponse refused = server.complete("");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.json()["error"]["code"], "model_changed");
  server.engine->isFileChanged = false;
  EXPECT_EQ(server.chat("").status, 503);
  TestResponse health = server.get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(health.json()["status"], "changed");
}
