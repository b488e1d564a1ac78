#include "api/registry.h"

#include <algorithm>
#include <set>

namespace holdfast::api {
namespace {

std::string key_of(std::string_view group, std::string_view version, std::string_view name) {
  std::string key;
  key.reserve(group.size() + version.size() + name.size() + 2);
  key.append(group).append(1, '/').append(version).append(1, '/').append(name);
  return key;
}

const std::set<std::string_view>& builtin_groups() {
  static const std::set<std::string_view> groups = [] {
    std::set<std::string_view> all;
    for (const types::Resource& resource : types::builtin_resources()) all.insert(resource.group);
    return all;
  }();
  return groups;
}

}  // namespace

bool Served::has_verb(std::string_view verb) const {
  return std::find(resource->verbs.begin(), resource->verbs.end(), verb) != resource->verbs.end();
}

const types::Subresource* Served::subresource(std::string_view name) const {
  for (const types::Subresource& candidate : resource->subresources) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

Registry::Snapshot::Snapshot(std::vector<Served> served) : served_(std::move(served)) {
  for (const Served& entry : served_) {
    const types::Resource& resource = *entry.resource;
    if (entry.established) resources_.push_back(&resource);
    by_path_.emplace(key_of(resource.group, resource.version, resource.plural), &entry);
    by_kind_.emplace(key_of(resource.group, resource.version, resource.kind), &entry);
  }
}

const Served* Registry::Snapshot::find(std::string_view group, std::string_view version,
                                       std::string_view plural) const {
  const auto found = by_path_.find(key_of(group, version, plural));
  return found == by_path_.end() ? nullptr : found->second;
}

const Served* Registry::Snapshot::find_kind(std::string_view group, std::string_view version,
                                            std::string_view kind) const {
  const auto found = by_kind_.find(key_of(group, version, kind));
  return found == by_kind_.end() ? nullptr : found->second;
}

bool Registry::Snapshot::has_group(std::string_view group) const {
  return is_builtin_group(group) || std::any_of(served_.begin(), served_.end(),
                                                [&](const Served& entry) { return entry.resource->group == group; });
}

bool Registry::Snapshot::is_builtin_group(std::string_view group) { return builtin_groups().contains(group); }

uint64_t Registry::next_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Registry::SnapshotRef Registry::snapshot() const {
  struct Remembered {
    uint64_t id = 0;
    uint64_t version = 0;
    SnapshotRef snapshot;
  };
  thread_local Remembered remembered;
  const uint64_t newest = version();
  if (remembered.id != id_ || remembered.version != newest) {
    const std::lock_guard lock(mutex_);
    remembered = {id_, version(), current_};
  }
  return remembered.snapshot;
}

void Registry::replace(std::vector<Served> served) {
  auto next = std::make_shared<const Snapshot>(std::move(served));
  const std::lock_guard lock(mutex_);
  current_ = std::move(next);
  version_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace holdfast::api
