// A blocking HTTP client that can misbehave: it sends any bytes in any pieces,
// and reads answers one by one, in full or hardly at all.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::test {

struct TestResponse {
  int status = 0;                             // 0: the connection ended first
  std::map<std::string, std::string> headers; // lower case names
  std::string body;                           // chunks put together
  bool isWhole = false;                       // its end was seen
  nlohmann::json json() const;
  // The data of each server-sent event.
  std::vector<std::string> events() const;
};

class TestClient {
public:
  explicit TestClient(std::uint16_t port, int receiveBufferBytes = 0);
  ~TestClient();
  TestClient(const TestClient &) = delete;

  bool send(std::string_view bytes);
  TestResponse receive();
  // Bytes as they come, until `text` was seen or the connection ends.
  std::string receiveUntil(std::string_view text);
  bool isClosedByPeer(); // waits for it
  void close();
  void abort(); // ends both ways at once; a thread that sends is woken
  void clear() { buffer_.clear(); }
  void halfClose();

  static std::string post(const std::string &path, const std::string &body,
                          const std::string &headers = "");
  static std::string get(const std::string &path,
                         const std::string &headers = "");

private:
  bool fill();
  int socket_ = -1;
  std::string buffer_;
};

// One request on a connection of its own.
TestResponse ask(std::uint16_t port, const std::string &request);

} // namespace ingot::test
