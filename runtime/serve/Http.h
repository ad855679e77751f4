// HTTP as the rest of the server sees it: a request that has come whole, and
// an exchange through which it is answered, at once or piece by piece. The
// transport (HttpServer.cpp) is the only file that knows sockets.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::serve {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;
  std::string path; // without the query
  Headers headers;  // names as they came
  std::string body;
  std::string remoteAddress;

  // The first of that name, letter case apart; empty where there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  Headers headers; // beside Content-Length, Connection and Date
  std::string contentType = "application/json";
  std::string body;
};

const char *reasonPhrase(int status);

// How an exchange came to its end.
enum class ExchangeEnd {
  Complete,     // all was handed to the system
  Disconnected, // the client went away first
  TooSlow,      // the client did not take what was sent
  Aborted,      // by abort(), or the server closed
};
const char *exchangeEndName(ExchangeEnd end);

// One request's answer. Used on the I/O thread only; outlives its connection.
class HttpExchange {
public:
  virtual ~HttpExchange() = default;

  virtual const HttpRequest &request() const = 0;

  // Either the whole answer, or begin, any number of writes, and end.
  virtual void respond(HttpResponse response) = 0;
  virtual void beginStream(HttpResponse head) = 0;
  virtual void write(std::string_view bytes) = 0;
  virtual void endStream() = 0;
  // Closes the connection, so that the client sees the answer cut.
  virtual void abort() = 0;

  virtual bool isOpen() const = 0;

  // Called once, on the I/O thread, when nothing more will be sent.
  std::function<void(ExchangeEnd)> onEnd;
};

// What the transport asks of the server.
class HttpHandler {
public:
  virtual ~HttpHandler() = default;
  // The head has come, the body has not. An answer here refuses the request
  // before its body is read.
  virtual std::unique_ptr<HttpResponse> onHead(const HttpRequest &request) = 0;
  virtual void onRequest(std::shared_ptr<HttpExchange> exchange) = 0;
  // What the transport refuses by itself (400, 408, 413, 431, 503).
  virtual HttpResponse onRefusal(int status, const std::string &message) = 0;
};

} // namespace ingot::serve
