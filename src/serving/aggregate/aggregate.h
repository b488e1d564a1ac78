// API aggregation: group versions served by another API server. Their APIServices locate the server; requests are
// proxied to it with the user's identity in headers, authenticated by our front-proxy client certificate.
//
// One coroutine watches the APIServices and maintains their Available condition; everything else reads its results.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/task_group.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "call/call.h"
#include "custom/custom.h"
#include "own_calls/own_calls.h"
#include "services/services.h"
#include "webhook/webhook.h"

namespace holdfast::aggregate {

// One group version served by another server.
struct RemoteApi {
  std::string name;  // v1beta1.metrics.k8s.io
  std::string uid;   // Distinguishes servers registered under the same name one after the other.
  std::string group, version;
  webhook::ServiceReference service;
  std::string ca_pem;
  bool insecure = false;
  int64_t group_priority = 0, version_priority = 0;
  bool available = false;
  bool fresh = false;  // The server answered the last discovery request.
  // As last fetched; null if never fetched or not served.
  std::shared_ptr<const std::string> discovery;               // APIGroupDiscoveryList, ...
  std::shared_ptr<const std::string> resources;               // ... or else its APIResourceList.
  std::shared_ptr<const std::string> openapi_v2, openapi_v3;  // The v2 document and the index of v3 documents.
  std::string v2_etag;

  // The v3 document is then converted from the v2 one here.
  bool has_only_v2() const { return openapi_v3 == nullptr && openapi_v2 != nullptr; }
};

// Sorted by group priority, group, version priority.
struct RemoteApis : std::vector<RemoteApi> {
  using std::vector<RemoteApi>::vector;

  struct Priorities {
    int64_t group = 0;  // The highest priority requested by any of its versions.
    std::map<std::string, int64_t, std::less<>> versions;
  };
  // For every group with an APIService, including our own.
  std::map<std::string, Priorities, std::less<>> priorities;

  int64_t group_priority(std::string_view group) const;
  int64_t version_priority(std::string_view group, std::string_view version) const;
};
using RemoteApisRef = std::shared_ptr<const RemoteApis>;

// The Available condition of an APIService.
struct Condition {
  std::string_view status, reason;
  std::string message;
};

class Aggregation {
 public:
  // Everything here must outlive the Aggregation.
  struct Parts {
    const Clock& clock;
    const resource::Registry& registry;
    const services::ServiceAddresses& addresses;
    webhook::Caller& caller;
    custom::CustomServices& services;
    net::EventLoop& loop;  // APIServices are watched and their conditions written on this loop.
    own_calls::Handler own;
    std::optional<net::Identity> identity;  // Client certificate presented to other servers.
  };
  explicit Aggregation(Parts parts)
      : parts_(std::move(parts)), loop_(parts_.loop), tasks_(loop_, "aggregation"), follower_(tasks_) {}

  void start();
  // Rechecks the servers when a check is due. Call on the loop.
  void tick();
  Task<void> close(Executor& executor);

  // False on most servers; a single atomic load.
  bool any() const { return any_.load(std::memory_order_acquire); }
  // Null if there are none.
  RemoteApisRef remotes() const;
  // Changes whenever the OpenAPI documents in remotes() may have changed.
  uint64_t openapi_version() const { return openapi_version_.load(std::memory_order_acquire); }
  // Returns whether the request belongs to another server; if so, it has been answered.
  Task<bool> proxied(call::Call& call);

 private:
  Task<void> follow();
  void see(std::span<const cache::Delivery> events);
  Task<void> check_all(net::EventLoop& loop);
  // Runs check_all() and resets checking_ however that ends.
  Task<void> check(net::EventLoop& loop);
  // Requests one of the server's own documents.
  Task<net::CallResult<net::ClientResponse>> ask(net::EventLoop& loop, const RemoteApi& remote,
                                                 const webhook::Address& address, std::string path,
                                                 std::string etag = {}, std::string accept = "application/json");
  // Probes the server; on success, `resources` is its APIResourceList for this version.
  Task<Condition> availability(net::EventLoop& loop, const RemoteApi& remote, const Result<webhook::Address>& address,
                               std::string& resources);
  // Fetches the server's discovery document, falling back to its APIResourceList in `plain`. False if neither could be
  // read.
  Task<bool> read_discovery(net::EventLoop& loop, RemoteApi remote, webhook::Address address, std::string plain);
  Task<void> read_openapi(net::EventLoop& loop, RemoteApi remote, webhook::Address address);
  Task<void> write_condition(net::EventLoop& loop, std::string name, std::string_view status, std::string_view reason,
                             std::string message);
  void rebuild();
  // Publishes a new copy of remotes_ in which the entry with this UID is edited.
  void change(std::string_view uid, const std::function<void(RemoteApi&)>& edit);
  webhook::Trust trust_of(const RemoteApi& remote) const;
  Task<void> proxy(call::Call& call, RemoteApi remote);

  const Parts parts_;
  net::EventLoop& loop_;
  TaskGroup tasks_;
  cache::Follower follower_;     // This and the members below belong to the loop.
  bool remote_changed_ = false;  // Since the last rebuild().
  bool checking_ = false, changed_ = false;
  std::chrono::steady_clock::time_point next_check_{};
  std::atomic<bool> any_{false};
  std::atomic<uint64_t> openapi_version_{0};

  mutable std::mutex mutex_;
  RemoteApisRef remotes_;  // Guarded by mutex_.
};

// --- Discovery documents merged with those of other servers ---

Value with_remote_groups(Arena& arena, const Value& group_list, const RemoteApis& remotes);
// Null if neither this server nor another one has the group.
Value with_remote_versions(Arena& arena, const Value& group_document, std::string_view name, const RemoteApis& remotes);
Value with_remote_discovery(Arena& arena, const Value& aggregated, const RemoteApis& remotes);

}  // namespace holdfast::aggregate
