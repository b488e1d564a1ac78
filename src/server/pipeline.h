// What every request passes: audit id, authentication, authorization, routing, metrics, log line.
#pragma once

#include <atomic>
#include <memory>

#include "auth/auth.h"
#include "base/metrics.h"
#include "base/task.h"
#include "net/net.h"
#include "server/health.h"

namespace holdfast::server {

class Pipeline {
 public:
  Pipeline(MetricRegistry& metrics, Health health, std::unique_ptr<auth::Authorizer> authorizer);

  void set_authenticator(std::shared_ptr<const auth::Authenticator> authenticator);

  Task<void> serve(net::Request& request, net::Response& response);

 private:
  struct Metrics;
  Task<void> route(net::Request& request, net::Response& response);
  void send_error(net::Request& request, net::Response& response, const Error& error);

  MetricRegistry& registry_;
  const Health health_;
  const std::unique_ptr<auth::Authorizer> authorizer_;
  std::atomic<std::shared_ptr<const auth::Authenticator>> authenticator_;
  Family<Counter>& requests_;
  Family<Histogram>& durations_;
};

}  // namespace holdfast::server
