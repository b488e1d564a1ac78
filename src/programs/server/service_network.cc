#include "server/service_network.h"

#include "base/api_error.h"
#include "base/ip.h"
#include "base/strings.h"

namespace holdfast::server {
namespace {

constexpr std::string_view kDefault = "10.0.0.0/24";
constexpr int kLeastHostBits = 3;  // Of the first range.
constexpr int kMostHostBits = 64;  // Larger ranges cannot be allocated from.

Error refused(std::string_view what) { return bad_request("--service-cluster-ip-range: " + std::string(what)); }

}  // namespace

Result<ServiceNetwork> parse_service_network(std::string_view flag) {
  ServiceNetwork network;
  for (const std::string_view text : split(flag.empty() ? kDefault : flag, ',')) {
    std::optional<IpNetwork> range = IpNetwork::parse(text);
    if (!range || range->host_bits() < 0) {
      return refused("\"" + std::string(text) + "\" is not a range such as 10.0.0.0/24 or 2001:db8::/112");
    }
    range->address = range->first();
    if (range->host_bits() > kMostHostBits) {
      return refused("the prefix of " + range->text() + " must not be shorter than /64");
    }
    if (network.cidrs.empty()) {
      if (range->host_bits() < kLeastHostBits) {
        return refused("the service cluster IP range must be at least 8 IP addresses");
      }
      IpAddress first = range->address;
      first.bytes[first.v6 ? 15 : 3] |= 1;
      network.kubernetes_ip = first.text();
    }
    network.cidrs.push_back(range->text());
    network.families.push_back(range->address.family());
  }
  if (network.cidrs.size() > 2) return refused("must not contain more than two entries");
  if (network.cidrs.size() == 2 && network.families[0] == network.families[1]) {
    return refused("the two ranges must be of different IP families");
  }
  return network;
}

Result<Unit> check_advertised_family(const ServiceNetwork& network, std::string_view address) {
  const std::optional<IpAddress> parsed = IpAddress::parse(address);
  if (!parsed || parsed->family() == network.families.front()) return Unit{};
  return bad_request("service IP family \"" + network.cidrs.front() + "\" must match public address family \"" +
                     std::string(address) + "\" (--service-cluster-ip-range, --advertise-address)");
}

}  // namespace holdfast::server
