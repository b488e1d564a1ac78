// The objects of a newly started, empty server: namespaces, roles, priority classes, flow schemas, API services and the
// Service of the server itself.
//
// Pure data: the server writes the steps through the same path as client writes, in one group commit.
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
  std::vector<std::string> service_cidrs = {"10.0.0.0/24"};
  std::string service_ip = "10.0.0.1";  // The first usable address of the first one.
  std::string advertise_address = "127.0.0.1";
  int secure_port = 6443;
  bool own_endpoints = true;          // Create Endpoints and EndpointSlice of the Service kubernetes.
  std::string client_ca_pem;          // If empty, there is no ConfigMap extension-apiserver-authentication.
  std::string request_header_ca_pem;  // If empty, that ConfigMap has no requestheader-* members.
  std::vector<std::string> request_header_allowed_names;
  discovery::RuntimeConfig runtime_config;  // Decides which group versions have an APIService.
  bool ownership_api = false;               // Create the role for ownership.holdfast.dev.
};

// Label of the APIServices that the server manages.
inline constexpr std::string_view kAutomanaged = "kube-aggregator.kubernetes.io/automanaged";

// One write. The object is created only if it does not exist.
struct Step {
  const types::Resource* resource = nullptr;
  std::string_view manager;
  Value object;  // As a client would POST it.
  Value status;  // If not null, `status_manager` then applies it to /status.
  std::string_view status_manager = {};
};

// The rules of the ClusterRole system:node, by which the Node authorizer decides about resources that it does not know
// better about.
Value node_rules(Arena& arena);

// In the order in which Kubernetes creates them.
std::vector<Step> steps(Arena& arena, const Options& options, UnixTime now);

// Names of the APIServices for known versions that this server does not serve. The server deletes those left behind by
// an earlier start.
std::vector<std::string> unserved_api_services(const Options& options);

}  // namespace holdfast::bootstrap
