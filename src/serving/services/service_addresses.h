// Resolves Services to network addresses, from the caches of Services and EndpointSlices.
#pragma once

#include <string>

#include "resource/resource.h"
#include "webhook/webhook.h"

namespace holdfast::services {

class ServiceAddresses final : public webhook::Services {
 public:
  // `own` is this server's own address (host:port), for the service default/kubernetes. With `to_endpoints`, services
  // resolve to a ready endpoint rather than to their cluster IP.
  ServiceAddresses(const resource::Registry& registry, std::string own, bool to_endpoints)
      : registry_(registry), own_(std::move(own)), to_endpoints_(to_endpoints) {}

  // Like k8s.io/apiserver/pkg/util/proxy: the cluster IP, or with aggregator routing a ready endpoint. 404 and 503 with
  // upstream's messages.
  Result<webhook::Address> resolve(std::string_view ns, std::string_view name, uint16_t port) const override;

 private:
  const resource::Registry& registry_;
  const std::string own_;
  const bool to_endpoints_;
};

}  // namespace holdfast::services
