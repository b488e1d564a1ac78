// Role-based access control over the watch caches: roles and bindings take effect as soon as the caches have them.
//
// Threading: any thread. Decisions read an immutable index. The thread that finds it out of date makes the next one
// from what has changed; if that is much, a background thread does, and decisions follow the current index until then.
// Lifetime: close() waits for the background thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "auth/auth.h"
#include "base/metrics.h"
#include "base/task_group.h"
#include "cache/changes.h"
#include "rbac/rbac.h"
#include "resource/registry.h"

namespace holdfast::access {

class RbacAuthorizer final : public auth::Authorizer {
 public:
  // Until the caches are ready, only system:masters is allowed. All must outlive this object; `read_objects` counts the
  // roles and bindings that were decoded.
  RbacAuthorizer(const resource::Registry& registry, TimedExecutor& loop, Executor& background, Counter& read_objects)
      : registry_(registry), background_(background), read_objects_(read_objects), tasks_(loop, "RBAC") {}

  // Allows system:masters everything and all other users what the rules grant.
  auth::Decision authorize(const auth::Attributes& attributes) const override;
  std::shared_ptr<const rbac::Index> index() const;
  // Follows the caches even if nothing is authorized for some time. Call about every 100 ms.
  void tick() const;
  // Waits until decisions take every role and binding into account that has been stored by now.
  Task<void> catch_up(Executor& executor) const;
  // Call once, before the caches are closed.
  Task<void> close(Executor& executor) { return tasks_.close(executor); }

 private:
  static constexpr size_t kKinds = 4;
  using Snapshots = std::array<std::optional<cache::Snapshot>, kKinds>;
  using Changes = std::array<std::vector<cache::Change>, kKinds>;
  enum class Where : uint8_t { Here, IfLittle };

  // Brings the index up to date, unless another thread is about to.
  void refresh(Where where) const;
  // Nothing if a cache is not ready.
  std::optional<Snapshots> snapshots() const;
  void apply(const Changes& changes) const;
  Task<void> refresh_in_background() const;

  const resource::Registry& registry_;
  Executor& background_;
  Counter& read_objects_;
  mutable std::atomic<std::shared_ptr<const rbac::Index>> index_;
  mutable std::atomic<int64_t> next_refresh_{0};  // Steady clock, in nanoseconds.
  mutable std::atomic<bool> posted_{false};       // refresh_in_background() is about to run.
  mutable std::mutex mutex_;                      // Held while an index is built; guards seen_.
  mutable Snapshots seen_;                        // The snapshots that the index was built from.
  mutable TaskGroup tasks_;
};

}  // namespace holdfast::access
