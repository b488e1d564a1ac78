// Role-based access control over the watch caches: roles and bindings decide as soon as the caches have them.
//
// Threading: any thread. A decision reads an immutable index; whoever finds it out of date makes the next one.
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
  // Until the caches are ready, only system:masters may act. The registry must outlive this.
  explicit RbacAuthorizer(const resource::Registry& registry) : registry_(registry) {}

  // system:masters may do everything, all others what the rules grant.
  auth::Decision authorize(const auth::Attributes& attributes) const override;
  std::shared_ptr<const rbac::Index> index() const;

 private:
  void refresh() const;

  const resource::Registry& registry_;
  mutable std::atomic<std::shared_ptr<const rbac::Index>> index_;
  mutable std::atomic<int64_t> next_look_{0};                   // Of the steady clock, in nanoseconds.
  mutable std::mutex mutex_;                                    // Held while an index is made; guards seen_.
  mutable std::array<std::optional<cache::Snapshot>, 4> seen_;  // What the index was made of.
};

}  // namespace holdfast::access
