// Clients that mean harm: lies about lengths, floods of every kind, depth,
// bytes that are no text, and five hundred connections at once. Others are
// served throughout, and nothing is left behind.
#include "test/runtime/serve/RunningServer.h"

#include <gmock/gmock.h>

using namespace ingot;
using namespace ingot::test;
using ::testing::HasSubstr;
using Json = nlohmann::json;

namespace {

const std::string kBody = R"({"prompt": "hi", "max_tokens": 3})";

std::string head(const std::string &fields) {
  return "POST /v1/completions HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

void expectServing(RunningServer &server) {
  TestResponse response = server.post("/v1/completions", kBody);
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.json()["choices"][0]["text"], "abc");
}

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  for (; count > 0; --count)
    text += piece;
  return text;
}

} // namespace

// The body is as long as the head says: less is JSON cut off, and what is over
// is the next request, which is none.
TEST(HostileClientTest, lengthsThatLie) {
  RunningServer server;
  for (std::size_t claimed :
       {std::size_t(0), std::size_t(1), kBody.size() - 1, kBody.size() - 2}) {
    TestClient client(server.port());
    client.send(head("Content-Length: " + std::to_string(claimed) + "\r\n") +
                kBody + "\r\n\r\n");
    EXPECT_EQ(client.receive().status, 400) << claimed;
    EXPECT_EQ(client.receive().status, 400) << claimed;
    EXPECT_TRUE(client.isClosedByPeer());
  }
  for (const char *length :
       {"18446744073709551616", "18446744073709551615", "9223372036854775807",
        "-0", "+5", "0x5", "5 5", "5,5", "", " ", "1e3", "٣"}) {
    TestClient client(server.port());
    client.send(head(std::string("Content-Length: ") + length + "\r\n") +
                kBody);
    TestResponse response = client.receive();
    EXPECT_TRUE(response.status == 400 || response.status == 413)
        << "'" << length << "': " << response.status;
    EXPECT_TRUE(client.isClosedByPeer()) << length;
  }
  // Longer than what comes, and then nothing more ever.
  TestClient half(server.port());
  half.send(head("Content-Length: 1000\r\n") + kBody);
  half.halfClose();
  EXPECT_TRUE(half.isClosedByPeer());
  EXPECT_EQ(server.engine->submitted, 0);
  expectServing(server);
}

TEST(HostileClientTest, chunksThatLie) {
  RunningServer server;
  const std::string chunked = head("Transfer-Encoding: chunked\r\n");
  for (const std::string &body :
       {std::string("-1\r\n"), std::string("ffffffffffffffffff\r\n"),
        std::string("ffffffffffffffff\r\nx\r\n"), std::string("5\nhello\r\n"),
        std::string("2\r\nhello\r\n"), std::string("\r\n"),
        std::string(" 2\r\nhi\r\n"), std::string("2 x\r\nhi\r\n"),
        // An extension and a trailer without end.
        "1;x=" + std::string(100000, 'x'),
        "0\r\n" + repeated("X: y\r\n", 20000) + "\r\n"}) {
    TestClient client(server.port());
    client.send(chunked + body);
    int status = client.receive().status;
    EXPECT_TRUE(status == 400 || status == 413 || status == 431)
        << body.substr(0, 30) << ": " << status;
    EXPECT_TRUE(client.isClosedByPeer()) << body.substr(0, 30);
  }
  expectServing(server);
}

TEST(HostileClientTest, floodsOfHeaders) {
  RunningServer server;
  for (const std::string &fields :
       {repeated("A: b\r\n", 5000), "A: " + std::string(1 << 20, 'b') + "\r\n",
        std::string(1 << 20, 'A') + ": b\r\n", repeated("A:\r\n", 100000)}) {
    TestClient client(server.port());
    client.send("GET /version HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
    EXPECT_EQ(client.receive().status, 431);
    EXPECT_TRUE(client.isClosedByPeer());
  }
  TestClient line(server.port());
  line.send("GET /" + std::string(1 << 20, 'x') + " HTTP/1.1\r\n");
  EXPECT_EQ(line.receive().status, 431);
  expectServing(server);
}

// Thousands of requests ahead of their answers, none of which is read: what
// has come is kept to a head's length, the rest waits in the network.
TEST(HostileClientTest, pipelinesThatNobodyReads) {
  RunningServer server;
  std::vector<std::unique_ptr<TestClient>> clients;
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port(), 4096));
    senders.emplace_back([&client = *clients.back()] {
      client.send(repeated(TestClient::get("/metrics"), 20000));
    });
  }
  for (int i = 0; i < 20; ++i)
    expectServing(server);
  for (auto &client : clients)
    client->abort();
  for (std::thread &sender : senders)
    sender.join();
  clients.clear();
  EXPECT_TRUE(eventually([&] {
    return server.get("/metrics").body.find("ingot_http_connections 1\n") !=
           std::string::npos;
  }));
}

// As deep as a body may be long, in every place that takes JSON.
TEST(HostileClientTest, depth) {
  RunningServer server;
  for (const char *opening : {"[", "{\"a\":", "[{\"a\":["})
    for (const char *field :
         {"prompt", "logit_bias", "stop", "stream_options", "messages",
          "chat_template_kwargs", "response_format", "no_such_field"})
      for (std::size_t depth : {100u, 10000u}) {
        std::string body =
            std::string("{\"") + field + "\": " + repeated(opening, depth);
        for (const char *path : {"/v1/completions", "/v1/chat/completions",
                                 "/tokenize", "/detokenize"})
          EXPECT_EQ(server.post(path, body).status, 400) << field << depth;
      }
  // Closed again, so that it is valid.
  std::string closed = repeated("[", 3000000) + repeated("]", 3000000);
  EXPECT_EQ(server
                .post("/v1/chat/completions",
                      R"({"messages": [{"role": "user", "content": "x"}],
                     "chat_template_kwargs": {"a": )" +
                          closed + "}}")
                .status,
            400);
  expectServing(server);
}

// Wide rather than deep.
TEST(HostileClientTest, width) {
  RunningServer server;
  for (const std::string &body :
       {"{\"prompt\": [" + repeated("[],", 1000000) + "[]]}",
        "{\"prompt\": [" + repeated("1,", 2000000) + "1]}",
        "{\"prompt\": [" + repeated("\"\",", 1000000) + "\"\"]}",
        "{\"prompt\": \"x\", \"stop\": [" + repeated("\"a\",", 500000) +
            "\"a\"]}",
        "{\"prompt\": \"" + std::string(7000000, 'x') + "\"}",
        "{\"prompt\": \"" + repeated("\\u0000", 1000000) + "\"}",
        "{\"prompt\": \"x\", \"user\": \"" + std::string(7000000, 'x') +
            "\", "
            "\"temperature\": 5000}"}) {
    TestResponse response = server.post("/v1/completions", body);
    EXPECT_EQ(response.status, 400) << body.substr(0, 40);
    EXPECT_LT(response.body.size(), 2000u) << "an answer as long as the attack";
  }
  std::string keys = "{\"prompt\": \"x\"";
  for (int i = 0; i < 200000; ++i)
    keys += ", \"k" + std::to_string(i) + "\": 1";
  TestResponse response = server.post("/v1/completions", keys + "}");
  EXPECT_EQ(response.status, 400);
  EXPECT_LT(response.body.size(), 2000u);
  expectServing(server);
}

// Bytes that are no UTF-8, wherever text is taken.
TEST(HostileClientTest, brokenText) {
  RunningServer server;
  for (const char *bytes :
       {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88",
        "\xff", "\xe2\x82", "a\xf0\x9f\x98"})
    for (const char *place :
         {"{\"prompt\": \"%\"}", "{\"prompt\": [\"%\"]}",
          "{\"prompt\": \"x\", \"stop\": \"%\"}",
          "{\"prompt\": \"x\", \"user\": \"%\"}",
          "{\"prompt\": \"x\", \"cache_salt\": \"%\"}",
          "{\"prompt\": \"x\", \"model\": \"%\"}",
          "{\"prompt\": \"x\", \"%\": 1}",
          "{\"messages\": [{\"role\": \"user\", \"content\": \"%\"}]}",
          "{\"messages\": [{\"role\": \"%\", \"content\": \"x\"}]}"}) {
      std::string body = place;
      body.replace(body.find('%'), 1, bytes);
      for (const char *path : {"/v1/completions", "/v1/chat/completions"}) {
        TestResponse response = server.post(path, body);
        EXPECT_TRUE(response.status == 400 || response.status == 404) << body;
        EXPECT_TRUE(response.json().contains("error")) << body;
      }
    }
  // In a head they may come, and come out as nothing that breaks a line.
  for (const char *bytes : {"\xff\xfe", "\xc3\xa9", "\x1b[2J"}) {
    std::string fields = std::string("X-Request-Id: ") + bytes +
                         "\r\nAuthorization: Bearer " + bytes + "\r\n";
    TestResponse response = server.get("/version", fields);
    EXPECT_TRUE(response.status == 200 || response.status == 400);
    EXPECT_EQ(response.headers["x-request-id"].find(bytes), std::string::npos);
  }
  expectServing(server);
}

// Half a request on each of five hundred connections; others are served, and
// when the other halves come, so are these.
TEST(HostileClientTest, fiveHundredConnections) {
  RunningServer server;
  const std::string request = TestClient::post("/v1/completions", kBody);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (std::size_t i = 0; i < 500; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    ASSERT_TRUE(clients[i]->send(request.substr(0, i % request.size())));
    if (i % 100 == 0)
      expectServing(server);
  }
  int answered = 0, refused = 0;
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (i % 5 == 4)
      clients[i].reset();
    else
      ASSERT_TRUE(clients[i]->send(request.substr(i % request.size())));
  for (auto &client : clients)
    if (client) {
      TestResponse response = client->receive();
      answered += response.status == 200;
      refused += response.status == 503; // the queue is bounded
    }
  EXPECT_EQ(answered + refused, 400);
  EXPECT_GT(answered, 200);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server.engine->active == 0; }));
  EXPECT_TRUE(eventually([&] {
    return server.get("/metrics").body.find("ingot_http_connections 1\n") !=
           std::string::npos;
  }));
  expectServing(server);
}

// Every place at which a stream can be left, by an end and by a reset.
TEST(HostileClientTest, streamsLeftAnywhere) {
  RunningServer server;
  server.engine->stepMicros = 300;
  const std::string request = TestClient::post(
      "/v1/completions",
      R"({"prompt": "hi", "max_tokens": 4000, "stream": true, "n": 2})");
  for (int i = 0; i < 60; ++i) {
    TestClient client(server.port());
    client.send(request);
    if (i % 3)
      client.receiveUntil(i % 3 == 1 ? "HTTP" : "data: ");
    std::this_thread::sleep_for(std::chrono::microseconds(i * 40));
    if (i % 2)
      client.abort();
    else
      client.close();
  }
  EXPECT_TRUE(eventually([&] { return server.engine->active == 0; }));
  expectServing(server);
}

// A HEAD request leaves nothing over for the request that follows.
TEST(HostileClientTest, badRequestAfterHead) {
  RunningServer server;
  TestClient client(server.port());
  client.send("HEAD /version HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.receiveUntil("\r\n\r\n"), HasSubstr("200 OK"));
  client.clear();
  client.send("nonsense\r\n\r\n");
  TestResponse response = client.receive();
  EXPECT_EQ(response.status, 400);
  EXPECT_TRUE(response.json().contains("error")) << response.body;
}
