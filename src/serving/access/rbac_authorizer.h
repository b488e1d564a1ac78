// Role-based access control over the watch caches: roles and bindings take effect as soon as the caches have them.
//
// Threading: any thread. Decisions read an immutable index; the thread that finds it out of date builds the next one.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "auth/auth.h"
#include "cache/cache.h"
#include "rbac/rbac.h"
#include "resource/registry.h"

namespace holdfast::access {

class RbacAuthorizer final : public auth::Authorizer {
 public:
  // Until the caches are ready, only system:masters is allowed. The registry must outlive this object.
  explicit RbacAuthorizer(const resource::Registry& registry) : registry_(registry) {}

  // Allows system:masters everything and all other users what the rules grant.
  auth::Decision authorize(const auth::Attributes& attributes) const override;
  std::shared_ptr<const rbac::Index> index() const;

 private:
  void refresh() const;

  const resource::Registry& registry_;
  mutable std::atomic<std::shared_ptr<const rbac::Index>> index_;
  mutable std::atomic<int64_t> next_refresh_{0};                // Steady clock, in nanoseconds.
  mutable std::mutex mutex_;                                    // Held while an index is built; guards seen_.
  mutable std::array<std::optional<cache::Snapshot>, 4> seen_;  // The snapshots that the index was built from.
};

}  // namespace holdfast::access
