// The API of the server: everything between an authorized HTTP request and the store.
//
//   request -> verbs -> render            get, list, watch
//                    -> write -> store    create, update, patch, delete
//
// An Api puts the modules together and answers requests; what it does it finds in them. Threading: handle() runs on the
// loop of its request; everything shared is immutable or owned by a class that says so. Lifetime: an Api outlives the
// server that calls it; close() before its store goes away.
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
#include "own_calls/own_calls.h"
#include "request/request.h"
#include "resource/resource.h"
#include "store/store.h"
#include "verbs/verbs.h"
#include "write/write.h"

namespace holdfast::api {

struct Options {
  call::Settings settings;
  discovery::RuntimeConfig runtime_config;  // Which built-in resources are served.

  std::string service_cluster_ip_range = "10.0.0.0/24";
  uint16_t node_port_first = 30000, node_port_last = 32767;

  // Which admission plugins run; checked with admission::check_plugin_choice.
  admission::PluginChoice admission_plugins;
  write::WebhookCredentials webhook_credentials;

  // Webhooks and aggregated APIs are reached at their endpoints rather than at the cluster IP of their service.
  bool aggregator_routing = false;

  // Shown to aggregated API servers.
  std::optional<net::Identity> proxy_identity;
};

// Whether an object is still the same, and still there.
struct ObjectIdentity {
  std::string uid;
  std::optional<int64_t> deleted;  // deletionTimestamp, in Unix seconds.
};

// All but `authorizer`, `token_issuer` and `review_token` must be given, and outlive the Api.
struct Dependencies {
  store::Store* store = nullptr;
  net::Loops* loops = nullptr;
  Executor* background = nullptr;  // Work that takes long: loading caches, training dictionaries.
  ownership::Pool* pool = nullptr;
  const auth::Authorizer* authorizer = nullptr;  // Null: RBAC, by the roles and bindings that the Api serves.
  MetricRegistry* metrics = nullptr;
  const Clock* clock = nullptr;
  // Where else built-in resources are kept than in `store`, by name: "events", "deployments.apps".
  std::map<std::string, store::Store*, std::less<>> other_stores = {};
  const verbs::TokenIssuer* token_issuer = nullptr;  // Null: serviceaccounts/token refuses.
  verbs::TokenReviewer review_token = {};
};

class Api {
 public:
  Api(const Dependencies& dependencies, Options options);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Starts to follow the store; returns at once.
  void start();
  // Every cache has its first state.
  bool ready() const;
  // Ends watches and caches. Call once, after the last handle() began.
  Task<void> close(Executor& executor);

  // Answers a request for /api, /apis or anything below, whose user may do it. `info` is what that was decided by;
  // `user` is never null.
  Task<void> handle(const request::RequestInfo& info, net::Request& request, net::Response& response,
                    auth::UserRef user, call::Recording* recording = nullptr);
  // The same for the server's own calls, which are not authorized.
  Task<void> handle_own(net::Request& request, net::Response& response, auth::UserRef user);

  // The server as its own client; on `loop`. For what belongs to the server: controllers, bootstrapping, the API
  // itself.
  own_calls::OwnCalls own_calls(net::EventLoop& loop);

  const resource::Registry& registry() const;
  const auth::Authorizer& authorizer() const;
  // The watch cache of a resource that is served now; null when there is none. For the server's own controllers.
  cache::Cache* cache_of(std::string_view group, std::string_view plural);
  const Options& options() const;

  // The paths of the groups and versions that are served now: /api/v1, /apis/apps, /apis/apps/v1.
  std::vector<std::string> group_paths() const;

  // Whether the resource, and the subresource if it names one, is served now. Any thread.
  bool serves(const request::Target& target) const;

  // What the requests under way use. Any thread.
  const ArenaBudget& request_memory() const;

  // Brings the metrics up to date that are computed by looking at every object. Call before they are read.
  void refresh_metrics();
  // What ownership costs: the page /debug/ownership (api/ownership_report.h).
  Result<std::string> ownership_page(const request::Query& query);

  // An object of a v1 resource, as the cache has it; nothing when it is not there. Any thread.
  std::optional<ObjectIdentity> identity_of(std::string_view group, std::string_view plural, std::string_view ns,
                                            std::string_view name) const;

  // Compares what is allocated to Services on an etcd with the Services that there are, and repairs it: see
  // services::ServicePools. Once before the first objects are made, and then every few minutes.
  Task<Result<Unit>> repair_services(net::EventLoop& loop);

  // Whether a write of this namespace has been charged to its quotas and may not be stored yet. Any thread.
  bool charges_quota(std::string_view ns) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace holdfast::api
