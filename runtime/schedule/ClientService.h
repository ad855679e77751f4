// How much each client has been given, so that the least served goes first: the
// virtual token counter of Sheng et al., "Fairness in Serving Large Language
// Models" (OSDI 2024). A prompt row counts 1, an output row 2, as there. Two
// clients that both always have requests waiting then differ in service by no
// more than a bound that does not grow with time.
//
// A client that comes (back) begins no lower than the least served one present:
// being away earns no credit.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ingot {

class ClientService {
public:
  static constexpr double kPromptRow = 1;
  static constexpr double kOutputRow = 2;

  // A request, or a copy, of the client comes and goes.
  void arrive(const std::string &client);
  void leave(const std::string &client);
  void charge(const std::string &client, std::int64_t promptRows,
              std::int64_t outputRows);

  // Of a client that is present.
  double served(const std::string &client) const;
  std::size_t numClients() const { return clients_.size(); }

private:
  struct Client {
    double served = 0;
    std::int64_t requests = 0;
  };
  double leastPresent() const;

  std::map<std::string, Client> clients_;
};

} // namespace ingot
