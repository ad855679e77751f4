// Who may ask, and how often: API keys, compared in constant time, and a bucket
// of requests for each client.
#pragma once

#include "runtime/support/Status.h"

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ingot::serve {

struct ApiKey {
  std::string name; // of the client: in logs, for fairness and limits
  std::string key;
};

// A key a line, or NAME and key with a space between; empty lines and lines
// that begin with # are skipped. Unnamed keys are called key-LINE.
Result<std::vector<ApiKey>> readApiKeys(std::string_view text);

class ClientKeys {
public:
  explicit ClientKeys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}
  bool isEmpty() const { return keys_.empty(); }
  // The client of "Bearer KEY"; null where no key fits. Takes the same time
  // whichever key it is, and however much of one is right.
  const std::string *clientOf(std::string_view authorization) const;

private:
  std::vector<ApiKey> keys_;
};

class RateLimit {
public:
  using Clock = std::chrono::steady_clock;
  // As many at once as in a minute; 0: no limit.
  explicit RateLimit(int perMinute) : perMinute_(perMinute) {}

  // 0 where the client may go on, else the seconds after which it may.
  int take(const std::string &client, Clock::time_point now);

private:
  struct Bucket {
    double left = 0;
    Clock::time_point at;
  };
  void forgetFull(Clock::time_point now);
  double filled(const Bucket &bucket, Clock::time_point now) const;

  int perMinute_;
  std::unordered_map<std::string, Bucket> buckets_;
};

} // namespace ingot::serve
