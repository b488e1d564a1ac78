#include "services/service_ranges.h"

#include <algorithm>

#include "base/arena.h"
#include "base/log.h"
#include "resource/storage.h"

namespace holdfast::services {
namespace {

bool is_ready(const Value& object) {
  if (!object.text_at("metadata", "deletionTimestamp").empty()) return false;
  for (const Value& condition : object.items_at("status", "conditions")) {
    if (condition.text_at("type") == "Ready") return condition.text_at("status") == "True";
  }
  return true;
}

}  // namespace

ServiceRanges::ServiceRanges(std::span<const std::string> configured, const resource::Registry& registry)
    : registry_(registry.snapshot()), storage_(registry_->storage_of("networking.k8s.io", "servicecidrs")) {
  for (const std::string& cidr : configured) {
    if (std::optional<IpRange> range = IpRange::parse(cidr)) configured_.push_back(*range);
  }
  known_ = std::make_shared<const List>(configured_);
}

Result<std::shared_ptr<const ServiceRanges::List>> ServiceRanges::current() {
  if (storage_ == nullptr) return known_;
  Result<cache::Snapshot> objects = storage_->cache().snapshot();
  if (!objects) return objects.take_error();
  const std::lock_guard lock(mutex_);
  if (seen_ && seen_->same_objects(*objects)) return known_;
  Result<List> ranges = read(*objects);
  if (!ranges) return ranges.take_error();
  known_ = std::make_shared<const List>(std::move(*ranges));
  seen_ = std::move(*objects);
  return known_;
}

Result<ServiceRanges::List> ServiceRanges::read(const cache::Snapshot& objects) const {
  List ranges, others;
  if (!objects.find(kDefaultServiceCidr)) ranges = configured_;
  for (const cache::EntryRef& entry : objects.list({}).entries) {
    Arena arena;
    const store::Blob body = entry->body();
    Result<Value> object = storage_->codec().tree(arena, *body);
    if (!object) {
      log::warning("a ServiceCIDR cannot be read; no cluster IPs are allocated from it",
                   {{"name", entry->key()}, {"error", object.error().message}});
      continue;
    }
    if (!is_ready(*object)) continue;
    List& to = entry->key() == kDefaultServiceCidr ? ranges : others;
    for (const Value& cidr : object->items_at("spec", "cidrs")) {
      if (std::optional<IpRange> range = IpRange::parse(cidr.as_string())) to.push_back(*range);
    }
  }
  ranges.insert(ranges.end(), others.begin(), others.end());
  return ranges;
}

}  // namespace holdfast::services
