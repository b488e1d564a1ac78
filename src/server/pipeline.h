// What every request passes: audit id, deadline, authentication, authorization, routing, metrics, log line.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "access/access.h"
#include "auth/auth.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "base/task.h"
#include "call/call.h"
#include "net/net.h"
#include "request/request.h"
#include "server/audit_trail.h"
#include "server/health.h"

namespace holdfast::server {

class Pipeline {
 public:
  // Handles everything below /api, /apis and /openapi.
  using ApiHandler = std::function<Task<void>(const request::RequestInfo&, net::Request&, net::Response&, auth::UserRef,
                                              call::Recording*)>;

  // What others need to recognise this server's service account tokens.
  struct OpenId {
    std::string configuration, keys;
  };

  struct Parts {
    MetricRegistry* metrics = nullptr;
    const Health* health = nullptr;
    std::function<Task<void>(net::EventLoop&)> refresh_health;  // Before a response of `health`.
    const auth::Authorizer* authorizer = nullptr;
    ApiHandler api;
    access::FlowControl* flow = nullptr;  // Null disables priority and fairness.
    const Auditor* auditor = nullptr;     // Null: nothing is recorded.
    // Every path of a group or of a version that is served now: /apis/apps, /apis/apps/v1. For the index of paths.
    std::function<std::vector<std::string>()> api_paths;
    // Whether a resource is served: only such are named by metrics. Empty: none is.
    std::function<bool(const request::Target&)> serves = {};
    std::function<void()> refresh_metrics;                                     // Before `metrics` are read.
    std::function<Result<std::string>(const request::Query&)> ownership_page;  // /debug/ownership
    // Read on request: keys may be replaced, and requests are rare.
    std::function<Result<OpenId>()> openid;
    UnixTime started{};
    std::chrono::milliseconds request_timeout{limits::kRequestSeconds *
                                              1000};  // Of requests that are not watches or streams.
    Gates gates;
    std::string strict_transport_security;  // Value of the header of that name; empty: not sent.
    std::span<const std::pair<std::string, std::string>> flags = {};  // Outlives the pipeline.
  };
  explicit Pipeline(Parts parts);

  // For new requests; those in progress keep the one they started with.
  void set_authenticator(std::shared_ptr<const auth::Authenticator> authenticator);
  std::shared_ptr<const auth::Authenticator> authenticator() const { return authenticator_.load(); }

  Task<void> serve(net::Request& request, net::Response& response);

  // The response for a request that ran out of time.
  static void answer_late(const net::Request& request, net::Response& response);

 private:
  struct Account;  // One request, for metrics and the log.
  Task<void> serve_known(net::Request& request, net::Response& response, Account& account);
  // Takes a seat of the request's priority level, waiting for one if need be; answers 429 and says false without one.
  Task<bool> take_seat(net::Request& request, net::Response& response, const auth::Attributes& attributes,
                       Account& account);
  Task<void> route(net::Request& request, net::Response& response, Account& account);
  void send_index(net::Response& response) const;
  // /statusz and /flagz.
  void send_page(const request::RequestInfo& info, const net::Request& request, net::Response& response) const;
  void send_openid(const request::RequestInfo& info, const net::Request& request, net::Response& response) const;
  // The response for a request that needed too much memory.
  void answer_exhausted(const request::RequestInfo& info, const net::Request& request, net::Response& response,
                        const ArenaExhausted& exhausted) const;
  static std::string_view known_verb(const Account& account);
  void record(const net::Request& request, const net::Response& response, const Account& account);

  const Parts parts_;
  std::atomic<std::shared_ptr<const auth::Authenticator>> authenticator_;
  Family<Counter>& requests_;
  Family<Histogram>& durations_;
  Family<Histogram>& sizes_;
  Family<Gauge>& long_running_;
  Family<Gauge>& in_flight_;
  Gauge& reads_in_flight_;
  Gauge& writes_in_flight_;
};

}  // namespace holdfast::server
