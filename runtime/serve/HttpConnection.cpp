#include "runtime/serve/HttpConnection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <poll.h>

namespace ingot::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// A refused client is given this long, and these bytes, to read its answer
// before the connection is reset under it.
constexpr std::chrono::milliseconds kLingerTimeout{2000};
constexpr std::size_t kLingerBytes = 4 << 20;
constexpr std::chrono::milliseconds kWatchInterval{100};

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

std::string httpDate() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

// Status and words for what the parser refuses.
std::pair<int, std::string> parseFailure(const error_code &error,
                                         const HttpOptions &options) {
  if (error == http::error::body_limit)
    return {413, "the body is longer than " +
                     std::to_string(options.maxBodyBytes) + " bytes"};
  if (error == http::error::header_limit)
    return {431, "the head is longer than " +
                     std::to_string(options.maxHeaderBytes) + " bytes"};
  return {400, "not HTTP/1.1: " + error.message()};
}

} // namespace

// Outlives its connection: what comes after the end has no effect.
class HttpConnection::Exchange : public HttpExchange {
public:
  Exchange(std::weak_ptr<HttpConnection> connection, HttpRequest request)
      : connection_(std::move(connection)), request_(std::move(request)) {}

  const HttpRequest &request() const override { return request_; }
  void respond(HttpResponse response) override {
    if (auto connection = open())
      connection->respond(response);
  }
  void beginStream(HttpResponse head) override {
    if (auto connection = open())
      connection->sendHead(head, /*isStream=*/true);
  }
  void write(std::string_view bytes) override {
    if (auto connection = open())
      connection->writeChunk(bytes);
  }
  void endStream() override {
    if (auto connection = open())
      connection->endStream();
  }
  void abort() override {
    if (auto connection = open())
      connection->close(ExchangeEnd::Aborted);
  }
  bool isOpen() const override { return !isOver_; }

  void end(ExchangeEnd reason) {
    if (isOver_)
      return;
    isOver_ = true;
    auto callback = std::move(onEnd);
    onEnd = nullptr;
    if (callback)
      callback(reason);
  }

private:
  std::shared_ptr<HttpConnection> open() const {
    return isOver_ ? nullptr : connection_.lock();
  }
  std::weak_ptr<HttpConnection> connection_;
  HttpRequest request_;
  bool isOver_ = false;
};

HttpConnection::HttpConnection(asio::ip::tcp::socket socket,
                               HttpContext &context)
    : socket_(std::move(socket)), timer_(socket_.get_executor()),
      watchTimer_(socket_.get_executor()), context_(context) {}

void HttpConnection::start() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  auto remote = socket_.remote_endpoint(ignored);
  if (!ignored)
    request_.remoteAddress = remote.address().to_string(ignored);
  enter(Phase::Idle);
  // A new connection has sent nothing yet: its head is due at once.
  setDeadline(context_.options.headTimeout);
  read();
}

void HttpConnection::refuse(int status, const std::string &message) {
  keepAlive_ = false;
  enter(Phase::Answering);
  respond(context_.handler.onRefusal(status, message));
}

void HttpConnection::drain() {
  keepAlive_ = false;
  if (phase_ == Phase::Idle)
    close(ExchangeEnd::Aborted);
}

bool HttpConnection::isUnanswered() const {
  return phase_ == Phase::Body ||
         (phase_ == Phase::Answering && exchange_ && !isAnswerEnded_);
}

void HttpConnection::refuseUnread() {
  if (phase_ == Phase::Head || phase_ == Phase::Body)
    refuse(503, "the server is shutting down");
}

void HttpConnection::close(ExchangeEnd reason) {
  if (phase_ == Phase::Closed)
    return;
  phase_ = Phase::Closed;
  auto self = shared_from_this();
  error_code ignored;
  timer_.cancel(ignored);
  watchTimer_.cancel(ignored);
  socket_.close(ignored);
  context_.connections.erase(self);
  endExchange(reason);
  context_.onConnectionClosed();
}

void HttpConnection::enter(Phase phase) {
  phase_ = phase;
  switch (phase) {
  case Phase::Idle:
    return setDeadline(context_.options.idleTimeout);
  case Phase::Head:
    return setDeadline(context_.options.headTimeout);
  case Phase::Body:
    return setDeadline(context_.options.bodyTimeout);
  case Phase::Lingering:
    return setDeadline(kLingerTimeout);
  case Phase::Answering: // has a limit only while bytes are not taken
  case Phase::Closed: {
    error_code ignored;
    timer_.cancel(ignored);
    return;
  }
  }
}

void HttpConnection::setDeadline(std::chrono::milliseconds delay) {
  timer_.expires_after(delay);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    // A timer that was set again after it had run out is not late.
    if (!error && self->timer_.expiry() <= std::chrono::steady_clock::now())
      self->onDeadline();
  });
}

void HttpConnection::onDeadline() {
  switch (phase_) {
  case Phase::Head:
    return refuse(408, "the head did not come in time");
  case Phase::Body:
    return refuse(408, "the body did not come in time");
  case Phase::Answering:
    if (isWriting_)
      close(ExchangeEnd::TooSlow);
    return;
  case Phase::Idle:
  case Phase::Lingering:
    return close(ExchangeEnd::Aborted);
  case Phase::Closed:
    return;
  }
}

void HttpConnection::read() {
  if (isReading_ || phase_ == Phase::Closed)
    return;
  // What a client sends ahead of its answers is kept to one request's head.
  std::size_t room = 16 * 1024;
  if (phase_ == Phase::Answering &&
      buffer_.size() >= context_.options.maxHeaderBytes)
    return watchForEnd();
  isReading_ = true;
  socket_.async_read_some(
      buffer_.prepare(room),
      [self = shared_from_this()](error_code error, std::size_t size) {
        self->isReading_ = false;
        if (self->phase_ == Phase::Closed)
          return;
        if (error)
          return self->close(ExchangeEnd::Disconnected);
        self->onRead(size);
      });
}

void HttpConnection::watchForEnd() {
  if (isWatching_)
    return;
  isWatching_ = true;
  watchTimer_.expires_after(kWatchInterval);
  watchTimer_.async_wait([self = shared_from_this()](error_code) {
    self->isWatching_ = false;
    if (self->phase_ != Phase::Answering)
      return;
    pollfd state{self->socket_.native_handle(), POLLRDHUP, 0};
    if (::poll(&state, 1, 0) > 0)
      return self->close(ExchangeEnd::Disconnected);
    self->read();
  });
}

void HttpConnection::onRead(std::size_t size) {
  if (phase_ == Phase::Lingering) {
    lingered_ += size;
    return lingered_ > kLingerBytes ? close(ExchangeEnd::Aborted) : read();
  }
  buffer_.commit(size);
  if (phase_ == Phase::Answering)
    return read();
  process();
}

void HttpConnection::process() {
  while (phase_ != Phase::Closed && parse())
    ;
  if (phase_ != Phase::Closed)
    read();
}

bool HttpConnection::parse() {
  if (phase_ != Phase::Idle && phase_ != Phase::Head && phase_ != Phase::Body)
    return false;
  if (buffer_.size() == 0)
    return false;
  if (phase_ == Phase::Idle) {
    parser_.emplace();
    parser_->header_limit(context_.options.maxHeaderBytes);
    parser_->body_limit(context_.options.maxBodyBytes);
    isHeadTaken_ = false;
    headBytes_ = 0;
    isHeadRequest_ = false;
    enter(Phase::Head);
  }
  error_code error;
  std::size_t taken = parser_->put(buffer_.data(), error);
  buffer_.consume(taken);
  // The parser's own limit is on what it has not taken yet, line by line.
  if (phase_ == Phase::Head) {
    headBytes_ += taken;
    if (headBytes_ > context_.options.maxHeaderBytes)
      error = http::error::header_limit;
  }
  if (error == http::error::need_more) {
    // Of a body all is taken but the line that a chunk begins with, and the
    // trailers, which the parser lets grow without end.
    if (phase_ == Phase::Body &&
        buffer_.size() > context_.options.maxHeaderBytes)
      refuse(431, "the head of a chunk, or what follows the last, is longer "
                  "than " +
                      std::to_string(context_.options.maxHeaderBytes) +
                      " bytes");
    return false;
  }
  if (error) {
    auto [status, message] = parseFailure(error, context_.options);
    refuse(status, message);
    return false;
  }
  if (parser_->is_header_done() && !isHeadTaken_) {
    isHeadTaken_ = true;
    if (!takeHead())
      return false;
    parser_->eager(true);
    enter(Phase::Body);
  }
  if (parser_->is_done()) {
    dispatch();
    return false;
  }
  return taken > 0;
}

bool HttpConnection::takeHead() {
  const auto &message = parser_->get();
  request_.method = std::string(view(message.method_string()));
  std::string_view target = view(message.target());
  request_.path = std::string(target.substr(0, target.find_first_of("?#")));
  request_.headers.clear();
  int hosts = 0;
  for (const auto &field : message) {
    hosts += field.name() == http::field::host;
    request_.headers.emplace_back(std::string(view(field.name_string())),
                                  std::string(view(field.value())));
  }
  isHttp10_ = message.version() == 10;
  isHeadRequest_ = message.method() == http::verb::head;
  keepAlive_ = parser_->keep_alive() && !context_.isDraining;

  auto refuseHead = [&](int status, const std::string &text) {
    refuse(status, text);
    return false;
  };
  if (message.version() != 11 && message.version() != 10)
    return refuseHead(400, "expected HTTP/1.1 or HTTP/1.0");
  if (!isHttp10_ && hosts != 1)
    return refuseHead(400, "expected one Host header, found " +
                               std::to_string(hosts));
  // Anything but plain chunks would be read as no body at all.
  if (!request_.header("Transfer-Encoding").empty() && !parser_->chunked())
    return refuseHead(501, "Transfer-Encoding: only chunked is understood");
  std::string_view expectation = request_.header("Expect");
  if (!expectation.empty() && expectation != "100-continue")
    return refuseHead(400, "Expect: only 100-continue is understood");

  if (auto response = context_.handler.onHead(request_)) {
    // The body, if any, is not read: what follows cannot be told from it.
    if (!parser_->is_done())
      keepAlive_ = false;
    enter(Phase::Answering);
    respond(*response);
    return false;
  }
  if (!expectation.empty() && !isHttp10_ && !parser_->is_done())
    send("HTTP/1.1 100 Continue\r\n\r\n");
  return true;
}

void HttpConnection::dispatch() {
  HttpRequest request = request_;
  request.body = std::move(parser_->get().body());
  parser_.reset();
  enter(Phase::Answering);
  exchange_ = std::make_shared<Exchange>(weak_from_this(), std::move(request));
  auto exchange = exchange_;
  read();
  context_.handler.onRequest(exchange);
}

void HttpConnection::sendHead(const HttpResponse &response, bool isStream) {
  if (phase_ != Phase::Answering)
    return;
  keepAlive_ = keepAlive_ && !context_.isDraining;
  mostPending_ = context_.options.maxPendingBytes;
  isChunked_ = isStream && !isHttp10_;
  if (isStream && isHttp10_)
    keepAlive_ = false; // its end is the connection's
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     reasonPhrase(response.status) + "\r\n";
  auto add = [&](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  add("Date", httpDate());
  if (!response.contentType.empty())
    add("Content-Type", response.contentType);
  for (const auto &[name, value] : response.headers)
    add(name, value);
  if (isChunked_)
    add("Transfer-Encoding", "chunked");
  else if (!isStream)
    add("Content-Length", std::to_string(response.body.size()));
  add("Connection", keepAlive_ ? "keep-alive" : "close");
  head += "\r\n";
  if (!isStream && !isHeadRequest_)
    head += response.body;
  send(head);
}

void HttpConnection::respond(const HttpResponse &response) {
  if (phase_ != Phase::Answering)
    return;
  isAnswerEnded_ = true;
  sendHead(response, /*isStream=*/false);
}

void HttpConnection::writeChunk(std::string_view bytes) {
  if (phase_ != Phase::Answering || bytes.empty() || isAnswerEnded_)
    return;
  // A long piece (the echo of a prompt with its log-probabilities) is not the
  // client's slowness.
  mostPending_ = std::max(mostPending_, 2 * bytes.size());
  if (isChunked_) {
    char size[24];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    std::string chunk = size;
    chunk.append(bytes).append("\r\n");
    send(chunk);
  } else {
    send(bytes);
  }
  if (pendingBytes() > mostPending_)
    close(ExchangeEnd::TooSlow);
}

void HttpConnection::endStream() {
  if (phase_ != Phase::Answering || isAnswerEnded_)
    return;
  isAnswerEnded_ = true;
  if (isChunked_)
    send("0\r\n\r\n");
  else if (!isWriting_)
    finishAnswer();
}

void HttpConnection::send(std::string_view bytes) {
  waiting_ += bytes;
  writeSome();
}

void HttpConnection::writeSome() {
  if (isWriting_ || phase_ == Phase::Closed)
    return;
  if (sent_ == sending_.size()) {
    sending_.clear();
    sending_.swap(waiting_);
    sent_ = 0;
  }
  if (sending_.empty()) {
    if (phase_ == Phase::Answering && isAnswerEnded_)
      finishAnswer();
    return;
  }
  isWriting_ = true;
  if (phase_ == Phase::Answering)
    setDeadline(context_.options.writeTimeout);
  socket_.async_write_some(
      asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
      [self = shared_from_this()](error_code error, std::size_t size) {
        self->isWriting_ = false;
        if (self->phase_ == Phase::Closed)
          return;
        if (error)
          return self->close(ExchangeEnd::Disconnected);
        self->sent_ += size;
        if (self->phase_ == Phase::Answering) {
          error_code ignored;
          self->timer_.cancel(ignored);
        }
        self->writeSome();
      });
}

void HttpConnection::finishAnswer() {
  isAnswerEnded_ = false;
  if (!keepAlive_) {
    error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    enter(Phase::Lingering);
    endExchange(ExchangeEnd::Complete);
    if (phase_ == Phase::Lingering)
      read();
    return;
  }
  parser_.reset();
  enter(Phase::Idle);
  endExchange(ExchangeEnd::Complete);
  if (phase_ != Phase::Idle)
    return;
  if (context_.isDraining)
    return close(ExchangeEnd::Aborted);
  // Through the loop, so that a pipeline of requests does not nest.
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->phase_ == Phase::Idle)
      self->process();
  });
}

void HttpConnection::endExchange(ExchangeEnd end) {
  if (auto exchange = std::move(exchange_)) {
    exchange_ = nullptr;
    exchange->end(end);
  }
}

} // namespace ingot::serve
