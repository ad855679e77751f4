// /v1/embeddings as OpenAI's clients use it, beside a model that generates: every
// form of input, every field with a wrong value, many requests in one step, and
// each kind of model asked for the other's work.
#include "runtime/serve/EmbeddingAnswer.h"
#include "runtime/serve/EmbeddingLoop.h"
#include "test/runtime/serve/FakeEncoder.h"
#include "test/runtime/serve/RunningServer.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

// One of each kind.
class Both {
public:
  explicit Both(serve::ServerOptions options = {})
      : encoder(std::make_shared<FakeEncoderState>()) {
    std::vector<std::unique_ptr<serve::ServedModel>> models;
    models.push_back(std::make_unique<FakeModel>(
        "writer", std::make_shared<FakeEngineState>()));
    std::vector<std::unique_ptr<serve::ServedEncoder>> encoders;
    encoders.push_back(std::make_unique<FakeEncoder>("encoder", encoder));
    server = std::make_unique<RunningServer>(std::move(models), options,
                                             std::move(encoders));
  }
  ~Both() { encoder->isHeld = false; }

  TestResponse embed(const std::string &input, const std::string &more = "") {
    return server->post("/v1/embeddings", R"({"model": "encoder", "input": )" +
                                              input + more + "}");
  }
  std::shared_ptr<FakeEncoderState> encoder;
  std::unique_ptr<RunningServer> server;
};

} // namespace

TEST(EmbeddingsTest, everyFormOfInput) {
  Both both;
  TestResponse response = both.embed("[104, 105]");
  ASSERT_EQ(response.status, 200) << response.body;
  Json body = response.json();
  EXPECT_EQ(body["object"], "list");
  EXPECT_EQ(body["model"], "encoder");
  EXPECT_EQ(body["usage"],
            Json::parse(R"({"prompt_tokens": 2, "total_tokens": 2})"));
  EXPECT_EQ(body["data"], Json::parse(R"([{"object": "embedding", "index": 0,
                                           "embedding": [2, 209, 0.1]}])"));
  // A float32 in its own digits, not in those of a double.
  EXPECT_THAT(response.body, HasSubstr("[2.0,209.0,0.1]"));

  // A text is its tokens: "hi" is two bytes and the tokenizer's prefix.
  Json ids =
      both.server->post("/tokenize", R"({"model": "encoder", "prompt": "hi"})")
          .json()["tokens"];
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(both.embed("\"hi\"").json()["data"],
            both.embed(ids.dump()).json()["data"]);

  // Lists keep their order, whatever kinds stand in them and however many steps
  // they take.
  body = both.embed("[[1], \"hi\", [2, 3], [4], [5], [6], [7, 8, 9]]").json();
  ASSERT_EQ(body["data"].size(), 7u) << body;
  std::vector<float> sums;
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(body["data"][i]["index"], i);
    sums.push_back(body["data"][i]["embedding"][1]);
  }
  EXPECT_EQ(sums[0], 1);
  EXPECT_EQ(sums[2], 5);
  EXPECT_EQ(sums[5], 6);
  EXPECT_EQ(sums[6], 24);
  EXPECT_EQ(body["usage"]["prompt_tokens"], 1 + 3 + 2 + 1 + 1 + 1 + 3);
}

TEST(EmbeddingsTest, base64IsTheBytesOfTheNumbers) {
  Both both;
  Json body = both.embed("[[104, 105], [7]]",
                         R"(, "encoding_format": "base64", "user": "u")")
                  .json();
  // 2.0f, 209.0f, 0.1f; 1.0f, 7.0f, 0.1f
  EXPECT_EQ(body["data"][0]["embedding"], "AAAAQAAAUUPNzMw9");
  EXPECT_EQ(body["data"][1]["embedding"], "AACAPwAA4EDNzMw9");
  EXPECT_EQ(both.embed("[7]", R"(, "encoding_format": "float")").status, 200);
  EXPECT_EQ(both.embed("[7]", R"(, "dimensions": 3)").status, 200);
  // RFC 4648, section 10.
  auto encoded = [](std::string_view text) {
    return serve::base64(
        {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
  };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(encoded("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
}

TEST(EmbeddingsTest, wrongValuesNameTheirField) {
  Both both;
  struct {
    const char *body, *param, *message;
  } cases[] = {
      {R"({"model": "encoder"})", "input", "is missing"},
      {R"({"model": "encoder", "input": null})", "input", "is missing"},
      {R"({"model": "encoder", "input": 7})", "input",
       "expected a string or a list"},
      {R"({"model": "encoder", "input": {}})", "input",
       "expected a string or a list"},
      {R"({"model": "encoder", "input": []})", "input", "empty list"},
      {R"({"model": "encoder", "input": [[]]})", "input", "is empty"},
      {R"({"model": "encoder", "input": [[1], []]})", "input[1]", "is empty"},
      {R"({"model": "encoder", "input": [1, "a"]})", "input[1]",
       "expected a token id"},
      {R"({"model": "encoder", "input": ["a", 1]})", "input[1]",
       "expected a string or a list of token ids"},
      {R"({"model": "encoder", "input": [-1]})", "input[0]", "outside"},
      {R"({"model": "encoder", "input": [4000]})", "input[0]", "outside"},
      {R"({"model": "encoder", "input": [[1], [262]]})", "input[1][0]",
       "outside the vocabulary of 262"},
      {R"({"model": "encoder", "input": "a", "encoding_format": "int8"})",
       "encoding_format", "expected \"float\" or \"base64\", found \"int8\""},
      {R"({"model": "encoder", "input": "a", "encoding_format": 1})",
       "encoding_format", "expected a string"},
      {R"({"model": "encoder", "input": "a", "dimensions": 2})", "dimensions",
       "is 2, this model's vectors have 3 and are not cut"},
      {R"({"model": "encoder", "input": "a", "dimensions": 0})", "dimensions",
       "0"},
      {R"({"model": "encoder", "input": "a", "user": 1})", "user",
       "expected a string"},
      {R"({"model": "encoder", "input": "a", "temperature": 0})", "temperature",
       ""},
      {R"({"input": "a"})", "model", "is missing, and there is more than one"},
  };
  for (const auto &one : cases) {
    TestResponse response = both.server->post("/v1/embeddings", one.body);
    EXPECT_EQ(response.status, 400) << one.body;
    Json error = response.json()["error"];
    EXPECT_EQ(error["param"], one.param) << one.body;
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(one.message));
  }
  EXPECT_EQ(both.server->post("/v1/embeddings", "{").status, 400);
  EXPECT_EQ(both.server->get("/v1/embeddings").status, 405);
  EXPECT_EQ(both.embed("[1]").status, 200);
}

// Neither cut off nor begun: the whole request is refused, with both numbers.
TEST(EmbeddingsTest, aTextThatIsTooLongIsRefused) {
  Both both;
  std::string ids = "1";
  for (int i = 1; i < 17; ++i)
    ids += ", 1";
  Json error = both.embed("[[1], [" + ids + "]]").json()["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "input[1]");
  EXPECT_EQ(error["message"], "the text has 17 tokens; the longest that this "
                              "model takes has 16");
  EXPECT_EQ(both.encoder->steps, 0);
  EXPECT_EQ(both.embed("[[1], [" + ids.substr(3) + "]]").status, 200);

  std::string many = "[1]";
  for (int i = 1; i < 2049; ++i)
    many += ", [1]";
  error = both.embed("[" + many + "]").json()["error"];
  EXPECT_EQ(error["message"], "input: has 2049 texts, expected at most 2048");
  EXPECT_EQ(both.embed("[" + many.substr(5) + "]").json()["data"].size(),
            2048u);
}

TEST(EmbeddingsTest, eachModelIsToldFromTheOther) {
  Both both;
  Json error =
      both.server
          ->post("/v1/embeddings", R"({"model": "writer", "input": "a"})")
          .json()["error"];
  EXPECT_EQ(error["param"], "model");
  EXPECT_EQ(error["message"],
            "model: \"writer\" generates text and gives no vectors; it answers "
            "/v1/completions and /v1/chat/completions, not /v1/embeddings");
  TestResponse response = both.server->post(
      "/v1/completions", R"({"model": "encoder", "prompt": "a"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.json()["error"]["message"],
            "model: \"encoder\" is an encoder, which generates no text; it "
            "answers /v1/embeddings, not /v1/completions");
  response = both.server->post(
      "/v1/chat/completions",
      R"({"model": "encoder", "messages": [{"role": "user", "content": "a"}]})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.json()["error"]["message"].get<std::string>(),
              HasSubstr("not /v1/chat/completions"));
  response = both.server->post(
      "/tokenize",
      R"({"model": "encoder", "messages": [{"role": "user", "content": "a"}]})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.json()["error"]["message"].get<std::string>(),
              HasSubstr("has no chat template"));

  Json list = both.server->get("/v1/models").json()["data"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["task"], "generate");
  EXPECT_FALSE(list[0].contains("dimensions"));
  EXPECT_EQ(list[1]["id"], "encoder");
  EXPECT_EQ(list[1]["task"], "embed");
  EXPECT_EQ(list[1]["dimensions"], 3);
  EXPECT_EQ(list[1]["max_model_len"], 16);
  EXPECT_EQ(both.server->get("/v1/models/encoder").json(), list[1]);
  EXPECT_EQ(both.server->get("/health").json()["models"].size(), 2u);
}

// One text of each job in turn: a single one does not wait for a long list, and
// what was cancelled is not answered.
TEST(EmbeddingLoopTest, jobsShareSteps) {
  auto state = std::make_shared<FakeEncoderState>();
  serve::MetricRegistry registry;
  serve::ModelMetrics metrics(registry, "encoder");
  std::vector<std::string> order;
  {
    serve::EmbeddingLoop loop(std::make_unique<FakeEncoder>("encoder", state),
                              metrics,
                              [](std::function<void()> work) { work(); });
    std::atomic<int> done{0};
    auto submit = [&](const std::string &name, std::size_t texts) {
      serve::EmbeddingJob job;
      for (std::size_t i = 0; i < texts; ++i)
        job.texts.push_back({std::int32_t(i)});
      job.onDone = [&, name, texts](Result<std::vector<Embedding>> result) {
        ASSERT_TRUE(result.isOk()) << result.status().message();
        ASSERT_EQ(result->size(), texts);
        for (std::size_t i = 0; i < texts; ++i)
          EXPECT_EQ((*result)[i], FakeEncoder::embeddingOf({std::int32_t(i)}));
        order.push_back(name);
        ++done;
      };
      return loop.submit(std::move(job));
    };
    state->isHeld = true;
    submit("first", 1); // is held in its step, so that the others gather
    ASSERT_TRUE(eventually([&] { return state->entered == 1; }));
    submit("list", 60);
    auto leaving = submit("leaves", 30);
    submit("pair", 2);
    loop.cancel(leaving);
    state->isHeld = false;
    ASSERT_TRUE(eventually([&] { return done == 3; }));
    EXPECT_EQ(loop.engineMetrics().promptTokens, 63u);
    EXPECT_EQ(loop.engineMetrics().requests, 4u);
    EXPECT_TRUE(eventually([&] { return !loop.progress().isBusy; }));
    EXPECT_EQ(loop.engineMetrics().running, 0);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"first", "pair", "list"}));
  EXPECT_EQ(state->texts, 63);
  EXPECT_EQ(state->steps, 22); // the fake takes three at a time
  EXPECT_THAT(registry.text(), HasSubstr("finished_reason=\"abort\"} 1"));
}

// A text without a vector ends its own request; those of the same step go on.
TEST(EmbeddingLoopTest, aFailedTextEndsItsJobAlone) {
  auto state = std::make_shared<FakeEncoderState>();
  serve::MetricRegistry registry;
  serve::ModelMetrics metrics(registry, "encoder");
  std::map<std::string, std::string> ends;
  std::atomic<int> done{0};
  {
    serve::EmbeddingLoop loop(std::make_unique<FakeEncoder>("encoder", state),
                              metrics,
                              [](std::function<void()> work) { work(); });
    auto submit = [&](const std::string &name,
                      std::vector<std::vector<std::int32_t>> texts) {
      serve::EmbeddingJob job;
      job.texts = std::move(texts);
      job.onDone = [&, name](Result<std::vector<Embedding>> result) {
        ends[name] = result ? std::to_string(result->size()) + " vectors"
                            : result.status().message();
        ++done;
      };
      loop.submit(std::move(job));
    };
    state->isHeld = true;
    submit("first", {{1}});
    ASSERT_TRUE(eventually([&] { return state->entered == 1; }));
    submit("bad", {{251}, {1}, {1}, {1}, {1}, {1}, {1}});
    submit("good", {{2}, {3}, {4}, {5}});
    state->isHeld = false;
    ASSERT_TRUE(eventually([&] { return done == 3; }));
  }
  EXPECT_EQ(ends["bad"], "the fake encoder has no vector");
  EXPECT_EQ(ends["good"], "4 vectors");
  EXPECT_THAT(registry.text(), HasSubstr("finished_reason=\"error\"} 1"));
}

TEST(EmbeddingsTest, aFailedStepFailsItsRequestsAlone) {
  Both both;
  both.encoder->failsNext = true;
  TestResponse response = both.embed("[1]");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.json()["error"]["message"],
            "the fake encoder was told to fail");
  EXPECT_EQ(both.embed("[1]").status, 200);
}

// A client that leaves takes its texts with it; a full queue refuses the next.
TEST(EmbeddingsTest, theQueueIsBounded) {
  serve::ServerOptions options;
  options.maxQueue = 1;
  Both both(options);
  both.encoder->isHeld = true;
  std::vector<std::unique_ptr<TestClient>> clients;
  std::string request = TestClient::post(
      "/v1/embeddings", R"({"model": "encoder", "input": [[1], [2]]})");
  for (int i = 0; i < 6; ++i) { // a batch of 4, one that waits, and one more
    clients.push_back(std::make_unique<TestClient>(both.server->port()));
    EXPECT_TRUE(clients.back()->send(request));
  }
  auto wasRefused = [&] {
    for (const serve::RequestRecord &record : both.server->records())
      if (record.status == 503 &&
          record.error == "the queue of \"encoder\" is full")
        return true;
    return false;
  };
  EXPECT_TRUE(eventually(wasRefused));
  clients.clear();
  both.encoder->isHeld = false;
  EXPECT_TRUE(eventually([&] { return both.embed("[1]").status == 200; }));
}

TEST(EmbeddingsTest, keysAndRatesHoldHereToo) {
  serve::ServerOptions options;
  options.keys = {{"name", "secret"}};
  options.requestsPerMinute = 2;
  Both both(options);
  auto ask = [&](const std::string &headers) {
    return both.server
        ->post("/v1/embeddings", R"({"model": "encoder", "input": "a"})",
               headers)
        .status;
  };
  EXPECT_EQ(ask(""), 401);
  EXPECT_EQ(ask("Authorization: Bearer secret\r\n"), 200);
  EXPECT_EQ(ask("Authorization: Bearer secret\r\n"), 200);
  EXPECT_EQ(ask("Authorization: Bearer secret\r\n"), 429);
}
