// One connection: reads requests one after another, hands each over, sends its
// answer. At most one read and one write are under way; while a request is
// answered the read goes on, which is how a client that leaves is noticed; of one
// that sends too far ahead to be read on, the socket is asked now and then.
#pragma once

#include "runtime/serve/HttpServer.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

namespace ingot::serve {

class HttpConnection;

// What the connections of a server share.
struct HttpContext {
  const HttpOptions &options;
  HttpHandler &handler;
  std::unordered_set<std::shared_ptr<HttpConnection>> connections;
  bool isDraining = false;
  std::function<void()> onConnectionClosed;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
public:
  HttpConnection(boost::asio::ip::tcp::socket socket, HttpContext &context);

  void start();
  // Answers without reading, and closes.
  void refuse(int status, const std::string &message);
  // Closes where no request is under way; else after its answer.
  void drain();
  // Has a request begun to come that has no whole answer yet? A head that has
  // not come whole is no request.
  bool isUnanswered() const;
  // Of a request that has not come whole: 503.
  void refuseUnread();
  void close(ExchangeEnd reason);

private:
  class Exchange;
  enum class Phase { Idle, Head, Body, Answering, Lingering, Closed };
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;

  void enter(Phase phase);
  void setDeadline(std::chrono::milliseconds delay);
  void onDeadline();
  void read();
  void watchForEnd(); // in place of a read
  void onRead(std::size_t size);
  void process();
  bool parse();    // false: more bytes are needed, or an answer is under way
  bool takeHead(); // false: refused
  void dispatch();

  // For the exchange.
  void sendHead(const HttpResponse &response, bool isStream);
  void respond(const HttpResponse &response);
  void writeChunk(std::string_view bytes);
  void endStream();
  void send(std::string_view bytes);
  void writeSome();
  void finishAnswer();
  void endExchange(ExchangeEnd end);
  std::size_t pendingBytes() const {
    return sending_.size() - sent_ + waiting_.size();
  }

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer watchTimer_;
  HttpContext &context_;
  Phase phase_ = Phase::Idle;
  bool isReading_ = false, isWriting_ = false, isWatching_ = false;
  bool isHeadTaken_ = false;
  std::size_t headBytes_ = 0; // of the request that is being read
  bool keepAlive_ = true;     // after this answer
  bool isHttp10_ = false;
  bool isHeadRequest_ = false;  // HEAD: no body in the answer
  bool isChunked_ = false;      // the answer is
  std::size_t mostPending_ = 0; // of a stream, before it is cut
  bool isAnswerEnded_ = false;
  std::size_t lingered_ = 0;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpRequest request_;
  std::shared_ptr<Exchange> exchange_;
  std::string sending_, waiting_;
  std::size_t sent_ = 0;
};

} // namespace ingot::serve
