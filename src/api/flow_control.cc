#include "api/flow_control.h"

#include <chrono>

#include "api/storage.h"
#include "base/hash.h"

namespace holdfast::api {
namespace {

constexpr std::string_view kGroup = "flowcontrol.apiserver.k8s.io";
// The objects are few and change hardly ever.
constexpr std::chrono::milliseconds kLookInterval{100};

int64_t now_nanos() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

std::shared_ptr<const flow::Schemas> FlowControl::schemas() {
  if (now_nanos() >= next_look_.load(std::memory_order_relaxed)) refresh();
  return schemas_.load();
}

void FlowControl::refresh() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  next_look_.store(now_nanos() + std::chrono::nanoseconds(kLookInterval).count(), std::memory_order_relaxed);
  const Registry* registry = registry_.load();
  if (registry == nullptr) return;
  const Registry::SnapshotRef served = registry->snapshot();
  Arena arena;
  std::vector<store::Blob> bodies;  // Trees hold views into them.
  std::vector<Value> schemas, levels;
  uint64_t fingerprint = 0;
  std::vector<std::pair<Storage*, std::vector<cache::EntryRef>>> found;
  for (const std::string_view plural : {"flowschemas", "prioritylevelconfigurations"}) {
    const Served* resource = served->find(kGroup, "v1", plural);
    if (resource == nullptr || resource->storage == nullptr) return;
    Result<cache::Snapshot> snapshot = resource->storage->cache().snapshot();
    if (!snapshot) return;
    found.emplace_back(resource->storage, snapshot->list({}).entries);
    for (const cache::EntryRef& entry : found.back().second) {
      fingerprint = hash_combine(hash_bytes(entry->key(), fingerprint), entry->revision().value);
    }
  }
  if (schemas_.load() && fingerprint == seen_) return;
  for (auto& [storage, entries] : found) {
    std::vector<Value>& into = storage == found.front().first ? schemas : levels;
    for (const cache::EntryRef& entry : entries) {
      bodies.push_back(entry->body());
      if (Result<Value> tree = storage->codec().tree(arena, *bodies.back())) into.push_back(*tree);
    }
  }
  if (schemas.empty() || levels.empty()) return;
  std::shared_ptr<const flow::Schemas> made = flow::Schemas::build(schemas, levels);
  dispatcher_.configure(*made);
  schemas_.store(std::move(made));
  seen_ = fingerprint;
}

}  // namespace holdfast::api
