// IPAddress objects of the cluster addresses of Services (KEP 1880): one for each address that a Service holds.
//
// On an etcd they are the ledger of addresses that all API servers share: who creates the object has the address.
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

  // Both outlive it.
  IpObjects(const resource::Registry& registry, const Clock& clock);

  // What is known now of who has which address. An object that cannot be read has its address, too.
  Result<cache::Snapshot> snapshot() const;
  static bool has(const cache::Snapshot& objects, std::string_view ip);

  // Takes the address: the revision of its new object. Nothing: someone has it. After an error of the store the object
  // may be there all the same, and a repair removes it.
  Task<Result<std::optional<Revision>>> claim(std::string ip, Service owner, Executor& executor);
  // Lets go what claim() took, unless someone has changed it meanwhile.
  Task<void> give_back(std::string ip, Revision claimed, Executor& executor);
  // The same for addresses that a stored Service held.
  Task<void> release(std::vector<std::string> ips, Service owner, Executor& executor);

  // Makes the objects that Services lack, and removes those that no Service has (ipallocator/controller/repairip.go).
  Task<Result<Unit>> repair(resource::Storage& services, Executor& executor);

 private:
  struct Held;
  // The value to store.
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
