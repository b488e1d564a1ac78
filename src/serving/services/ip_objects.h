// IPAddress objects for the cluster IPs of Services (KEP 1880): one per IP in use.
//
// With etcd they are the ledger of IPs shared by all API servers: creating the object allocates the IP.
// Threading: any thread; tasks resume on the given executor.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/task.h"
#include "cache/cache.h"
#include "resource/resource.h"
#include "store/store.h"

namespace holdfast::services {

class IpObjects {
 public:
  struct Service {
    std::string ns, name;
    bool operator==(const Service&) const = default;
  };

  // Both must outlive this object.
  IpObjects(const resource::Registry& registry, const Clock& clock);

  // The IPs currently known to be allocated, including those whose object cannot be decoded.
  Result<cache::Snapshot> snapshot() const;
  static bool has(const cache::Snapshot& objects, std::string_view ip);

  // Allocates the IP; returns the revision of its new object, or nullopt if it is already allocated. After a store
  // error the object may exist nevertheless; repair() removes it.
  Task<Result<std::optional<Revision>>> claim(std::string ip, Service owner, Executor& executor);
  // Undoes claim(), unless the object has been changed since.
  Task<void> give_back(std::string ip, Revision claimed, Executor& executor);
  // Frees the IPs of a stored Service that still belong to it.
  Task<void> release(std::vector<std::string> ips, Service owner, Executor& executor);

  // Creates missing objects for Services and removes those that no Service uses (ipallocator/controller/repairip.go).
  Task<Result<Unit>> repair(resource::Storage& services, Executor& executor);

 private:
  struct Held;
  // The encoded object, ready to store.
  Result<store::Blob> object_of(std::string_view ip, const Service& owner) const;
  Result<Value> tree_of(Arena& arena, const cache::Entry& entry) const;
  Task<bool> write(store::Operation operation, Executor& executor);
  Task<void> repair_services(const Held& held, cache::Snapshot objects, Executor& executor);
  Task<void> remove_orphans(const Held& held, cache::Snapshot objects, Executor& executor);

  const resource::Registry::SnapshotRef registry_;
  const resource::Served& served_;
  resource::Storage& storage_;
  const Clock& clock_;
};

}  // namespace holdfast::services
