#include "runtime/schedule/ClientService.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace ingot {

double ClientService::leastPresent() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto &[name, client] : clients_)
    if (client.requests > 0)
      least = std::min(least, client.served);
  return least;
}

void ClientService::arrive(const std::string &name) {
  double least = leastPresent();
  Client &client = clients_[name];
  if (client.requests++ == 0 &&
      least != std::numeric_limits<double>::infinity())
    client.served = std::max(client.served, least);
}

void ClientService::leave(const std::string &name) {
  Client &client = clients_[name];
  assert(client.requests > 0 && "more requests leave than came");
  if (--client.requests > 0)
    return;
  // Those away are remembered only while that makes a difference; when nobody
  // is left, everyone begins anew.
  double least = leastPresent();
  std::erase_if(clients_, [&](const auto &entry) {
    return entry.second.requests == 0 && entry.second.served <= least;
  });
}

void ClientService::charge(const std::string &name, std::int64_t promptRows,
                           std::int64_t outputRows) {
  auto found = clients_.find(name);
  if (found != clients_.end())
    found->second.served +=
        kPromptRow * double(promptRows) + kOutputRow * double(outputRows);
}

double ClientService::served(const std::string &name) const {
  auto found = clients_.find(name);
  return found == clients_.end() ? 0 : found->second.served;
}

} // namespace ingot
