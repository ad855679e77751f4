// What is said of a request when it has ended: one line, for people or as JSON.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::serve {

struct RequestRecord {
  std::string requestId;
  std::string client; // the key's name, or the address
  std::string method, path;
  int status = 0;
  std::string model; // empty: the request did not come that far
  std::string user;
  std::int64_t promptTokens = -1; // -1: no generation
  std::int64_t cachedTokens = 0;
  std::int64_t outputTokens = 0;
  double firstTokenSeconds = -1; // -1: there was none
  double seconds = 0;
  std::string finish; // "stop", "length", ..., of each choice once
  std::string error;  // what was wrong, or how the connection ended
  std::string note;   // what the client may not have meant
};

// Without a line break; control characters of the client are escaped.
std::string logLine(const RequestRecord &record);
std::string logJson(const RequestRecord &record);
// A message of the server itself.
std::string messageJson(const std::string &message);

} // namespace ingot::serve
