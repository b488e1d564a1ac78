// Allocation of cluster IPs and node ports to Services.
//
// A write takes a lease on what its Service needs, then keeps it or gives it back:
//
//   lease_create, lease_update -> the write -> keep (stored), give_back (not stored) or leave (unknown)
//
// With an embedded store this server is the only allocator: allocations are loaded once from the stored Services and
// kept in memory. With etcd, other servers allocate too, kube-apiserver among them: node ports and IPs are allocated in
// the ledgers shared by all of them (PortLedger, IpObjects) before the Service is stored. Allocations that are neither
// stored nor given back, because a server or its etcd stopped, are found by repair().
//
// The IPs of a Service that cannot be decoded stay allocated through their IPAddresses. Its node ports are recorded
// only in the ledger; without a ledger, no port is allocated until the Service can be decoded or is deleted.
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
#include "services/service_ranges.h"

namespace holdfast::services {

class ServicePools;

inline bool is_service(const types::Resource& resource) { return resource.group.empty() && resource.kind == "Service"; }

// The allocations of one write, and those it releases. Destroying a lease gives back what is allocated in memory.
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
    Revision object;  // Revision of the IPAddress created for it; 0 if allocated in memory.
  };
  ServicePools* pools_ = nullptr;  // Null if the lease is empty.
  std::vector<Address> ips_;
  std::vector<std::string> released_ips_;
  std::vector<int32_t> ports_, released_ports_;
};

class ServicePools {
 public:
  struct Options {
    // Ranges of --service-cluster-ip-range; further ones are those of ServiceCIDRs (see ServiceRanges).
    std::vector<std::string> cidrs;
    int32_t first_port = 0, last_port = 0;
    // Key of the node port ledger. Empty if this server is the only one on its store.
    std::string port_ledger = {};
  };
  // Both must outlive this object. The ledger is in the store of Services.
  ServicePools(Options options, const resource::Registry& registry, const Clock& clock);

  // Allocates for the service, whose name and namespace are set, and fills in the allocated values. Call before
  // prepare. Like upstream, a dry run allocates nothing, does not check whether an IP is free, and shows the network's
  // address as the IP that would be chosen. These tasks resume on `executor`.
  Task<Result<ServiceLease>> lease_create(kinds::Context& context, Draft::Node service, bool dry_run,
                                          Executor& executor);
  Task<Result<ServiceLease>> lease_update(kinds::Context& context, Draft::Node service, const Value& old, bool dry_run,
                                          Executor& executor);
  // The service was stored: its allocations are final, and what it released is freed.
  Task<void> keep(ServiceLease lease, Value service, Executor& executor);
  // The service was not stored.
  Task<void> give_back(ServiceLease lease, Executor& executor);
  // The service may have been stored: its allocations in the store remain until a repair finds them unused.
  void leave(ServiceLease lease) { lease.forget(); }
  // The service was deleted.
  Task<void> release(Value service, Executor& executor);

  // Reconciles the ledgers with the Services; creates the node port ledger if it does not exist. Run at startup and
  // every few minutes. A no-op with an embedded store.
  Task<Result<Unit>> repair(Executor& executor);

 private:
  friend class ServiceLease;
  bool shared() const { return ledger_ != nullptr; }

  // Allocation in progress for one Service. The lease holds everything allocated so far, even if it is incomplete.
  struct ServiceAllocation {
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
  using Ranges = std::shared_ptr<const ServiceRanges::List>;
  // Checks the range of the IP that was requested, if any, and does what a dry run does. True if there is nothing left
  // to allocate.
  Result<bool> take_without_allocating(ServiceAllocation& taking, const ServiceRanges::List& ranges, size_t claim);
  Result<Unit> take_local_ips(ServiceAllocation& taking, const ServiceRanges::List& ranges);
  Task<Result<Unit>> take_shared_ips(ServiceAllocation& taking, Ranges ranges);
  // Allocates any IP; nullopt if none is left.
  Task<Result<std::optional<std::string>>> take_any_shared_ip(ServiceAllocation& taking, Ranges ranges,
                                                              std::string_view family);
  IpRange::Search search(const IpRange& range);
  // Creates the missing IPAddresses of a stored Service: it may be older than they are.
  Task<void> claim_missing(Value service, std::span<const ServiceLease::Address> taken, Executor& executor);
  Task<Result<Unit>> take_ports_of(ServiceAllocation& taking);
  Result<AllocatedPorts> take_local_ports(std::span<const int32_t> wanted, bool dry_run);
  Task<Result<AllocatedPorts>> take_shared_ports(std::vector<int32_t> wanted, bool dry_run, Executor& executor);
  Task<void> release_ports(std::vector<int32_t> ports, Executor& executor);
  Task<Result<Unit>> repair_ports(Executor& executor);
  // The node ports used by Services.
  Result<PortBitmap> used_ports(const cache::Snapshot& services) const;

  // Loads the current allocations if they are not known yet. Requires the lock.
  Result<Unit> load();
  // The error for Services that could not be decoded by load(): their node ports are unknown.
  std::optional<Error> unknown_ports() const;
  bool is_taken(const std::string& ip) const;

  ServiceRanges ranges_;
  resource::Storage& services_;
  IpObjects ip_objects_;
  const std::unique_ptr<PortLedger> ledger_;  // Null if this server is the only one.

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  std::vector<std::string> unread_;               // Keys of Services that could not be decoded.
  std::unordered_set<std::string, KeyHash> ips_;  // In canonical form. Only used without a ledger.
  PortBitmap ports_;                              // Same.
  LeakedPorts leaked_;
  std::mt19937 random_{std::random_device{}()};
  std::mt19937_64 address_random_{std::random_device{}()};
};

}  // namespace holdfast::services
