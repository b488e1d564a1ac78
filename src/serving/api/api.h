// The API of the server: everything between an authorized HTTP request and the store.
//
//   request -> verbs -> render            get, list, watch
//                    -> write -> store    create, update, patch, delete
//
// An Api wires the modules together and dispatches requests to them.
// Threading: handle() runs on the loop of its request; shared state is immutable or documents its own threading.
// Lifetime: an Api outlives the server that calls it; call close() before destroying its store.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/access.h"
#include "admission/admission.h"
#include "auth/auth.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/task.h"
#include "call/call.h"
#include "discovery/discovery.h"
#include "net/net.h"
#include "nodes/nodes.h"
#include "own_calls/own_calls.h"
#include "request/request.h"
#include "resource/resource.h"
#include "store/store.h"
#include "verbs/verbs.h"
#include "write/write.h"

namespace holdfast::api {

struct Options {
  call::Settings settings;
  discovery::RuntimeConfig runtime_config;  // Selects the built-in resources to serve.

  std::vector<std::string> service_cluster_ip_ranges = {"10.0.0.0/24"};  // Of different families, the default first.
  uint16_t node_port_first = 30000, node_port_last = 32767;

  access::AuthorizationOptions authorization;

  // Enabled admission plugins; validated with admission::check_plugin_choice.
  admission::PluginChoice admission_plugins;
  write::WebhookCredentials webhook_credentials;

  // Reach webhooks and aggregated APIs at their endpoints rather than at the cluster IP of their service.
  bool aggregator_routing = false;

  // Client certificate presented to aggregated API servers.
  std::optional<net::Identity> proxy_identity;

  nodes::Options kubelets;
};

// Identifies an object, to check that it still exists and has not been replaced.
struct ObjectIdentity {
  std::string uid;
  std::optional<int64_t> deleted;  // deletionTimestamp, in Unix seconds.
};

// All except `token_issuer` and `review_token` are required. Everything must outlive the Api.
struct Dependencies {
  store::Store* store = nullptr;
  net::Loops* loops = nullptr;
  Executor* background = nullptr;  // For long-running work: loading caches, training dictionaries.
  ownership::Pool* pool = nullptr;
  MetricRegistry* metrics = nullptr;
  const Clock* clock = nullptr;
  // Overrides of `store` for single built-in resources, by name: "events", "deployments.apps".
  std::map<std::string, store::Store*, std::less<>> other_stores = {};
  const verbs::TokenIssuer* token_issuer = nullptr;  // Null disables serviceaccounts/token.
  verbs::TokenReviewer review_token = {};
};

class Api {
 public:
  Api(const Dependencies& dependencies, Options options);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Starts watching the store; does not block.
  void start();
  // Whether every cache has been populated.
  bool ready() const;
  // Waits until everything that has been stored by now about who may do what is in effect.
  Task<void> permissions_in_effect(Executor& executor);
  // Ends watches and caches. Call once, after the last call to handle().
  Task<void> close(Executor& executor);

  // Handles an authorized request for /api, /apis or any path below them. `info` is the RequestInfo it was authorized
  // with; `user` must not be null.
  Task<void> handle(const request::RequestInfo& info, net::Request& request, net::Response& response,
                    auth::UserRef user, call::Recording* recording = nullptr);
  // Same, for the server's own requests, which are not authorized.
  Task<void> handle_own(net::Request& request, net::Response& response, auth::UserRef user);

  // An in-process client running on `loop`, for the server's own parts: controllers, bootstrapping, the API itself.
  own_calls::OwnCalls own_calls(net::EventLoop& loop);

  const resource::Registry& registry() const;
  const auth::Authorizer& authorizer() const;
  // The watch cache of a currently served resource, or null. For the server's own controllers.
  cache::Cache* cache_of(std::string_view group, std::string_view plural);
  const Options& options() const;

  // The paths of all currently served groups and versions: /api/v1, /apis/apps, /apis/apps/v1.
  std::vector<std::string> group_paths() const;

  // Whether the resource, and the subresource if given, is currently served. Any thread.
  bool serves(const request::Target& target) const;

  // Memory used by requests in flight. Any thread.
  const ArenaBudget& request_memory() const;

  // Updates the metrics that require a scan over all objects. Call before metrics are read.
  void refresh_metrics();
  // The page /debug/ownership: memory used by managedFields (api/ownership_report.h).
  Result<std::string> ownership_page(const request::Query& query);

  // An object of a v1 resource according to the cache; nullopt if it does not exist. Any thread.
  std::optional<ObjectIdentity> identity_of(std::string_view group, std::string_view plural, std::string_view ns,
                                            std::string_view name) const;

  // With etcd, reconciles the IPs and ports allocated to Services with the existing Services (see
  // services::ServicePools). Run once before the first objects are created, then every few minutes.
  Task<Result<Unit>> repair_services(net::EventLoop& loop);

  // Whether a write in this namespace has been charged to its quotas but possibly not stored yet. Any thread.
  bool charges_quota(std::string_view ns) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace holdfast::api
