#include "controllers/address_use.h"

#include <algorithm>

namespace holdfast::controllers {

bool offers(const IpNetwork& network, const IpAddress& address) {
  if (!network.contains(address) || address == network.first()) return false;
  return address.v6 || address != network.last();
}

bool covered(const Networks& leaving, const Networks& remaining) {
  return std::all_of(leaving.begin(), leaving.end(), [&](const IpNetwork& one) {
    return std::any_of(remaining.begin(), remaining.end(), [&](const IpNetwork& other) { return other.contains(one); });
  });
}

bool orphaned(const Networks& leaving, const Networks& remaining, const IpAddress& address) {
  const auto offered = [&](const Networks& networks) {
    return std::any_of(networks.begin(), networks.end(), [&](const IpNetwork& one) { return offers(one, address); });
  };
  return offered(leaving) && !offered(remaining);
}

}  // namespace holdfast::controllers
