// The endpoints of the Service default/kubernetes when several API servers may share an etcd: each adds its address,
// and removes it when it stops. Endpoints and EndpointSlice are the same as kube-apiserver's
// (pkg/controlplane/reconcilers):
//
//   lease         every server keeps a key alive, /registry/masterleases/ADDRESS; the keys determine the addresses
//   master-count  every server adds its own address, and removes others if there are more than --apiserver-count
//
// The address of a server that does not shut down cleanly is removed when its key expires (lease), or stays
// (master-count).
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
#include "own_calls/requests.h"
#include "store/store.h"
#include "value/value.h"

namespace holdfast::server {

// --- Desired state of the objects (pure functions). `live` is the current Endpoints object, or null. ---

struct OwnAddress {
  std::string ip;
  uint16_t port = 0;
};

// Endpoints with exactly these addresses; nullopt if nothing changes. Ports are only compared with `ports`, which is
// set while a server starts or stops: the others do not know which port is right.
std::optional<Value> endpoints_with(Arena& arena, const Value& live, std::vector<std::string> ips, uint16_t port,
                                    bool ports);
// With this address added, and others removed if there would be more than `count`.
std::optional<Value> endpoints_adding(Arena& arena, const Value& live, const OwnAddress& own, size_t count, bool ports);
// Without this address.
std::optional<Value> endpoints_removing(Arena& arena, const Value& live, std::string_view ip);
// The EndpointSlice for Endpoints; its metadata has only name, namespace and labels.
Value slice_of(Arena& arena, const Value& endpoints);

// Runs on one loop. Everything passed to it must outlive it; the API must still be running when it is closed.
class OwnEndpoints {
 public:
  enum class Kind : uint8_t { Lease, MasterCount };
  struct Options {
    Kind kind = Kind::Lease;
    OwnAddress own;
    size_t count = 1;          // For master-count.
    std::string lease_prefix;  // "/registry/masterleases/"
  };
  OwnEndpoints(api::Api& api, store::Store& store, net::EventLoop& loop, Options options);

  // Reconciles once; on the loop. Failures are logged; the next run may succeed.
  Task<void> run();
  // Then runs periodically.
  void start();
  // Stops, and removes the address if the last run reached the store.
  Task<void> close(Executor& executor);

 private:
  enum class When : uint8_t { Starting, Running, Stopping };
  Task<void> keep_running();
  Task<void> attempt(When when);
  Task<Result<Unit>> reconcile(When when);
  // Conflict if another server wrote in the meantime.
  Task<Result<Unit>> write_objects(When when);
  Task<Result<Unit>> renew_lease();
  Task<Result<Unit>> remove_lease();
  Task<Result<std::vector<std::string>>> leased();
  Task<Result<Unit>> write_endpoints(const Value& live, Value next);
  Task<Result<Unit>> follow_with_slice(Value endpoints);
  // The object, decoded into the arena; null if it does not exist.
  Task<Result<Value>> read(Arena& arena, own_calls::Target object);
  // Conflict if another server wrote in the meantime.
  Task<Result<Unit>> write(own_calls::Request change);

  const own_calls::OwnCalls calls_;
  store::Store& store_;
  net::EventLoop& loop_;
  const Options options_;
  TaskGroup tasks_;
  bool reached_store_ = false;  // In the last attempt.
};

}  // namespace holdfast::server
