// Cluster addresses and node ports of Services: which are free.
//
// What is taken is learned once from the stored Services and kept in memory; a write takes a lease, which gives back
// what it took unless the write was stored. The addresses of a Service that cannot be read stay taken, by their
// IPAddresses; its node ports are recorded nowhere else, so none is allocated until it can be read or is deleted.
// Threading: any thread.
#pragma once

#include <cstdint>
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
#include "kinds/kinds.h"
#include "resource/resource.h"

namespace holdfast::services {

class ServicePools;

inline bool is_service(const types::Resource& resource) { return resource.group.empty() && resource.kind == "Service"; }

class ServiceLease {
 public:
  ServiceLease() = default;
  ServiceLease(ServiceLease&& other) noexcept { *this = std::move(other); }
  ServiceLease& operator=(ServiceLease&& other) noexcept;
  ~ServiceLease() { give_back(); }

  // The write was stored: what it allocated stays allocated, what it released is free.
  struct Kept {
    std::vector<std::string> taken, released;  // Addresses.
  };
  Kept keep();

 private:
  friend class ServicePools;
  void give_back();

  ServicePools* pools_ = nullptr;
  std::vector<std::string> ips_, released_ips_;
  std::vector<int32_t> ports_, released_ports_;
};

class ServicePools {
 public:
  // `cidr` is IPv4. Services and IPAddresses are looked up in these.
  ServicePools(std::string_view cidr, int32_t first_port, int32_t last_port, resource::Storage& services,
               resource::Storage& ip_objects);

  // Completes the service and fills in what it gets. Before prepare. A dry run does not ask whether an address is free,
  // as upstream's does not.
  Result<ServiceLease> lease_create(kinds::Context& context, Draft::Node service, bool dry_run);
  Result<ServiceLease> lease_update(kinds::Context& context, Draft::Node service, const Value& old, bool dry_run);
  // A service was deleted. Gives its addresses.
  std::vector<std::string> release(const Value& service);

 private:
  friend class ServiceLease;
  Result<ServiceLease> take(kinds::Context& context, Draft::Node service, const kinds::ServiceClaims& claims,
                            bool dry_run);
  // What is taken, as far as it is not known yet. Under the lock.
  Result<Unit> load();
  // A Service that could not be read when the others were: its node ports are unknown.
  std::optional<Error> unknown_ports() const;
  bool is_taken(const std::string& ip) const;
  std::string why_not_ip(std::string_view ip, bool dry_run) const;

  const std::string cidr_;
  uint32_t base_ = 0, count_ = 0;  // Of addresses, network and broadcast included.
  const int32_t first_port_, last_port_;
  resource::Storage& services_;
  resource::Storage& ip_objects_;

  std::mutex mutex_;  // Guards what follows.
  bool loaded_ = false;
  std::vector<std::string> unread_;  // Keys of Services that could not be read.
  std::unordered_set<std::string, KeyHash> ips_;
  std::unordered_set<int32_t> ports_;
  std::mt19937 random_{std::random_device{}()};
};

}  // namespace holdfast::services
