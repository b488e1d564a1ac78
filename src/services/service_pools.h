// Cluster addresses and node ports of Services: which are free.
//
// A write takes a lease on what its Service needs, and then keeps it or gives it back:
//
//   lease_create, lease_update -> the write -> keep (stored), give_back (not stored) or leave (nobody knows)
//
// On an embedded store this server is the only one that allocates: what is taken is learned once from the stored
// Services and kept in memory. On an etcd, other servers allocate as well, kube-apiserver among them: node ports and
// addresses are taken in the ledgers that all of them share (PortLedger, IpObjects) before the Service is stored. What
// is taken there and then neither stored nor given back, because a server or its etcd stopped, is found by repair().
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

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/task.h"
#include "cache/cache.h"
#include "kinds/kinds.h"
#include "resource/resource.h"
#include "services/ip_objects.h"
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

  struct Address {
    std::string ip;
    Revision object;  // Of its IPAddress, which was made with it; 0: taken in memory.
  };
  ServicePools* pools_ = nullptr;  // Null: there is nothing in it.
  std::vector<Address> ips_;
  std::vector<std::string> released_ips_;
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
  // Both outlive it. The ledger is where Services are.
  ServicePools(Options options, const resource::Registry& registry, const Clock& clock);

  // Completes the service, whose name and namespace are set, and fills in what it gets. Before prepare. A dry run takes
  // nothing, and does not ask whether an address is free, as upstream's does not. These resume on `executor`.
  Task<Result<ServiceLease>> lease_create(kinds::Context& context, Draft::Node service, bool dry_run,
                                          Executor& executor);
  Task<Result<ServiceLease>> lease_update(kinds::Context& context, Draft::Node service, const Value& old, bool dry_run,
                                          Executor& executor);
  // The service was stored: what it took stays taken, what it let go is free.
  Task<void> keep(ServiceLease lease, Value service, Executor& executor);
  // It was not stored.
  Task<void> give_back(ServiceLease lease, Executor& executor);
  // It may have been stored: what it took in the store stays taken, until a repair finds that nobody uses it.
  void leave(ServiceLease lease) { lease.forget(); }
  // A service was deleted.
  Task<void> release(Value service, Executor& executor);

  // Compares the ledgers with the Services, and repairs them; makes that of node ports if there is none. Once at the
  // start, and every few minutes. Nothing to do on an embedded store.
  Task<Result<Unit>> repair(Executor& executor);

 private:
  friend class ServiceLease;
  bool shared() const { return ledger_ != nullptr; }

  // What the claims of one Service came to. In the lease is what was taken, also where not all of it was.
  struct Taking {
    Value service;
    const kinds::ServiceClaims& claims;
    bool dry_run;
    Executor& executor;
    ServiceLease lease = {};
    std::vector<std::string> ips = {};
    std::vector<int32_t> ports = {};
  };
  Task<Result<ServiceLease>> take(kinds::Context& context, Draft::Node service, const kinds::ServiceClaims& claims,
                                  bool dry_run, Executor& executor);
  Result<Unit> take_local_ips(Taking& taking);
  Task<Result<Unit>> take_shared_ips(Taking& taking);
  // Any address; nothing: there is none left.
  Task<Result<std::optional<std::string>>> take_any_shared_ip(Taking& taking);
  Task<Result<Unit>> take_ports_of(Taking& taking);
  Result<PortsTaken> take_local_ports(std::span<const int32_t> wanted, bool dry_run);
  Task<Result<PortsTaken>> take_shared_ports(std::vector<int32_t> wanted, bool dry_run, Executor& executor);
  Task<void> release_ports(std::vector<int32_t> ports, Executor& executor);
  Task<Result<Unit>> repair_ports(Executor& executor);
  // The node ports that Services use.
  Result<PortBitmap> used_ports(const cache::Snapshot& services) const;

  // What is taken, as far as it is not known yet. Under the lock.
  Result<Unit> load();
  // A Service that could not be read when the others were: its node ports are unknown.
  std::optional<Error> unknown_ports() const;
  bool is_taken(const std::string& ip) const;
  bool in_range(std::string_view ip) const;
  std::string not_in_range() const {
    return "provided IP is not in the valid range. The range of valid IPs is " + cidr_;
  }
  // Where to begin looking for a free address, and the address that many steps later.
  uint32_t first_candidate();
  std::string candidate(uint32_t start, uint32_t step) const;

  const std::string cidr_;
  uint32_t base_ = 0, count_ = 0;  // Of addresses, network and broadcast included.
  resource::Storage& services_;
  IpObjects ip_objects_;
  const std::unique_ptr<PortLedger> ledger_;  // Null: this server is the only one.

  std::mutex mutex_;  // Guards what follows.
  bool loaded_ = false;
  std::vector<std::string> unread_;               // Keys of Services that could not be read.
  std::unordered_set<std::string, KeyHash> ips_;  // Where this server is the only one.
  PortBitmap ports_;                              // Likewise.
  LeakedPorts leaked_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace holdfast::services
