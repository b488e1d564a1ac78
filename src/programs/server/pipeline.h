// The steps common to all requests: audit ID, deadline, authentication, authorization, routing, metrics, logging.
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
#include "server/front_filters.h"
#include "server/health.h"
#include "server/request_metrics.h"

namespace holdfast::server {

class Pipeline {
 public:
  // Handles everything below /api, /apis and /openapi.
  using ApiHandler = std::function<Task<void>(const request::RequestInfo&, net::Request&, net::Response&, auth::UserRef,
                                              call::Recording*)>;

  // What others need to verify this server's service account tokens.
  struct OpenId {
    std::string configuration, keys;
    std::chrono::seconds max_age{3600};  // How long they may keep it. As in kube-apiserver for keys from files.
  };

  struct Parts {
    MetricRegistry* metrics = nullptr;
    const FrontFilters* front = nullptr;
    const Health* health = nullptr;
    std::function<Task<void>(net::EventLoop&)> refresh_health;  // Called before `health` is queried.
    const auth::Authorizer* authorizer = nullptr;
    ApiHandler api;
    access::FlowControl* flow = nullptr;  // Null disables priority and fairness.
    const Auditor* auditor = nullptr;     // Null disables auditing.
    // The paths of all served groups and versions, for the index of paths: /apis/apps, /apis/apps/v1.
    std::function<std::vector<std::string>()> api_paths;
    // Whether a resource is served: only those appear in metrics. Empty means none.
    std::function<bool(const request::Target&)> serves = {};
    std::function<void()> refresh_metrics;                                     // Called before `metrics` are read.
    std::function<Result<std::string>(const request::Query&)> ownership_page;  // /debug/ownership
    // Read on every request: keys may be replaced, and requests are rare.
    std::function<Result<OpenId>()> openid;
    UnixTime started{};
    // For requests other than watches and streams.
    std::chrono::milliseconds request_timeout{limits::kRequestSeconds * 1000};
    Gates gates;
    request::AcceptRule accept_rule = request::AcceptRule::Lenient;
    std::string strict_transport_security;  // Value of the Strict-Transport-Security header; not sent if empty.
    std::span<const std::pair<std::string, std::string>> flags = {};  // Must outlive the pipeline.
  };
  explicit Pipeline(Parts parts);

  // For new requests; those in flight keep the one they started with.
  void set_authenticator(std::shared_ptr<const auth::Authenticator> authenticator);
  std::shared_ptr<const auth::Authenticator> authenticator() const { return authenticator_.load(); }

  Task<void> serve(net::Request& request, net::Response& response);

  // Requests that are not watches or streams.
  int64_t in_flight() const;

  // Responds to a request that has timed out.
  static void respond_timed_out(const net::Request& request, net::Response& response);

 private:
  struct Account;  // State of one request for metrics and the log.
  Task<void> serve_known(net::Request& request, net::Response& response, Account& account);
  // Fetches keys from another program, because the request's token names a key that is not known.
  Task<void> fetch_keys(net::Request& request, net::Response& response);
  // Acquires a seat of the request's priority level, waiting if necessary; without one, responds 429 and returns false.
  Task<bool> take_seat(net::Request& request, net::Response& response, const auth::Attributes& attributes,
                       Account& account);
  Task<void> route(net::Request& request, net::Response& response, Account& account);
  void send_index(net::Response& response) const;
  // /statusz and /flagz.
  void send_page(const request::RequestInfo& info, const net::Request& request, net::Response& response) const;
  void send_openid(const request::RequestInfo& info, const net::Request& request, net::Response& response) const;
  // Responds to a request that needed too much memory.
  void answer_exhausted(const request::RequestInfo& info, const net::Request& request, net::Response& response,
                        const ArenaExhausted& exhausted) const;
  bool serves(const request::Target& target) const { return parts_.serves && parts_.serves(target); }
  void record(const net::Request& request, const net::Response& response, const Account& account);

  const Parts parts_;
  std::atomic<std::shared_ptr<const auth::Authenticator>> authenticator_;
  RequestMetrics metrics_;
};

}  // namespace holdfast::server
