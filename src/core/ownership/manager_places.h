// Lists of managers as clients may send them: thousands of entries, and invalid ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "ownership/managed.h"

namespace holdfast::ownership {

// Entries that the managedFields of one object may have; the API rejects more, unless it had as many already. In
// kube-apiserver, the largest object that etcd stores may have about 35,000.
inline constexpr size_t kMaxManagers = 50'000;

// Whether Kubernetes' validation accepts the entry (ValidateManagedFields): a manager of at most 128 characters, all of
// them printable, and a subresource of at most 256 bytes. Decoding has checked the rest.
bool is_valid(const ManagerEntry& entry);

// Finds entries by manager, in constant time each. The list may grow meanwhile; its entries may change, but not their
// managers.
class ManagerPlaces {
 public:
  explicit ManagerPlaces(Managed& managed) : managed_(managed) {}
  // The position of this manager's entry, or the size of the list.
  size_t find(const ManagerEntry& who);
  // Adds the entry, or replaces that of the same manager.
  void put(const ManagerEntry& entry);

 private:
  Managed& managed_;
  std::unordered_multimap<uint64_t, size_t> by_hash_;  // Empty if there are few.
  size_t indexed_ = 0;                                 // Entries in it.
};

}  // namespace holdfast::ownership
