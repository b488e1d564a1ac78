#include "access/rbac_authorizer.h"

#include <chrono>
#include <utility>

#include "resource/storage.h"

namespace holdfast::access {

namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
// In the order of rbac::Kind.
constexpr std::string_view kPlurals[] = {"roles", "clusterroles", "rolebindings", "clusterrolebindings"};

// Maximum age of an index before the caches are checked again; a check costs four comparisons. A small change takes
// effect at most this long after it reaches the cache.
constexpr std::chrono::milliseconds kRefreshInterval{1};

// Changed objects of more bytes than this are read in the background: a role may have a megabyte, and an event loop
// would be blocked for as long as it is decoded.
constexpr uint64_t kLittleBytes = 64 << 10;
constexpr size_t kLittleCount = 100;

int64_t now_nanos() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

std::shared_ptr<const rbac::Index> RbacAuthorizer::index() const {
  const int64_t now = now_nanos();
  if (now >= next_refresh_.load(std::memory_order_relaxed)) refresh(Where::IfLittle);
  return index_.load();
}

auth::Decision RbacAuthorizer::authorize(const auth::Attributes& attributes) const {
  if (attributes.user->in_group(auth::kMastersGroup)) return {auth::Decision::Verdict::Allow, {}};
  const std::shared_ptr<const rbac::Index> rules = index();
  return rules ? rules->authorize(attributes) : auth::Decision{};
}

void RbacAuthorizer::tick() const { (void)index(); }

Task<void> RbacAuthorizer::catch_up(Executor& executor) const {
  const resource::Registry::SnapshotRef served = registry_.snapshot();
  for (const std::string_view plural : kPlurals) {
    const resource::Served* resource = served->find(kGroup, "v1", plural);
    // If the store cannot be read, the cache follows when it can, and the index with it.
    if (resource != nullptr && resource->storage != nullptr) {
      (void)co_await resource->storage->cache().consistent(executor);
    }
  }
  co_await resume_on(background_);
  refresh(Where::Here);
  co_await resume_on(executor);
}

std::optional<RbacAuthorizer::Snapshots> RbacAuthorizer::snapshots() const {
  const resource::Registry::SnapshotRef served = registry_.snapshot();
  Snapshots now;
  for (size_t i = 0; i < kKinds; ++i) {
    const resource::Served* resource = served->find(kGroup, "v1", kPlurals[i]);
    if (resource == nullptr || resource->storage == nullptr) return {};
    Result<cache::Snapshot> snapshot = resource->storage->cache().snapshot();
    if (!snapshot) return {};
    now[i] = std::move(*snapshot);
  }
  return now;
}

void RbacAuthorizer::refresh(Where where) const {
  // The first index is waited for; later ones are built by one thread while the others keep using the current index.
  std::unique_lock lock(mutex_, std::defer_lock);
  const bool first = index_.load() == nullptr;
  if (first || where == Where::Here) {
    lock.lock();
  } else if (posted_.load(std::memory_order_acquire) || !lock.try_lock()) {
    return;
  }
  next_refresh_.store(now_nanos() + std::chrono::nanoseconds(kRefreshInterval).count(), std::memory_order_relaxed);

  std::optional<Snapshots> now = snapshots();
  if (!now) return;
  Changes changes;
  size_t count = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < kKinds; ++i) {
    changes[i] = cache::changes_between(seen_[i].value_or(cache::Snapshot{}), *(*now)[i]);
    count += changes[i].size();
    for (const cache::Change& change : changes[i]) bytes += change.now ? change.now->body_bytes() : 0;
  }
  if (!first && where == Where::IfLittle && (bytes > kLittleBytes || count > kLittleCount)) {
    if (posted_.exchange(true, std::memory_order_acq_rel)) return;
    tasks_.post([this] { return refresh_in_background(); });
    return;
  }
  apply(changes);
  seen_ = std::move(*now);
}

void RbacAuthorizer::apply(const Changes& changes) const {
  const resource::Registry::SnapshotRef served = registry_.snapshot();
  rbac::Index::Edit edit(index_.load());
  for (size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<rbac::Kind>(i);
    const resource::ObjectCodec& codec = served->storage_of(kGroup, kPlurals[i])->codec();
    for (const auto& [before, now] : changes[i]) {
      const cache::Entry& entry = now ? *now : *before;
      const std::string key = std::string(entry.namespace_name()) + "/" + std::string(entry.name());
      if (!now) {
        edit.erase(kind, key);
        continue;
      }
      // After the cache has listed again, an object is another entry of the same revision.
      if (before && before->revision() == now->revision()) continue;
      Arena arena;
      const store::Blob body = now->body();
      read_objects_.add();
      if (Result<Value> tree = codec.tree(arena, *body)) {
        edit.put(kind, key, *tree);
      } else {
        edit.erase(kind, key);
      }
    }
  }
  index_.store(edit.build());
}

Task<void> RbacAuthorizer::refresh_in_background() const {
  co_await resume_on(background_);
  // What changes from now on is another matter.
  posted_.store(false, std::memory_order_release);
  refresh(Where::Here);
}

}  // namespace holdfast::access
