// What exists on an empty, just started server: namespaces, roles, priority classes, flow schemas, API services and the
// Service of the server itself.
//
// Pure data: the server writes the steps through the same path as any client's write, in one group commit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "discovery/discovery.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::bootstrap {

struct Options {
  std::string service_cidr = "10.0.0.0/24";
  std::string service_ip = "10.0.0.1";  // First usable address of it.
  std::string advertise_address = "127.0.0.1";
  int secure_port = 6443;
  bool own_endpoints = true;          // Endpoints and EndpointSlice of the Service kubernetes.
  std::string client_ca_pem;          // Empty: no ConfigMap extension-apiserver-authentication.
  std::string request_header_ca_pem;  // Empty: none of the requestheader-* members.
  std::vector<std::string> request_header_allowed_names;
  discovery::RuntimeConfig runtime_config;  // Which group versions have an APIService.
};

// Label of the APIServices that the server makes itself.
inline constexpr std::string_view kAutomanaged = "kube-aggregator.kubernetes.io/automanaged";

// One write. The objects of a step are created only if they do not exist.
struct Step {
  const types::Resource* resource = nullptr;
  std::string_view manager;
  Value object;  // As a client would POST it.
  Value status;  // Not null: applied to /status afterwards by `status_manager`.
  std::string_view status_manager = {};
};

// In the order in which Kubernetes makes them.
std::vector<Step> steps(Arena& arena, const Options& options, UnixTime now);

// The names that the APIServices of versions have which this server knows and does not serve: those that an earlier
// start left behind are deleted.
std::vector<std::string> unserved_api_services(const Options& options);

}  // namespace holdfast::bootstrap
