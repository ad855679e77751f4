#include "runtime/serve/ClientKeys.h"

#include <algorithm>
#include <cmath>

namespace ingot::serve {
namespace {

constexpr std::size_t kMinKey = 8;
constexpr std::size_t kMaxKey = 512;
// Clients without keys are told apart by address: there may be many.
constexpr std::size_t kMaxBuckets = 65536;

// 1 where equal; no branch depends on the bytes.
unsigned equalInConstantTime(std::string_view secret, std::string_view given) {
  volatile unsigned difference = unsigned(secret.size() ^ given.size());
  for (std::size_t i = 0; i < secret.size(); ++i) {
    unsigned char other =
        static_cast<unsigned char>(given.empty() ? 0 : given[i % given.size()]);
    difference =
        difference | (static_cast<unsigned char>(secret[i]) ^ unsigned(other));
  }
  return difference == 0;
}

} // namespace

Result<std::vector<ApiKey>> readApiKeys(std::string_view text) {
  std::vector<ApiKey> keys;
  std::size_t number = 0;
  while (!text.empty()) {
    std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    std::string where = "line " + std::to_string(number);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.pop_back();
    if (line.empty() || line[0] == '#')
      continue;
    std::size_t space = line.find(' ');
    ApiKey key;
    key.name = space == std::string::npos ? "key-" + std::to_string(number)
                                          : line.substr(0, space);
    key.key = space == std::string::npos ? line : line.substr(space + 1);
    if (key.key.size() < kMinKey || key.key.size() > kMaxKey)
      return Status::invalid(where + ": a key of " +
                             std::to_string(key.key.size()) +
                             " bytes, expected " + std::to_string(kMinKey) +
                             " to " + std::to_string(kMaxKey));
    for (char c : key.name + key.key)
      if (c <= ' ' || c > '~')
        return Status::invalid(where + ": expected NAME KEY or KEY, in "
                                       "printable ASCII");
    for (const ApiKey &other : keys)
      if (other.name == key.name || other.key == key.key)
        return Status::invalid(where + ": the name or the key is there twice");
    keys.push_back(std::move(key));
  }
  if (keys.empty())
    return Status::invalid("holds no key");
  return keys;
}

const std::string *ClientKeys::clientOf(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  bool isBearer = authorization.size() > kScheme.size();
  for (std::size_t i = 0; isBearer && i < kScheme.size(); ++i)
    isBearer = (authorization[i] | 0x20) == (kScheme[i] | 0x20);
  if (!isBearer)
    return nullptr;
  std::string_view given = authorization.substr(kScheme.size());
  if (given.size() > kMaxKey)
    return nullptr;
  std::size_t found = keys_.size();
  for (std::size_t i = 0; i < keys_.size(); ++i)
    found = equalInConstantTime(keys_[i].key, given) ? i : found;
  return found < keys_.size() ? &keys_[found].name : nullptr;
}

double RateLimit::filled(const Bucket &bucket, Clock::time_point now) const {
  double minutes =
      std::chrono::duration<double, std::ratio<60>>(now - bucket.at).count();
  return std::min(double(perMinute_), bucket.left + minutes * perMinute_);
}

void RateLimit::forgetFull(Clock::time_point now) {
  std::erase_if(buckets_, [&](const auto &each) {
    return filled(each.second, now) >= perMinute_;
  });
}

int RateLimit::take(const std::string &client, Clock::time_point now) {
  if (perMinute_ <= 0)
    return 0;
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMaxBuckets)
      forgetFull(now);
    if (buckets_.size() >= kMaxBuckets)
      return 60;
    found = buckets_.emplace(client, Bucket{double(perMinute_), now}).first;
  }
  Bucket &bucket = found->second;
  bucket.left = filled(bucket, now);
  bucket.at = now;
  if (bucket.left < 1)
    return std::max(1, int(std::ceil((1 - bucket.left) * 60 / perMinute_)));
  bucket.left -= 1;
  return 0;
}

} // namespace ingot::serve
