// Cluster addresses and node ports of Services: which are free.
//
// A write takes a lease on what its Service needs, and then keeps it or gives it back:
//
//   lease_create, lease_update -> the write -> keep (stored), give_back (not stored) or leave (nobody knows)
//
// On an embedded store this server is the only one that allocates: what is taken is learned once from the stored
// Services and kept in memory. On an etcd, other servers allocate as well, kube-apiserver among them: node ports are
// taken in the ledger that all of them share (PortLedger).
//
// The addresses of a Service that cannot be read stay taken, by their IPAddresses. Its node ports are recorded nowhere
// else than in the ledger; where there is none, no port is allocated until it can be read or is deleted.
// Threading: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/task.h"
#include "cache/cache.h"
#include "call/call.h"
#include "kinds/kinds.h"
#include "resource/resource.h"
#include "services/port_bitmap.h"
#include "services/port_ledger.h"

namespace holdfast::services {

class ServicePools;

inline bool is_service(const types::Resource& resource) { return resource.group.empty() && resource.kind == "Service"; }

// What one write has taken, and what it lets go. Destroying one gives back what is taken in memory.
class ServiceLease {
 public:
  ServiceLease() = default;
  ServiceLease(ServiceLease&& other) noexcept { *this = std::move(other); }
  ServiceLease& operator=(ServiceLease&& other) noexcept;
  ~ServiceLease() { forget(); }

  bool empty() const { return pools_ == nullptr; }

 private:
  friend class ServicePools;
  void forget();

  ServicePools* pools_ = nullptr;  // Null: there is nothing in it.
  std::vector<std::string> ips_, released_ips_;
  std::vector<int32_t> ports_, released_ports_;
};

class ServicePools {
 public:
  struct Options {
    std::string cidr;  // IPv4.
    int32_t first_port = 0, last_port = 0;
    // The key of the ledger of node ports. Empty: this server is the only one on its store.
    std::string port_ledger = {};
  };
  // Services and IPAddresses are looked up in these, and the ledger is where Services are.
  ServicePools(Options options, resource::Storage& services, resource::Storage& ip_objects);

  // Completes the service and fills in what it gets. Before prepare. A dry run takes nothing, and does not ask whether
  // an address is free, as upstream's does not.
  Task<Result<ServiceLease>> lease_create(call::Call& call, kinds::Context& context, Draft::Node service, bool dry_run);
  Task<Result<ServiceLease>> lease_update(call::Call& call, kinds::Context& context, Draft::Node service,
                                          const Value& old, bool dry_run);
  // The service was stored: what it took stays taken, what it let go is free.
  Task<void> keep(call::Call& call, ServiceLease lease, Value service);
  // It was not stored.
  Task<void> give_back(call::Call& call, ServiceLease lease);
  // It may have been stored: what it took in the store stays taken, until a repair finds that nobody uses it.
  void leave(ServiceLease lease) { lease.forget(); }
  // A service was deleted.
  Task<void> release(call::Call& call, Value service);

  // Compares the ledger with the Services, and repairs it; makes it if there is none. Once at the start, and every
  // few minutes. Nothing to do on an embedded store.
  Task<Result<Unit>> repair(Executor& executor);

 private:
  friend class ServiceLease;
  Task<Result<ServiceLease>> take(call::Call& call, kinds::Context& context, Draft::Node service,
                                  const kinds::ServiceClaims& claims, bool dry_run);
  // Each fills in what was taken, also where an error says why not all of it was.
  std::optional<Error> take_ips(const Value& service, const kinds::ServiceClaims& claims, bool dry_run,
                                ServiceLease& lease, std::vector<std::string>& ips);
  Task<Result<std::vector<int32_t>>> take_ports_of(call::Call& call, Value service, const kinds::ServiceClaims& claims,
                                                   bool dry_run, ServiceLease& lease);
  Result<PortsTaken> take_local_ports(std::span<const int32_t> wanted, bool dry_run);
  Task<Result<PortsTaken>> take_shared_ports(std::vector<int32_t> wanted, bool dry_run, Executor& executor);
  Task<void> release_ports(call::Call& call, std::vector<int32_t> ports);
  // The node ports that Services use.
  Result<PortBitmap> used_ports(const cache::Snapshot& services) const;

  // What is taken, as far as it is not known yet. Under the lock.
  Result<Unit> load();
  // A Service that could not be read when the others were: its node ports are unknown.
  std::optional<Error> unknown_ports() const;
  bool is_taken(const std::string& ip) const;
  std::string why_not_ip(std::string_view ip, bool dry_run) const;

  const std::string cidr_;
  uint32_t base_ = 0, count_ = 0;  // Of addresses, network and broadcast included.
  resource::Storage& services_;
  resource::Storage& ip_objects_;
  const std::unique_ptr<PortLedger> ledger_;  // Null: this server is the only one.

  std::mutex mutex_;  // Guards what follows.
  bool loaded_ = false;
  std::vector<std::string> unread_;  // Keys of Services that could not be read.
  std::unordered_set<std::string, KeyHash> ips_;
  PortBitmap ports_;  // Without a ledger.
  LeakedPorts leaked_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace holdfast::services
