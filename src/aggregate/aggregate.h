// API aggregation: group versions that another server serves. Their APIServices say where it is; requests go there with
// the user's name in headers that our front-proxy certificate vouches for.
//
// One coroutine follows the APIServices and writes their condition Available; everybody else reads what it found out.
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
#include "call/call.h"
#include "custom/custom.h"
#include "own_calls/own_calls.h"
#include "services/services.h"
#include "webhook/webhook.h"

namespace holdfast::aggregate {

// One group version of another server.
struct RemoteApi {
  std::string name;  // v1beta1.metrics.k8s.io
  std::string uid;   // What was learned from one server says nothing about another of the same name.
  std::string group, version;
  webhook::ServiceReference service;
  std::string ca_pem;
  bool insecure = false;
  int64_t group_priority = 0, version_priority = 0;
  bool available = false;
  bool fresh = false;  // Its server was asked for what it has, and answered.
  // As last seen; null: never, or it has none.
  std::shared_ptr<const std::string> discovery;               // Its APIGroupDiscoveryList, ...
  std::shared_ptr<const std::string> resources;               // ... else its APIResourceList.
  std::shared_ptr<const std::string> openapi_v2, openapi_v3;  // Its v2 document, and the index of its v3 ones.
  std::string v2_etag;

  // Then its v3 document is made here, of the other.
  bool has_v2_alone() const { return openapi_v3 == nullptr && openapi_v2 != nullptr; }
};

// By group priority, group, version priority.
struct RemoteApis : std::vector<RemoteApi> {
  using std::vector<RemoteApi>::vector;

  struct Priorities {
    int64_t group = 0;  // The highest that any of its versions asks for.
    std::map<std::string, int64_t, std::less<>> versions;
  };
  // Of every group with an APIService, ours included.
  std::map<std::string, Priorities, std::less<>> priorities;

  int64_t group_priority(std::string_view group) const;
  int64_t version_priority(std::string_view group, std::string_view version) const;
};
using RemoteApisRef = std::shared_ptr<const RemoteApis>;

// What an APIService says of its server: Available.
struct Condition {
  std::string_view status, reason;
  std::string message;
};

class Aggregation {
 public:
  // Everything outlives it.
  struct Parts {
    const Clock& clock;
    const resource::Registry& registry;
    const services::ServiceAddresses& addresses;
    webhook::Caller& caller;
    custom::CustomServices& services;
    net::EventLoop& loop;  // Where APIServices are followed and their conditions are written.
    own_calls::Handler own;
    std::optional<net::Identity> identity;  // Shown to other servers.
  };
  explicit Aggregation(Parts parts) : parts_(std::move(parts)), loop_(parts_.loop), tasks_(loop_, "aggregation") {}

  void start();
  // Looks again at servers when it is time; on the loop.
  void tick();
  Task<void> close(Executor& executor);

  // False for most servers; costs nothing to ask.
  bool any() const { return any_.load(std::memory_order_acquire); }
  // Null: there are none.
  RemoteApisRef remotes() const;
  // Another number whenever what remotes() says of OpenAPI may have changed.
  uint64_t openapi_version() const { return openapi_version_.load(std::memory_order_acquire); }
  // Whether a request for this path goes to another server; answers it then.
  Task<bool> proxied(call::Call& call);

 private:
  Task<void> follow(net::EventLoop& loop);
  Task<void> check_all(net::EventLoop& loop);
  // The same; checking_ is false at its end, however it ends.
  Task<void> check(net::EventLoop& loop);
  // Asks the server of `remote` for a document of its own.
  Task<net::CallResult<net::ClientResponse>> ask(net::EventLoop& loop, const RemoteApi& remote,
                                                 const webhook::Address& address, std::string path,
                                                 std::string etag = {}, std::string accept = "application/json");
  // Whether it answers; `resources` is what it says of its version then.
  Task<Condition> availability(net::EventLoop& loop, const RemoteApi& remote, const Result<webhook::Address>& address,
                               std::string& resources);
  // What the server says of its resources; `plain` is its APIResourceList.
  Task<bool> read_discovery(net::EventLoop& loop, RemoteApi remote, webhook::Address address, std::string plain);
  Task<void> read_openapi(net::EventLoop& loop, RemoteApi remote, webhook::Address address);
  Task<void> write_condition(net::EventLoop& loop, std::string name, std::string_view status, std::string_view reason,
                             std::string message);
  void rebuild();
  // What is known of one of them, seen by everybody who asks from now on.
  void change(std::string_view uid, const std::function<void(RemoteApi&)>& edit);
  webhook::Trust trust_of(const RemoteApi& remote) const;
  Task<void> proxy(call::Call& call, RemoteApi remote);

  const Parts parts_;
  std::shared_ptr<cache::Watcher> watcher_;  // Owned by the loop, as what follows.
  net::EventLoop& loop_;
  TaskGroup tasks_;
  bool checking_ = false, changed_ = false;
  std::chrono::steady_clock::time_point next_check_{};
  std::atomic<bool> any_{false};
  std::atomic<uint64_t> openapi_version_{0};

  mutable std::mutex mutex_;
  RemoteApisRef remotes_;  // Guarded by mutex_.
};

// --- Discovery documents with what other servers have ---

Value with_remote_groups(Arena& arena, const Value& group_list, const RemoteApis& remotes);
// Null when neither has the group.
Value with_remote_versions(Arena& arena, const Value& group_document, std::string_view name, const RemoteApis& remotes);
Value with_remote_discovery(Arena& arena, const Value& aggregated, const RemoteApis& remotes);

}  // namespace holdfast::aggregate
