#include "test/runtime/serve/TestClient.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace ingot::test {

nlohmann::json TestResponse::json() const {
  return nlohmann::json::parse(body, nullptr, false);
}

std::vector<std::string> TestResponse::events() const {
  std::vector<std::string> list;
  std::size_t at = 0;
  while ((at = body.find("data: ", at)) != std::string::npos) {
    std::size_t end = body.find("\n\n", at);
    list.push_back(body.substr(at + 6, end - at - 6));
    if (end == std::string::npos)
      break;
    at = end;
  }
  return list;
}

TestClient::TestClient(std::uint16_t port, int receiveBufferBytes) {
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  if (receiveBufferBytes > 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receiveBufferBytes,
                 sizeof receiveBufferBytes);
  timeval timeout{20, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr *>(&address),
                sizeof address) != 0)
    close();
}

TestClient::~TestClient() { close(); }

void TestClient::close() {
  if (socket_ >= 0)
    ::close(socket_);
  socket_ = -1;
}

void TestClient::abort() {
  linger hard{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::shutdown(socket_, SHUT_RDWR);
}

void TestClient::halfClose() { ::shutdown(socket_, SHUT_WR); }

bool TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes.remove_prefix(std::size_t(sent));
  }
  return true;
}

bool TestClient::fill() {
  char bytes[16384];
  ssize_t size = socket_ < 0 ? 0 : ::recv(socket_, bytes, sizeof bytes, 0);
  if (size <= 0)
    return false;
  buffer_.append(bytes, std::size_t(size));
  return true;
}

std::string TestClient::receiveUntil(std::string_view text) {
  while (buffer_.find(text) == std::string::npos)
    if (!fill())
      break;
  return buffer_;
}

bool TestClient::isClosedByPeer() {
  while (fill())
    ;
  char byte;
  return socket_ < 0 || ::recv(socket_, &byte, 1, MSG_DONTWAIT) == 0;
}

TestResponse TestClient::receive() {
  TestResponse response;
  for (;;) {
    while (buffer_.find("\r\n\r\n") == std::string::npos)
      if (!fill())
        return response;
    if (buffer_.rfind("HTTP/1.1 100", 0) != 0)
      break;
    buffer_.erase(0, buffer_.find("\r\n\r\n") + 4);
  }
  std::size_t end = buffer_.find("\r\n\r\n");
  std::string head = buffer_.substr(0, end);
  buffer_.erase(0, end + 4);
  response.status = std::atoi(head.c_str() + 9);
  for (std::size_t at = head.find("\r\n"); at != std::string::npos;) {
    std::size_t next = head.find("\r\n", at + 2);
    std::string line = head.substr(at + 2, next - at - 2);
    std::size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    for (char &c : name)
      c = char(std::tolower(c));
    response.headers[name] = line.substr(colon + 2);
    at = next;
  }
  if (response.headers.count("content-length")) {
    std::size_t length = std::stoul(response.headers["content-length"]);
    while (buffer_.size() < length)
      if (!fill())
        return response;
    response.body = buffer_.substr(0, length);
    buffer_.erase(0, length);
    response.isWhole = true;
    return response;
  }
  if (!response.headers.count("transfer-encoding")) {
    while (fill())
      ;
    response.body = std::move(buffer_);
    buffer_.clear();
    response.isWhole = true;
    return response;
  }
  for (;;) {
    while (buffer_.find("\r\n") == std::string::npos)
      if (!fill())
        return response;
    std::size_t length = std::stoul(buffer_, nullptr, 16);
    std::size_t start = buffer_.find("\r\n") + 2;
    while (buffer_.size() < start + length + 2)
      if (!fill())
        return response;
    response.body += buffer_.substr(start, length);
    buffer_.erase(0, start + length + 2);
    if (length == 0) {
      response.isWhole = true;
      return response;
    }
  }
}

std::string TestClient::post(const std::string &path, const std::string &body,
                             const std::string &headers) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body;
}

std::string TestClient::get(const std::string &path,
                            const std::string &headers) {
  return "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n";
}

TestResponse ask(std::uint16_t port, const std::string &request) {
  TestClient client(port);
  client.send(request);
  return client.receive();
}

} // namespace ingot::test
