#include "access/rbac_authorizer.h"

#include <array>
#include <chrono>

#include "resource/storage.h"

namespace holdfast::access {

namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::array<std::string_view, 4> kPlurals = {"roles", "clusterroles", "rolebindings", "clusterrolebindings"};

// Maximum age of an index before the caches are checked again; a check costs four comparisons. A change takes effect at
// most this long after it reaches the cache.
constexpr std::chrono::milliseconds kRefreshInterval{1};

int64_t now_nanos() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

std::shared_ptr<const rbac::Index> RbacAuthorizer::index() const {
  const int64_t now = now_nanos();
  if (now >= next_refresh_.load(std::memory_order_relaxed)) refresh();
  return index_.load();
}

auth::Decision RbacAuthorizer::authorize(const auth::Attributes& attributes) const {
  if (attributes.user->in_group(auth::kMastersGroup)) return {auth::Decision::Verdict::Allow, {}};
  const std::shared_ptr<const rbac::Index> rules = index();
  return rules ? rules->authorize(attributes) : auth::Decision{};
}

void RbacAuthorizer::refresh() const {
  // The first index is waited for; later ones are built by one thread while the others keep using the current index.
  std::unique_lock lock(mutex_, std::defer_lock);
  if (index_.load()) {
    if (!lock.try_lock()) return;
  } else {
    lock.lock();
  }
  next_refresh_.store(now_nanos() + std::chrono::nanoseconds(kRefreshInterval).count(), std::memory_order_relaxed);

  const resource::Registry::SnapshotRef served = registry_.snapshot();
  std::array<resource::Storage*, 4> storages{};
  std::array<std::optional<cache::Snapshot>, 4> now;
  bool changed = !index_.load();
  for (size_t i = 0; i < kPlurals.size(); ++i) {
    const resource::Served* resource = served->find(kGroup, "v1", kPlurals[i]);
    if (resource == nullptr || resource->storage == nullptr) return;
    storages[i] = resource->storage;
    Result<cache::Snapshot> snapshot = storages[i]->cache().snapshot();
    if (!snapshot) return;
    changed = changed || !seen_[i] || !seen_[i]->same_objects(*snapshot);
    now[i] = std::move(*snapshot);
  }
  if (!changed) return;

  Arena arena;
  std::vector<store::Blob> bodies;  // The trees hold views into these.
  std::array<rbac::Index::Objects, 4> objects;
  for (size_t i = 0; i < kPlurals.size(); ++i) {
    for (const cache::EntryRef& entry : now[i]->list({}).entries) {
      bodies.push_back(entry->body());
      Result<Value> tree = storages[i]->codec().tree(arena, *bodies.back());
      if (!tree) continue;
      objects[i].emplace(std::string(entry->namespace_name()) + "/" + std::string(entry->name()), *tree);
    }
  }
  index_.store(rbac::Index::build(objects[0], objects[1], objects[2], objects[3]));
  seen_ = std::move(now);
}

}  // namespace holdfast::access
