// Where services of the cluster are reached: by the caches of Services and EndpointSlices.
#pragma once

#include <string>

#include "api/api.h"
#include "webhook/webhook.h"

namespace holdfast::api {

class ServiceAddresses final : public webhook::Services {
 public:
  explicit ServiceAddresses(Api::State& state) : state_(state) {}

  // k8s.io/apiserver/pkg/util/proxy: the cluster IP, or with aggregator routing a ready endpoint. 404 and 503 in its
  // words.
  Result<webhook::Address> resolve(std::string_view ns, std::string_view name, uint16_t port) const override;

 private:
  Api::State& state_;
};

}  // namespace holdfast::api
