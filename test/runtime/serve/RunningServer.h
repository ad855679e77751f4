// A server on a free port and a thread of its own, over fake models.
#pragma once

#include "runtime/serve/Server.h"
#include "test/runtime/serve/FakeModel.h"
#include "test/runtime/serve/TestClient.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ingot::test {

class RunningServer {
public:
  explicit RunningServer(serve::ServerOptions options = {},
                         std::vector<std::string> names = {"fake"}) {
    options.http.port = 0;
    options.onRecord = [this](const serve::RequestRecord &record) {
      std::lock_guard lock(mutex_);
      records_.push_back(record);
    };
    std::vector<std::unique_ptr<serve::ServedModel>> models;
    for (const std::string &name : names)
      models.push_back(std::make_unique<FakeModel>(name, engine));
    start(std::move(models), options);
  }
  RunningServer(
      std::vector<std::unique_ptr<serve::ServedModel>> models,
      serve::ServerOptions options,
      std::vector<std::unique_ptr<serve::ServedEncoder>> encoders = {}) {
    options.http.port = 0;
    options.onRecord = [this](const serve::RequestRecord &record) {
      std::lock_guard lock(mutex_);
      records_.push_back(record);
    };
    start(std::move(models), options, std::move(encoders));
  }
  ~RunningServer() {
    engine->isHeld = false;
    engine->holdsChats = false;
    if (thread_.joinable()) {
      server_->drain();
      thread_.join();
    }
  }

  std::uint16_t port() const { return server_->port(); }
  serve::Server &server() { return *server_; }
  serve::ServerEnd join() {
    thread_.join();
    return end_;
  }

  TestResponse post(const std::string &path, const std::string &body,
                    const std::string &headers = "") {
    return ask(port(), TestClient::post(path, body, headers));
  }
  TestResponse get(const std::string &path, const std::string &headers = "") {
    return ask(port(), TestClient::get(path, headers));
  }
  TestResponse complete(const std::string &fields) {
    return post("/v1/completions", "{\"prompt\": \"hi\"" + fields + "}");
  }
  TestResponse chat(const std::string &fields) {
    return post("/v1/chat/completions",
                "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]" +
                    fields + "}");
  }

  std::vector<serve::RequestRecord> records() {
    std::lock_guard lock(mutex_);
    return records_;
  }

  std::shared_ptr<FakeEngineState> engine = std::make_shared<FakeEngineState>();

private:
  void start(std::vector<std::unique_ptr<serve::ServedModel>> models,
             const serve::ServerOptions &options,
             std::vector<std::unique_ptr<serve::ServedEncoder>> encoders = {}) {
    auto made =
        serve::Server::create(std::move(models), options, std::move(encoders));
    if (!made) {
      ADD_FAILURE() << made.status().message();
      std::abort();
    }
    server_ = std::move(*made);
    thread_ = std::thread([this] { end_ = server_->run(); });
  }

  std::mutex mutex_;
  std::vector<serve::RequestRecord> records_;
  std::unique_ptr<serve::Server> server_;
  std::thread thread_;
  serve::ServerEnd end_ = serve::ServerEnd::Interrupted;
};

// Waits up to ten seconds for what other threads bring about.
inline bool eventually(const std::function<bool()> &holds) {
  for (int i = 0; i < 10000; ++i) {
    if (holds())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

} // namespace ingot::test
