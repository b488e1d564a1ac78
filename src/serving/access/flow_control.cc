#include "access/flow_control.h"

#include <algorithm>
#include <chrono>

#include "base/hash.h"
#include "resource/storage.h"

namespace holdfast::access {
namespace {

constexpr std::string_view kGroup = "flowcontrol.apiserver.k8s.io";
// Long, because there are few of these objects and they rarely change.
constexpr std::chrono::milliseconds kRefreshInterval{100};

// Memory per seat. Responses served from the cache are streamed in chunks and never hold more than kMostStreamed bytes.
constexpr int64_t kBytesPerSeat = 100'000, kMostStreamed = 1'000'000, kMostSeats = 100;

// Mean size of a small sample of objects.
int64_t mean_bytes(const cache::Snapshot& objects) {
  constexpr uint64_t kSample = 16;
  int64_t bytes = 0;
  const std::vector<cache::EntryRef> sample = objects.list({.scope = "", .limit = kSample}).entries;
  for (const cache::EntryRef& entry : sample) bytes += entry->body_bytes();
  return sample.empty() ? 0 : bytes / static_cast<int64_t>(sample.size());
}

int64_t now_nanos() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

std::shared_ptr<const flow::Schemas> FlowControl::schemas() {
  if (now_nanos() >= next_refresh_.load(std::memory_order_relaxed)) refresh();
  return schemas_.load();
}

int64_t FlowControl::seats_of(const request::RequestInfo& info, std::string_view level) {
  const request::Target& target = info.target();
  if (!target.is_resource || target.verb != request::Verb::List) return 1;
  const int64_t max_seats_per_request = dispatcher_.max_seats_per_request(level);
  const int64_t most = max_seats_per_request == 0 ? kMostSeats : std::min(max_seats_per_request, kMostSeats);
  if (!info.list()) return most;  // The request will be rejected.
  const resource::Registry::SnapshotRef served = registry_.snapshot();
  const resource::Served* resource = served->find(target.group, target.version, target.resource);
  // Resources of other servers: their size is unknown and the work is done elsewhere.
  if (resource == nullptr || resource->storage == nullptr) return 1;
  Result<cache::Snapshot> objects = resource->storage->cache().snapshot();
  if (!objects) return 1;
  const request::ListOptions& options = info.list()->options;
  const int64_t limit = options.limit;
  const bool selects = !options.label_selector.empty() || !options.field_selector.empty();
  const bool revision = !options.resource_version.empty() && options.resource_version != "0";
  const bool from_cache =
      options.resource_version_match != "Exact" && options.continue_token.empty() && !(limit > 0 && revision);
  const int64_t count = static_cast<int64_t>(objects->count());
  const int64_t limited = limit > 0 && limit < count ? limit : count;
  int64_t read = limited;
  if (!info.name().empty()) {
    read = 1;
  } else if (!from_cache && selects) {
    read = std::max(limited, count / 2);
  }
  int64_t bytes = read * mean_bytes(*objects);
  if (from_cache) bytes = std::min(bytes, kMostStreamed);
  return std::clamp<int64_t>((bytes + kBytesPerSeat - 1) / kBytesPerSeat, 1, most);
}

void FlowControl::refresh() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  next_refresh_.store(now_nanos() + std::chrono::nanoseconds(kRefreshInterval).count(), std::memory_order_relaxed);
  const resource::Registry::SnapshotRef served = registry_.snapshot();
  Arena arena;
  std::vector<store::Blob> bodies;  // The trees hold views into these.
  std::vector<Value> schemas, levels;
  uint64_t fingerprint = 0;
  std::vector<std::pair<resource::Storage*, std::vector<cache::EntryRef>>> found;
  for (const std::string_view plural : {"flowschemas", "prioritylevelconfigurations"}) {
    const resource::Served* resource = served->find(kGroup, "v1", plural);
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

}  // namespace holdfast::access
