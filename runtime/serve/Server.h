// `ingot serve`: models behind OpenAI's API. Three kinds of threads: the
// caller's does I/O, some prepare requests, and each model has one for its
// engine. Only the I/O thread knows of connections.
#pragma once

#include "runtime/serve/ClientKeys.h"
#include "runtime/serve/EngineLoop.h"
#include "runtime/serve/HttpServer.h"
#include "runtime/serve/RequestLog.h"
#include "runtime/serve/ServedEncoder.h"
#include "runtime/serve/ServedModel.h"
#include "runtime/support/Status.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ingot::serve {

struct ServerOptions {
  HttpOptions http;
  std::vector<ApiKey> keys;  // none: everyone may ask
  int requestsPerMinute = 0; // for each client; 0: no limit
  int maxQueue = 256;        // sequences that may wait, for each model
  std::chrono::milliseconds drainTimeout{30'000};
  std::chrono::milliseconds stallTimeout{60'000}; // of /health
  // Called on the I/O thread for each request that has ended, and with
  // messages of the server itself.
  std::function<void(const RequestRecord &)> onRecord;
  std::function<void(const std::string &)> onMessage;
};

class Server {
public:
  // Listens. Refuses two models of one id, whether they generate or encode.
  static Result<std::unique_ptr<Server>>
  create(std::vector<std::unique_ptr<ServedModel>> models,
         const ServerOptions &options,
         std::vector<std::unique_ptr<ServedEncoder>> encoders = {});
  ~Server();

  std::uint16_t port() const;

  // On the calling thread, until drained.
  ServerEnd run();
  void drain(); // from any thread

private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace ingot::serve
