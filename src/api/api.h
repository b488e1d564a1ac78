// The request side of the server: everything between an authorized HTTP request and the store.
//
//   net -> handle() -> route -> negotiate -> cache -> bytes                          (get, list, watch)
//                             -> decode -> admission -> kinds -> ownership -> store  (create, update, patch, delete)
//
// One file a verb. Threading: handle() runs on the loop of its request; everything shared is immutable or owned by a
// class that says so. Lifetime: an Api outlives the server that calls it; close() before its store goes away.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "api/admission_hook.h"
#include "api/flow_control.h"
#include "api/rbac_authorizer.h"
#include "auth/auth.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/gates.h"
#include "base/metrics.h"
#include "base/task.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "request/info.h"
#include "request/negotiate.h"
#include "resource/registry.h"
#include "resource/stored_check.h"
#include "store/store.h"
#include "tokens/tokens.h"

namespace holdfast::cache {
class Cache;
}
namespace holdfast::ownership {
class Pool;
}

namespace holdfast::api {

struct Options {
  Gates gates;

  // Kubernetes' own limit on a request body.
  size_t max_body_bytes = 3 << 20;
  std::string registry_prefix = "/registry";
  // The store is our own, where values may lie in our own form (docs/formats/at_rest.md); an etcd holds Kubernetes'.
  bool embedded_store = false;
  // Events delete themselves.
  std::chrono::seconds event_ttl{3600};
  bool allow_privileged = true;
  std::string service_cluster_ip_range = "10.0.0.0/24";
  uint16_t node_port_first = 30000, node_port_last = 32767;

  // Which admission plugins run; checked with admission::check_plugin_choice.
  admission::PluginChoice admission_plugins;

  // Webhooks and aggregated APIs are reached at their endpoints rather than at the cluster IP of their service.
  bool aggregator_routing = false;

  // Shown to aggregated API servers.
  std::optional<net::Identity> proxy_identity;

  // "host:port" as clients reach the server: /api says it.
  std::string server_address;

  // Watches without timeoutSeconds end after a random time between this and twice this.
  std::chrono::seconds min_watch_timeout{1800};
};

// How tokens of service accounts are made.
struct TokenIssuer {
  tokens::Signer signer;
  std::string issuer;
  std::vector<std::string> audiences;      // Of tokens for this server: what a request that names none gets.
  bool extends_expiration = true;          // A pod's usual token lives for a year, and is marked after its hour.
  std::chrono::seconds max_expiration{0};  // 0: Kubernetes' own limit alone.
};

// What an audit log wants to know of a request, noted while it is served.
struct Recording {
  bool wants_request = false, wants_response = false;
  std::function<void(int code)> on_stream = {};  // An answer that lasts begins.

  std::string ns, name, uid, resource_version;  // Of the object in the body.
  std::string request, response;                // JSON; a patch as it was sent.
  std::string status;                           // JSON of the Status that was the answer.
  std::string chunks;                           // Of a list that is still being sent.
  // Annotations of the event, by key: what plugins and webhooks have to say. The first value of a key counts.
  std::map<std::string, std::string, std::less<>> annotations;
};

// Whether an object is still the same, and still there.
struct ObjectIdentity {
  std::string uid;
  std::optional<int64_t> deleted;  // deletionTimestamp, in Unix seconds.
};

// All but `rbac`, `admission`, `token_issuer` and `review_token` must be given, and outlive the Api.
struct Dependencies {
  store::Store* store = nullptr;
  net::Loops* loops = nullptr;
  Executor* background = nullptr;  // Work that lasts: loading caches, training dictionaries.
  ownership::Pool* pool = nullptr;
  const auth::Authorizer* authorizer = nullptr;
  const RbacAuthorizer* rbac = nullptr;  // The same; null: another one, which needs no rules.
  MetricRegistry* metrics = nullptr;
  const Clock* clock = nullptr;
  AdmissionHook* admission = nullptr;
  const TokenIssuer* token_issuer = nullptr;  // None: serviceaccounts/token refuses.
  // Whom a token belongs to, for TokenReviews; none: nobody's.
  std::function<Result<auth::TokenUser>(std::string_view token, const std::vector<std::string>& audiences)>
      review_token = {};
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
                    auth::UserRef user, Recording* recording = nullptr);

  // The server as its own client; on `loop`. For controllers, bootstrapping and the API itself.
  own_calls::OwnCalls own_calls(net::EventLoop& loop);

  resource::Registry& registry();
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

  // Whether a write of this namespace has been charged to its quotas and may not be stored yet. Any thread.
  bool charges_quota(std::string_view ns) const;

  struct State;
  State& state() { return *state_; }  // For api's own files.

 private:
  // A request of the server itself, which nobody has to authorize.
  Task<void> handle_own(net::Request& request, net::Response& response, auth::UserRef user);

  std::unique_ptr<State> state_;
};

// An error's answer in the encoding that the client reads: for the parts of the server that refuse before the API is
// asked (401, 403, unknown paths).
void send_error(const request::RequestInfo& info, const net::Request& request, net::Response& response,
                const Error& error);
// The Status of an error, as JSON.
std::string status_json(const Error& error);

}  // namespace holdfast::api
