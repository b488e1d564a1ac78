#include "resource/registry.h"

#include <algorithm>

namespace holdfast::resource {
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
  return custom || std::find(resource->verbs.begin(), resource->verbs.end(), verb) != resource->verbs.end();
}

const types::Subresource* Served::subresource(std::string_view name) const {
  for (const types::Subresource& candidate : resource->subresources) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

const Served* Registry::Snapshot::find(std::string_view group, std::string_view version,
                                       std::string_view plural) const {
  const auto found = builtin_->by_path.find(key_of(group, version, plural));
  if (found != builtin_->by_path.end()) return found->second;
  // Paths of a built-in group only lead to built-in resources.
  if (custom_.empty() || is_builtin_group(group)) return nullptr;
  const std::string name = std::string(plural) + "." + std::string(group);
  const auto at =
      std::lower_bound(custom_.begin(), custom_.end(), name,
                       [](const CustomServedRef& one, const std::string& wanted) { return one->name < wanted; });
  if (at == custom_.end() || (*at)->name != name) return nullptr;
  for (const Served& served : (*at)->versions) {
    if (served.resource->version == version) return &served;
  }
  return nullptr;
}

Storage* Registry::Snapshot::storage_of(std::string_view group, std::string_view plural) const {
  const std::string name = std::string(plural) + "." + std::string(group);
  if (const auto found = builtin_->storages.find(name); found != builtin_->storages.end()) return found->second;
  for (const CustomServedRef& one : custom_) {
    if (one->name == name) return one->versions.front().storage;
  }
  return nullptr;
}

bool Registry::Snapshot::has_group(std::string_view group) const {
  return serves_builtin_group(group) || std::any_of(custom_.begin(), custom_.end(), [&](const CustomServedRef& one) {
           return one->versions.front().resource->group == group;
         });
}

void Registry::Snapshot::gather() const {
  served_ = builtin_->served;
  for (const Served& entry : served_) resources_.push_back(entry.resource);
  for (const CustomServedRef& one : custom_) {
    for (const Served& entry : one->versions) {
      if (entry.established) resources_.push_back(entry.resource);
      if (!is_builtin_group(entry.resource->group)) served_.push_back(entry);
    }
  }
  for (const Served& entry : served_) {
    by_kind_.emplace(key_of(entry.resource->group, entry.resource->version, entry.resource->kind), &entry);
  }
}

const Served* Registry::Snapshot::find_kind(std::string_view group, std::string_view version,
                                            std::string_view kind) const {
  std::call_once(gathered_, [this] { gather(); });
  const auto found = by_kind_.find(key_of(group, version, kind));
  return found == by_kind_.end() ? nullptr : found->second;
}

const std::vector<Served>& Registry::Snapshot::all() const {
  std::call_once(gathered_, [this] { gather(); });
  return served_;
}
const std::vector<const types::Resource*>& Registry::Snapshot::resources() const {
  std::call_once(gathered_, [this] { gather(); });
  return resources_;
}

bool Registry::Snapshot::serves_builtin_group(std::string_view group) const { return builtin_->groups.contains(group); }

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

Registry::Registry(std::vector<Served> served) : id_(next_id()) {
  auto builtin = std::make_shared<Snapshot::Builtin>();
  for (const Served& entry : served) {
    if (entry.storage == nullptr) continue;
    builtin->storages.emplace(std::string(entry.resource->plural) + "." + std::string(entry.resource->group),
                              entry.storage);
  }
  std::erase_if(served, [](const Served& entry) { return !entry.enabled; });
  builtin->served = std::move(served);
  for (const Served& entry : builtin->served) {
    const types::Resource& resource = *entry.resource;
    builtin->by_path.emplace(key_of(resource.group, resource.version, resource.plural), &entry);
    builtin->groups.insert(resource.group);
  }
  current_ = std::make_shared<const Snapshot>(std::move(builtin), std::vector<CustomServedRef>());
}

void Registry::update(std::vector<CustomServedRef> changed) {
  const std::lock_guard lock(mutex_);
  std::vector<CustomServedRef> custom = current_->custom_;
  for (CustomServedRef& one : changed) {
    const auto at =
        std::lower_bound(custom.begin(), custom.end(), one->name,
                         [](const CustomServedRef& known, const std::string& wanted) { return known->name < wanted; });
    const bool known = at != custom.end() && (*at)->name == one->name;
    if (one->versions.empty()) {
      if (known) custom.erase(at);
    } else if (known) {
      *at = std::move(one);
    } else {
      custom.insert(at, std::move(one));
    }
  }
  current_ = std::make_shared<const Snapshot>(current_->builtin_, std::move(custom));
  version_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace holdfast::resource
