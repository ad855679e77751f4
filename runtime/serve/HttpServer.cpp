#include "runtime/serve/HttpServer.h"

#include "runtime/serve/HttpConnection.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include <atomic>
#include <csignal>

namespace ingot::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Out of file descriptors: they come back as connections close.
constexpr std::chrono::milliseconds kAcceptPause{100};

} // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions &wanted, HttpHandler &handler)
      : options(wanted), context{options, handler, {}, false, {}} {
    context.onConnectionClosed = [this] { finishIfDrained(); };
  }

  void accept();
  void drain(std::chrono::milliseconds deadline);
  void endAtDeadline();
  void stop();
  void finishIfDrained();
  void waitForSignal(std::function<std::chrono::milliseconds(int)> onFirst);

  HttpOptions options;
  asio::io_context io{1};
  HttpContext context;
  tcp::acceptor acceptor{io};
  asio::steady_timer acceptPause{io};
  asio::steady_timer drainTimer{io};
  asio::signal_set signals{io};
  std::uint16_t port = 0;
  std::atomic<bool> isDraining{false};
  ServerEnd end = ServerEnd::Drained;
  std::function<void(std::size_t)> onDeadline;
};

void HttpServer::Impl::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (!acceptor.is_open())
      return;
    if (error) {
      acceptPause.expires_after(kAcceptPause);
      acceptPause.async_wait([this](error_code cancelled) {
        if (!cancelled && acceptor.is_open())
          accept();
      });
      return;
    }
    // Far beyond the limit there is not even a word.
    if (context.connections.size() >= 2 * options.maxConnections)
      return accept();
    bool isFull = context.connections.size() >= options.maxConnections;
    auto connection =
        std::make_shared<HttpConnection>(std::move(socket), context);
    context.connections.insert(connection);
    if (isFull)
      connection->refuse(503, "all " + std::to_string(options.maxConnections) +
                                  " connections are taken");
    else
      connection->start();
    accept();
  });
}

void HttpServer::Impl::drain(std::chrono::milliseconds deadline) {
  if (isDraining.exchange(true))
    return;
  context.isDraining = true;
  error_code ignored;
  acceptor.close(ignored);
  acceptPause.cancel(ignored);
  drainTimer.expires_after(deadline);
  drainTimer.async_wait([this](error_code cancelled) {
    if (!cancelled)
      endAtDeadline();
  });
  auto connections = context.connections;
  for (const auto &connection : connections)
    connection->drain();
  finishIfDrained();
}

// Who still waits is told; then only their taking of it is waited for.
void HttpServer::Impl::endAtDeadline() {
  auto connections = context.connections;
  std::size_t numOpen = 0;
  for (const auto &connection : connections)
    numOpen += connection->isUnanswered();
  if (numOpen > 0)
    end = ServerEnd::CutShort;
  drainTimer.expires_after(options.endingTimeout);
  drainTimer.async_wait([this](error_code cancelled) {
    if (!cancelled)
      stop();
  });
  if (onDeadline)
    onDeadline(numOpen);
  for (const auto &connection : connections)
    connection->refuseUnread();
}

void HttpServer::Impl::finishIfDrained() {
  if (context.isDraining && context.connections.empty())
    io.stop();
}

void HttpServer::Impl::stop() {
  error_code ignored;
  acceptor.close(ignored);
  auto connections = context.connections;
  for (const auto &connection : connections)
    connection->close(ExchangeEnd::Aborted);
  io.stop();
}

void HttpServer::Impl::waitForSignal(
    std::function<std::chrono::milliseconds(int)> onFirst) {
  signals.async_wait([this, onFirst](error_code cancelled, int which) {
    if (cancelled)
      return;
    if (isDraining) {
      end = ServerEnd::Interrupted;
      return stop();
    }
    waitForSignal(onFirst);
    drain(onFirst(which));
  });
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { close(); }

Result<std::unique_ptr<HttpServer>>
HttpServer::listen(const HttpOptions &options, HttpHandler &handler) {
  auto impl = std::make_unique<Impl>(options, handler);
  std::string where = options.host + ":" + std::to_string(options.port);
  error_code error;
  tcp::resolver resolver(impl->io);
  auto found = resolver.resolve(options.host, std::to_string(options.port),
                                tcp::resolver::passive, error);
  if (error || found.empty())
    return Status::invalid(where +
                           ": not an address to listen on: " + error.message());
  tcp::endpoint endpoint = found.begin()->endpoint();
  impl->acceptor.open(endpoint.protocol(), error);
  if (!error)
    impl->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error)
    impl->acceptor.bind(endpoint, error);
  if (!error)
    impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return Status::io(where + ": cannot listen: " + error.message());
  impl->port = impl->acceptor.local_endpoint(error).port();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

const std::string &HttpServer::host() const { return impl_->options.host; }
std::uint16_t HttpServer::port() const { return impl_->port; }

ServerEnd HttpServer::run() {
  if (impl_->options.handleSignals) {
    error_code ignored;
    impl_->signals.add(SIGINT, ignored);
    impl_->signals.add(SIGTERM, ignored);
    impl_->waitForSignal([this](int which) {
      return onDrain ? onDrain(which == SIGINT ? "SIGINT" : "SIGTERM")
                     : std::chrono::milliseconds(0);
    });
  }
  impl_->onDeadline = onDrainDeadline;
  impl_->accept();
  impl_->io.run();
  return impl_->end;
}

void HttpServer::post(std::function<void()> work) {
  asio::post(impl_->io, std::move(work));
}

void HttpServer::drain(std::chrono::milliseconds deadline) {
  post([this, deadline] {
    if (!impl_->isDraining && onDrain)
      (void)onDrain("");
    impl_->drain(deadline);
  });
}

void HttpServer::close() { impl_->stop(); }

bool HttpServer::isDraining() const { return impl_->isDraining; }

std::size_t HttpServer::numConnections() const {
  return impl_->context.connections.size();
}

} // namespace ingot::serve
