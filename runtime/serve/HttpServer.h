// The transport: accepts connections on one I/O thread and speaks HTTP/1.1 on
// them without ever blocking. Every wait has a limit: for a head, for a body,
// between requests, for a client to take what is sent. A client that closes
// its side while it waits for an answer is gone.
#pragma once

#include "runtime/serve/Http.h"
#include "runtime/support/Status.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ingot::serve {

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080; // 0: any that is free
  std::size_t maxConnections = 1024;
  std::uint32_t maxHeaderBytes = 16 * 1024;
  std::uint64_t maxBodyBytes = 8 * 1024 * 1024;
  // Of a stream, not yet taken by the client: more, and it is cut.
  std::size_t maxPendingBytes = 256 * 1024;
  std::chrono::milliseconds headTimeout{10'000};
  std::chrono::milliseconds bodyTimeout{60'000};
  std::chrono::milliseconds idleTimeout{75'000};
  // Without a byte taken.
  std::chrono::milliseconds writeTimeout{30'000};
  // After a drain's deadline: for the endings that it sends.
  std::chrono::milliseconds endingTimeout{3'000};
  // SIGINT and SIGTERM: the first drains, the second ends run() at once.
  bool handleSignals = false;
};

// How run() came to its end.
enum class ServerEnd {
  Drained,     // every request had its answer
  CutShort,    // the drain's deadline ended some, each with an error
  Interrupted, // a second signal ended it at once
};

class HttpServer {
public:
  // Binds and listens; nothing is accepted before run(). The handler outlives
  // the server.
  static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions &options,
                                                    HttpHandler &handler);
  ~HttpServer();

  const std::string &host() const;
  std::uint16_t port() const;

  // Serves on the calling thread until drained or stopped.
  ServerEnd run();

  // From any thread: runs `work` on the I/O thread.
  void post(std::function<void()> work);

  // From any thread. Accepts no more, closes connections without a request,
  // and ends run() when the others are answered. At the deadline
  // onDrainDeadline and 503 for what has not come whole answer the rest.
  void drain(std::chrono::milliseconds deadline);
  // Called once, on the I/O thread, when draining begins; the signal's name or
  // empty. Returns the deadline for what drains by a signal.
  std::function<std::chrono::milliseconds(const std::string &signal)> onDrain;
  // Called once, on the I/O thread, at the drain's deadline with the number of
  // requests without a whole answer; ends the exchanges that are under way.
  std::function<void(std::size_t numOpen)> onDrainDeadline;
  // After run(): closes every connection, which ends its exchange.
  void close();

  bool isDraining() const;
  std::size_t numConnections() const; // on the I/O thread

private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace ingot::serve
