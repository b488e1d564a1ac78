// The endpoints of the Service default/kubernetes where several API servers may share an etcd: each adds its address,
// and removes it when it stops. Endpoints and EndpointSlice are kube-apiserver's (pkg/controlplane/reconcilers):
//
//   lease         every server keeps a key alive, /registry/masterleases/ADDRESS; the addresses are those of the keys
//   master-count  every server adds its own address, and removes others where there are more than --apiserver-count
//
// The addresses of a server that does not stop in order go when its key expires (lease), or stay (master-count).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/api.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/task.h"
#include "base/task_group.h"
#include "net/net.h"
#include "own_calls/own_calls.h"
#include "store/store.h"
#include "value/value.h"

namespace holdfast::server {

// --- What the objects should be: pure. `live` is the Endpoints object that there is; null: there is none. ---

struct OwnAddress {
  std::string ip;
  uint16_t port = 0;
};

// With exactly these addresses. Nothing: they are right. Ports are only looked at with `ports`, as a server that starts
// or stops does: the others do not know which of them is right.
std::optional<Value> endpoints_with(Arena& arena, const Value& live, std::vector<std::string> ips, uint16_t port,
                                    bool ports);
// With this address beside the others, of which there are then at most `count` in all.
std::optional<Value> endpoints_adding(Arena& arena, const Value& live, const OwnAddress& own, size_t count, bool ports);
// Without this address.
std::optional<Value> endpoints_removing(Arena& arena, const Value& live, std::string_view ip);
// The EndpointSlice of Endpoints; without metadata but its name, namespace and labels.
Value slice_of(Arena& arena, const Value& endpoints);

// Runs on one loop. Everything outlives it; the API must still answer when it is closed.
class OwnEndpoints {
 public:
  enum class Kind : uint8_t { Lease, MasterCount };
  struct Options {
    Kind kind = Kind::Lease;
    OwnAddress own;
    size_t count = 1;          // With master-count.
    std::string lease_prefix;  // "/registry/masterleases/"
  };
  OwnEndpoints(api::Api& api, store::Store& store, net::EventLoop& loop, Options options);

  // Once now; on the loop. What fails is logged: the next time may succeed.
  Task<void> run();
  // Then from time to time.
  void start();
  // Ends that, and removes the address.
  Task<void> close(Executor& executor);

 private:
  enum class When : uint8_t { Starting, Running, Stopping };
  Task<void> keep_running();
  Task<void> attempt(When when);
  Task<Result<Unit>> reconcile(When when);
  // Conflict: another server came in between.
  Task<Result<Unit>> write_objects(When when);
  Task<Result<Unit>> renew_lease();
  Task<Result<Unit>> remove_lease();
  Task<Result<std::vector<std::string>>> leased();
  Task<Result<Unit>> write_endpoints(const Value& live, Value next);
  Task<Result<Unit>> follow_with_slice(Value endpoints);
  // The answer as a tree in the arena; null: there is no such object.
  Task<Result<Value>> call(Arena& arena, std::string method, std::string target, std::string body = {});

  const own_calls::OwnCalls calls_;
  store::Store& store_;
  net::EventLoop& loop_;
  const Options options_;
  TaskGroup tasks_;
};

}  // namespace holdfast::server
