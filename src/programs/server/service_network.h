// The value of --service-cluster-ip-range: the ranges of cluster IPs, and what follows from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace holdfast::server {

struct ServiceNetwork {
  std::vector<std::string> cidrs;          // One, or one of each family; canonical.
  std::vector<std::string_view> families;  // "IPv4" or "IPv6" of each.
  std::string kubernetes_ip;               // The first address of the first range: that of the Service kubernetes.
};

// Accepts what kube-apiserver accepts: "10.0.0.0/24" or "10.0.0.0/24,2001:db8::/112", and "" for the default. The first
// range has at least eight addresses.
Result<ServiceNetwork> parse_service_network(std::string_view flag);

// The Service kubernetes has one family, so its endpoints must be of the same. An error if the address is of another
// one.
Result<Unit> check_advertised_family(const ServiceNetwork& network, std::string_view address);

}  // namespace holdfast::server
