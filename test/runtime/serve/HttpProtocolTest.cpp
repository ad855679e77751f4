// The transport on its own: what is not HTTP, what is too long or too slow,
// pipelines, chunks, clients that leave or do not read.
#include "test/runtime/serve/RunningServer.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;

namespace {

const std::string kBody = R"({"prompt": "hi", "max_tokens": 3})";

serve::ServerOptions
withHttp(std::function<void(serve::HttpOptions &)> change) {
  serve::ServerOptions options;
  change(options.http);
  return options;
}

} // namespace

// Each is answered with 400 (or 501) as JSON, and the server goes on.
TEST(HttpProtocolTest, malformedRequestsAreRefused) {
  RunningServer server;
  struct {
    const char *bytes;
    int status;
  } cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\n\r\n", 400}, // no Host
      {"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\nHost: a\r\nBad Name: b\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", 400},
      {"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
       "Content-Length: 2\r\n\r\n",
       400},
      // Two readings of where the request ends: the smuggler's way.
      {"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
       "Transfer-Encoding: gzip\r\n\r\n",
       501},
      {"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
       "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
       400},
      {"POST /v1/completions HTTP/1.1\r\nHost: a\r\nExpect: a-pony\r\n\r\n",
       400},
  };
  for (const auto &each : cases) {
    TestClient client(server.port());
    ASSERT_TRUE(client.send(each.bytes));
    TestResponse response = client.receive();
    EXPECT_EQ(response.status, each.status) << each.bytes;
    EXPECT_TRUE(response.json().contains("error")) << each.bytes;
    EXPECT_TRUE(client.isClosedByPeer()) << each.bytes;
  }
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(HttpProtocolTest, randomBytesNeverHurt) {
  RunningServer server;
  std::uint32_t state = 1;
  auto next = [&] { return state = state * 1664525u + 1013904223u; };
  const std::string valid = TestClient::post("/v1/completions", kBody);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = valid;
    for (int i = 0; i < 1 + int(next() >> 8) % 6; ++i)
      bytes[(next() >> 4) % bytes.size()] = char(next() >> 16);
    if (round % 3 == 0)
      bytes.resize((next() >> 4) % bytes.size());
    TestClient client(server.port());
    client.send(bytes);
    if (round % 2)
      client.halfClose();
    client.close();
  }
  EXPECT_EQ(server.complete(", \"max_tokens\": 3").json()["choices"][0]["text"],
            "abc");
  EXPECT_TRUE(eventually([&] { return server.engine->active == 0; }));
}

TEST(HttpProtocolTest, limitsOfHeadAndBody) {
  RunningServer server(withHttp([](serve::HttpOptions &http) {
    http.maxHeaderBytes = 1024;
    http.maxBodyBytes = 4096;
  }));
  std::string longHead = "X-Long: " + std::string(2000, 'x') + "\r\n";
  EXPECT_EQ(server.get("/health", longHead).status, 431);
  std::string body = "{\"prompt\": \"" + std::string(5000, 'x') + "\"}";
  EXPECT_EQ(server.post("/v1/completions", body).status, 413);
  // Said before the body comes.
  TestClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
              "Content-Length: 999999999999\r\n\r\n");
  EXPECT_EQ(client.receive().status, 413);
  // And of chunks as they add up.
  TestClient chunked(server.port());
  chunked.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
               "Transfer-Encoding: chunked\r\n\r\n");
  std::string chunk = "800\r\n" + std::string(0x800, ' ') + "\r\n";
  for (int i = 0; i < 4; ++i)
    chunked.send(chunk);
  EXPECT_EQ(chunked.receive().status, 413);
}

// A slow-loris: byte after byte, never whole.
TEST(HttpProtocolTest, slowHeadsAndBodiesTimeOut) {
  RunningServer server(withHttp([](serve::HttpOptions &http) {
    http.headTimeout = http.bodyTimeout = std::chrono::milliseconds(300);
  }));
  const std::string heads[] = {
      "GET /health HTTP/1.1\r\nHost",
      "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"};
  for (const std::string &head : heads) {
    TestClient client(server.port());
    for (char c : head) {
      client.send(std::string(1, c));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(client.receive().status, 408);
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(5));
  }
  // One that sends nothing at all is closed without a word, or with one.
  TestClient silent(server.port());
  EXPECT_TRUE(silent.isClosedByPeer());
}

TEST(HttpProtocolTest, idleConnectionsAreClosed) {
  RunningServer server(withHttp([](serve::HttpOptions &http) {
    http.idleTimeout = std::chrono::milliseconds(200);
  }));
  TestClient client(server.port());
  client.send(TestClient::get("/version"));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(client.isClosedByPeer());
}

// Requests that come together are answered one by one, in order.
TEST(HttpProtocolTest, pipelines) {
  RunningServer server;
  TestClient client(server.port());
  std::string all;
  for (int n = 1; n <= 8; ++n)
    all += TestClient::post("/v1/completions",
                            R"({"prompt": "hi", "max_tokens": )" +
                                std::to_string(n) + "}");
  all += TestClient::get("/version");
  client.send(all);
  for (int n = 1; n <= 8; ++n)
    EXPECT_EQ(client.receive().json()["usage"]["completion_tokens"], n);
  EXPECT_TRUE(client.receive().json().contains("version"));
}

// Any cut of the bytes is the same request.
TEST(HttpProtocolTest, anyFragmentsAndChunks) {
  RunningServer server;
  std::string request = TestClient::post("/v1/completions", kBody);
  for (std::size_t cut = 1; cut < request.size(); cut += 7) {
    TestClient client(server.port());
    client.send(request.substr(0, cut));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    client.send(request.substr(cut));
    EXPECT_EQ(client.receive().json()["choices"][0]["text"], "abc");
  }
  TestClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
              "Transfer-Encoding: chunked\r\n\r\n");
  for (char c : kBody)
    client.send("1;ext=1\r\n" + std::string(1, c) + "\r\n");
  client.send("0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(client.receive().json()["choices"][0]["text"], "abc");
  // The connection is still good.
  client.send(request);
  EXPECT_EQ(client.receive().json()["choices"][0]["text"], "abc");
}

TEST(HttpProtocolTest, expectContinueAndOldVersions) {
  RunningServer server;
  TestClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
              std::to_string(kBody.size()) +
              "\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.receiveUntil("\r\n\r\n"), HasSubstr("100 Continue"));
  client.send(kBody);
  EXPECT_EQ(client.receive().status, 200);

  TestClient old(server.port());
  std::string body = R"({"prompt": "hi", "max_tokens": 2, "stream": true})";
  old.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body);
  TestResponse response = old.receive();
  EXPECT_EQ(response.headers.count("transfer-encoding"), 0u);
  EXPECT_EQ(response.events().back(), "[DONE]");

  EXPECT_EQ(ask(server.port(),
                "HEAD /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                .status,
            200);
}

TEST(HttpProtocolTest, methodsPathsAndTypes) {
  RunningServer server;
  EXPECT_EQ(server.get("/nowhere").status, 404);
  TestResponse wrong = server.get("/v1/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers["allow"], "POST");
  EXPECT_EQ(server.post("/health", "{}").status, 405);
  TestResponse form =
      ask(server.port(),
          "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: "
          "application/x-www-form-urlencoded\r\nContent-Length: "
          "2\r\n\r\n{}");
  EXPECT_EQ(form.status, 415);
  TestResponse zipped =
      server.post("/v1/completions", kBody, "Content-Encoding: gzip\r\n");
  EXPECT_EQ(zipped.status, 415);
}

TEST(HttpProtocolTest, connectionsHaveALimit) {
  RunningServer server(
      withHttp([](serve::HttpOptions &http) { http.maxConnections = 3; }));
  std::vector<std::unique_ptr<TestClient>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<TestClient>(server.port()));
    held.back()->send(TestClient::get("/version"));
    EXPECT_EQ(held.back()->receive().status, 200);
  }
  TestResponse refused = server.get("/version");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.count("retry-after"), 1u);
  held.clear();
  EXPECT_TRUE(eventually([&] { return server.get("/version").status == 200; }));
}

// A client that leaves, in a stream or before any answer: its request is gone
// within a step, once, and others go on.
TEST(HttpProtocolTest, clientsThatLeaveAreCancelled) {
  RunningServer server;
  for (bool stream : {true, false}) {
    int before = server.engine->cancelled;
    server.engine->stepMicros = 2000;
    TestClient client(server.port());
    client.send(TestClient::post(
        "/v1/completions",
        std::string(R"({"prompt": "hi", "max_tokens": 3000, "stream": )") +
            (stream ? "true}" : "false}")));
    ASSERT_TRUE(eventually([&] { return server.engine->active == 1; }));
    if (stream)
      client.receiveUntil("data: ");
    client.close();
    EXPECT_TRUE(eventually([&] { return server.engine->active == 0; }));
    EXPECT_EQ(server.engine->cancelled, before + 1);
    EXPECT_TRUE(eventually([&] {
      auto records = server.records();
      return !records.empty() && records.back().error == "client disconnected";
    }));
  }
  // A client that only closes its own side is gone too.
  TestClient half(server.port());
  half.send(TestClient::post("/v1/completions",
                             R"({"prompt": "hi", "max_tokens": 3000})"));
  ASSERT_TRUE(eventually([&] { return server.engine->active == 1; }));
  half.halfClose();
  EXPECT_TRUE(eventually([&] { return server.engine->active == 0; }));
  server.engine->stepMicros = 100;
  // Whoever leaves after the end of an answer has nothing to cancel.
  int before = server.engine->cancelled;
  for (bool stream : {true, false}) {
    EXPECT_EQ(server
                  .complete(std::string(", \"max_tokens\": 3, \"stream\": ") +
                            (stream ? "true" : "false"))
                  .status,
              200);
    EXPECT_TRUE(eventually([&] {
      return server.get("/metrics").body.find("ingot_http_connections 1\n") !=
             std::string::npos;
    }));
  }
  EXPECT_EQ(server.engine->cancelled, before);
}

// One that has sent more requests ahead than are read meanwhile.
TEST(HttpProtocolTest, pipeliningClientsThatLeaveAreCancelled) {
  RunningServer server(
      withHttp([](serve::HttpOptions &http) { http.maxHeaderBytes = 1024; }));
  server.engine->isHeld = true;
  for (bool resets : {false, true}) {
    int before = server.engine->cancelled;
    TestClient client(server.port());
    client.send(TestClient::post("/v1/completions",
                                 R"({"prompt": "hi", "max_tokens": 3000})"));
    ASSERT_TRUE(eventually([&] { return server.engine->active == 1; }));
    std::string ahead;
    while (ahead.size() < 40000)
      ahead += TestClient::get("/version");
    client.send(ahead);
    // Still there: nothing happens to it.
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    EXPECT_EQ(server.engine->active, 1);
    resets ? client.abort() : client.close();
    EXPECT_TRUE(eventually([&] { return server.engine->active == 0; }));
    EXPECT_EQ(server.engine->cancelled, before + 1);
  }
  server.engine->isHeld = false;
  EXPECT_EQ(server.complete(", \"max_tokens\": 3").status, 200);
}

// One that does not read: its stream is cut and logged, others do not wait.
TEST(HttpProtocolTest, slowReadersAreCut) {
  RunningServer server(withHttp(
      [](serve::HttpOptions &http) { http.maxPendingBytes = 16 * 1024; }));
  server.engine->tokensPerStep = 64;
  TestClient slow(server.port(), 4096);
  slow.send(TestClient::post(
      "/v1/completions",
      R"({"prompt": "hi", "max_tokens": 4000, "stream": true, "logprobs": 20})"));
  ASSERT_TRUE(eventually([&] { return server.engine->submitted == 1; }));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(server.complete(", \"max_tokens\": 3").status, 200);
  EXPECT_TRUE(eventually([&] { return server.engine->active == 0; }));
  EXPECT_TRUE(eventually([&] {
    for (const auto &record : server.records())
      if (record.error == "client reads too slowly")
        return true;
    return false;
  }));
  EXPECT_FALSE(slow.receive().isWhole);
}

// One that takes nothing for longer than the limit, of an answer that is not a
// stream.
TEST(HttpProtocolTest, stalledReadersTimeOut) {
  RunningServer server(withHttp([](serve::HttpOptions &http) {
    http.writeTimeout = std::chrono::milliseconds(300);
  }));
  server.engine->tokensPerStep = 500;
  TestClient client(server.port(), 4096);
  // Some megabytes: more than the system's buffers take.
  client.send(TestClient::post(
      "/v1/completions",
      R"({"prompt": "hi", "max_tokens": 4000, "logprobs": 20, "n": 4})"));
  EXPECT_TRUE(eventually([&] {
    for (const auto &record : server.records())
      if (record.error == "client reads too slowly")
        return true;
    return false;
  }));
}

// SIGTERM's way: no new requests, streams under way are finished, then run()
// is over.
TEST(HttpProtocolTest, drainFinishesStreams) {
  RunningServer server;
  server.engine->stepMicros = 3000;
  TestClient idle(server.port());
  idle.send(TestClient::get("/version"));
  EXPECT_EQ(idle.receive().status, 200);
  TestClient stream(server.port());
  stream.send(TestClient::post(
      "/v1/completions",
      R"({"prompt": "hi", "max_tokens": 100, "stream": true})"));
  stream.receiveUntil("data: ");
  server.server().drain();
  EXPECT_TRUE(idle.isClosedByPeer());
  TestResponse response = stream.receive();
  EXPECT_TRUE(response.isWhole);
  EXPECT_EQ(response.events().back(), "[DONE]");
  EXPECT_EQ(server.join(), serve::ServerEnd::Drained);
  EXPECT_EQ(server.engine->active, 0);
}

// Whatever a request is doing when the deadline passes, it is told: a stream by
// an event, all others by 503.
TEST(HttpProtocolTest, drainHasADeadline) {
  serve::ServerOptions options;
  options.drainTimeout = std::chrono::milliseconds(200);
  RunningServer server(options);
  server.engine->isHeld = true;
  server.engine->holdsChats = true;
  TestClient uploading(server.port());
  uploading.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
                 "Content-Length: 1000\r\n\r\n{");
  TestClient preparing(server.port());
  preparing.send(
      TestClient::post("/v1/chat/completions",
                       R"({"messages": [{"role": "user", "content": "hi"}]})"));
  ASSERT_TRUE(eventually([&] { return server.engine->chats == 1; }));
  TestClient running(server.port());
  running.send(TestClient::post("/v1/completions", R"({"prompt": "hi"})"));
  ASSERT_TRUE(eventually([&] { return server.engine->active == 1; }));
  TestClient stream(server.port());
  stream.send(TestClient::post(
      "/v1/completions",
      R"({"prompt": "hi", "max_tokens": 100, "stream": true})"));
  ASSERT_TRUE(eventually([&] { return server.engine->active == 2; }));
  server.server().drain();
  TestResponse cut = stream.receive();
  EXPECT_EQ(cut.status, 200);
  EXPECT_TRUE(cut.isWhole);
  std::vector<std::string> events = cut.events();
  ASSERT_GE(events.size(), 2u);
  EXPECT_NE(events[events.size() - 2].find("shutting down"), std::string::npos);
  EXPECT_EQ(events.back(), "[DONE]");
  for (TestClient *each : {&uploading, &preparing, &running}) {
    TestResponse refused = each->receive();
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.isWhole);
    EXPECT_EQ(refused.headers["retry-after"], "1");
    EXPECT_NE(refused.body.find("shutting down"), std::string::npos);
  }
  for (TestClient *each : {&stream, &uploading, &preparing, &running})
    each->close();
  EXPECT_EQ(server.join(), serve::ServerEnd::CutShort);
  for (const serve::RequestRecord &record : server.records())
    EXPECT_TRUE(record.status == 503 ||
                record.error.find("shutting down") != std::string::npos)
        << record.status << " " << record.error;
  EXPECT_EQ(server.records().size(), 4u);
}

// A client that does not take its ending does not hold the server up.
TEST(HttpProtocolTest, endingsHaveADeadlineToo) {
  serve::ServerOptions options;
  options.drainTimeout = std::chrono::milliseconds(1);
  options.http.endingTimeout = std::chrono::milliseconds(1);
  RunningServer server(options);
  server.engine->isHeld = true;
  TestClient stream(server.port());
  stream.send(TestClient::post(
      "/v1/completions",
      R"({"prompt": "hi", "max_tokens": 100, "stream": true})"));
  ASSERT_TRUE(eventually([&] { return server.engine->active == 1; }));
  server.server().drain();
  EXPECT_EQ(server.join(), serve::ServerEnd::CutShort);
}

// Prompts are prepared beside each other: one that takes for ever does not hold
// up the next, nor do any number of large ones.
TEST(HttpProtocolTest, slowPromptsHoldUpNobody) {
  RunningServer server;
  server.engine->holdsChats = true;
  std::string slow = TestClient::post(
      "/v1/chat/completions", R"({"messages": [{"role": "user", "content": ")" +
                                  std::string(100'000, 'a') + "\"}]}");
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(slow);
  }
  ASSERT_TRUE(eventually([&] { return server.engine->chats >= 1; }));
  EXPECT_EQ(server.complete(", \"max_tokens\": 3").status, 200);
  server.engine->holdsChats = false;
  for (auto &client : clients)
    EXPECT_EQ(client->receive().status, 400) << "more than the context holds";
}

// What waits to be prepared is bounded as the queue is.
TEST(HttpProtocolTest, promptsThatWaitAreBounded) {
  serve::ServerOptions options;
  options.maxQueue = 2; // and 4 of the batch
  RunningServer server(options);
  server.engine->holdsChats = true;
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(TestClient::post(
        "/v1/chat/completions",
        R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1})"));
  }
  EXPECT_TRUE(eventually([&] { return server.records().size() >= 30; }));
  server.engine->holdsChats = false;
  int numRefused = 0;
  for (auto &client : clients) {
    TestResponse response = client->receive();
    numRefused += response.status == 503;
    EXPECT_TRUE(response.status == 200 || response.status == 503);
  }
  EXPECT_GE(numRefused, 30);
  EXPECT_LT(numRefused, 40);
}
