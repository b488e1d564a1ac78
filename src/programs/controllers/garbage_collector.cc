#include "controllers/garbage_collector.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/api_version.h"
#include "base/log.h"
#include "base/task_group.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "controllers/objects.h"
#include "controllers/owner_graph.h"
#include "resource/resource.h"
#include "types/types.h"
#include "value/value.h"

// The rules are those of pkg/controller/garbagecollector in Kubernetes, above all attemptToDeleteItem.

namespace holdfast::controllers {

using own_calls::Answer;
using own_calls::Request;

namespace {

using namespace std::chrono_literals;

constexpr auto kRegistryLook = 250ms;  // New kinds are detected within this time.
constexpr auto kFirstRetry = 20ms, kLongestRetry = 30'000ms;
// Number of objects examined before yielding the loop: there may be many at startup.
constexpr size_t kAtATime = 64;
constexpr size_t kWorkers = 16;  // Enough to have many deletions in one group commit.
// Limit for finding an owner with the same uid in another namespace: it is worth an event, but not a large scan.
constexpr uint64_t kSearched = 5000;
constexpr size_t kReported = 20;  // Events for the references of one object.

constexpr std::string_view kComponent = "garbage-collector-controller";  // Of events.
constexpr std::string_view kForeground = "foregroundDeletion", kOrphan = "orphan";

bool lists(const Value& metadata, std::string_view member, std::string_view text) {
  const auto items = metadata.items_at(member);
  return std::any_of(items.begin(), items.end(),
                     [text](const Value& item) { return item.is_string() && item.as_string() == text; });
}
bool is_deleted(const Value& metadata) { return !metadata.text_at("deletionTimestamp").empty(); }
bool waits_for_dependents(const Value& metadata) {
  return is_deleted(metadata) && lists(metadata, "finalizers", kForeground);
}
bool blocks(const Value& reference) {
  const Value* flag = reference.find("blockOwnerDeletion");
  return flag != nullptr && flag->is_bool() && flag->as_bool();
}

// An object as currently stored, with the memory of its strings.
struct Live {
  cache::EntryRef entry;
  cache::Blob body;
  Arena arena;
  Value metadata;
};

Value merge_patch(Arena& arena, const Value& live, std::string_view member, Value list) {
  MapBuilder metadata(arena);
  metadata.add("uid", Value::string(live.text_at("uid")));
  metadata.add("resourceVersion", Value::string(live.text_at("resourceVersion")));
  metadata.add(member, list.is_list() && list.items().empty() ? Value::null() : list);
  MapBuilder patch(arena);
  patch.add("metadata", metadata.build());
  return patch.build();
}

}  // namespace

struct GarbageCollector::State {
  State(api::Api& served, net::EventLoop& loop, const Clock& time, const own_calls::OwnCalls& own, Standby& other)
      : api(served), tasks(loop, "garbage collector"), clock(time), calls(own), standby(other) {}

  struct Kind {
    explicit Kind(TaskGroup& tasks) : follower(tasks) {}
    const types::Resource* resource = nullptr;  // The stored version.
    cache::Cache* cache = nullptr;
    const store::Store* store = nullptr;
    std::shared_ptr<const void> keeps_alive;
    cache::Follower follower;
    bool listed = false;   // Everything that existed when the watch began has been processed.
    bool retired = false;  // No longer served; watched until its last events have been processed.
  };
  using KindRef = std::shared_ptr<Kind>;  // Hold a reference across a co_await.
  struct Item {
    Uid uid;
    uint32_t kind = 0;
    std::string key;

    // An object whose kind was replaced is another item: kind_of() no longer finds the former one.
    bool operator<(const Item& other) const { return std::tie(uid.bits, kind) < std::tie(other.uid.bits, other.kind); }
  };
  enum class Outcome : uint8_t { Done, Again };

  api::Api& api;
  TaskGroup tasks;
  const Clock& clock;
  const own_calls::OwnCalls& calls;
  Standby& standby;

  // Owned by the loop.
  std::map<uint32_t, KindRef> kinds;  // The watched kinds, by number. Numbers are never reused.
  uint32_t next_kind = 0;
  std::unordered_map<const types::Resource*, uint32_t> followed;
  OwnerGraph graph;
  std::unordered_map<Uid, Item, UidHash> waiting;     // In foreground deletion, until nothing blocks them.
  std::unordered_map<Uid, Item, UidHash> unresolved;  // Have owners of kinds that are not served.
  KeyedQueue<Item> queue{
      tasks, [this](Item item) { return work(std::move(item)); },
      standby.pausing({.workers = kWorkers, .first_retry = kFirstRetry, .longest_retry = kLongestRetry})};

  // --- Watching ---

  Task<void> follow_registry() {
    uint64_t seen = 0;
    while (!tasks.closing()) {
      if (const uint64_t version = api.registry().version(); version != seen) {
        seen = version;
        retire_unserved();
        follow_new();
        // The kind of an owner may be served now.
        for (auto& [uid, item] : std::exchange(unresolved, {})) enqueue(item);
      }
      co_await tasks.sleep(kRegistryLook);
    }
  }

  void follow_new() {
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    for (const resource::Served& served : registry->all()) {
      const types::Resource& resource = *served.resource;
      if (served.storage == nullptr || served.resource != served.stored || followed.contains(&resource)) continue;
      if (!has_verb(resource, "delete") || !has_verb(resource, "list") || !has_verb(resource, "watch")) continue;
      if (resource.kind == "Event" && !served.custom) continue;  // Events expire.
      cache::Cache* objects = api.cache_of(resource.group, resource.plural);
      if (objects == nullptr) continue;
      auto kind = std::make_shared<Kind>(tasks);
      kind->resource = &resource;
      kind->cache = objects;
      kind->store = &served.storage->store();
      kind->keeps_alive = served.keeps_alive;
      const uint32_t number = next_kind++;
      kinds.emplace(number, kind);
      followed.emplace(&resource, number);
      tasks.run(follow(number, std::move(kind)));
    }
  }

  // A watch keeps its cache alive, and a cache its kind: without this, deleted kinds would stay in memory forever.
  void retire_unserved() {
    for (const auto& [number, kind] : kinds) {
      if (kind->retired || is_served(*kind)) continue;
      kind->retired = true;
      tasks.run(retire(kind));
    }
  }

  // The last objects of a kind are deleted before its definition: process their events first.
  Task<void> retire(KindRef kind) {
    if (co_await kind->cache->consistent(tasks.loop())) {
      while (!tasks.closing() && kind->follower.watching() && has_unseen(*kind)) co_await tasks.sleep(1ms);
      co_await tasks.sleep(1ms);  // For events already taken that are waiting for the loop.
    }
    kind->follower.cancel();
  }

  // The cache has events that have not been processed.
  static bool has_unseen(const Kind& kind) { return !kind.listed || kind.follower.pending(); }

  // Removes the objects of a kind that is no longer watched. If the kind was replaced because its definition changed,
  // the replacement lists them again.
  void forget(uint32_t number) {
    for (const Uid& uid : graph.objects()) {
      const OwnerGraph::Object* object = graph.find(uid);
      if (object->kind != number) continue;
      for (const Uid& owner : graph.set(uid, number, std::string(object->key), {}).lost) wake_owner(owner);
    }
    const auto of_kind = [number](const auto& entry) { return entry.second.kind == number; };
    std::erase_if(waiting, of_kind);
    std::erase_if(unresolved, of_kind);
  }

  // Null if the kind is no longer watched.
  KindRef kind_of(const Item& item) const {
    const auto found = kinds.find(item.kind);
    return found == kinds.end() ? nullptr : found->second;
  }

  bool is_served(const Kind& kind) const {
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    const resource::Served* served =
        registry->find(kind.resource->group, kind.resource->version, kind.resource->plural);
    return served != nullptr && served->resource == kind.resource;
  }

  Task<void> follow(uint32_t number, KindRef kind) {
    int watches = 0;
    co_await kind->follower.run(*kind->cache, {.marks_initial_end = true,
                                               .batch = kAtATime,
                                               .wanted = [this, kind] { return !kind->retired && is_served(*kind); },
                                               .begin =
                                                   [&watches, kind] {
                                                     ++watches;
                                                     kind->listed = false;
                                                   },
                                               .see = cache::one_by_one([&](const cache::Delivery& event) {
                                                 if (event.object()) return see(number, *kind, event);
                                                 if (!event.initial_events_end) return;
                                                 kind->listed = true;
                                                 // Deletions between two watches were not delivered.
                                                 if (watches > 1) {
                                                   for (const Uid& uid : graph.objects()) enqueue(uid);
                                                 }
                                               })});
    kind->retired = true;
    followed.erase(kind->resource);
    kinds.erase(number);
    if (!tasks.closing()) forget(number);
  }

  void see(uint32_t number, const Kind& kind, const cache::Delivery& event) {
    const cache::Entry& entry = *event.object();
    const Uid uid = Uid::of(entry.uid());
    if (event.type == cache::EventType::Deleted) {
      waiting.erase(uid);
      unresolved.erase(uid);
      for (const Uid& owner : graph.set(uid, number, entry.key(), {}).lost) wake_owner(owner);
      for (const Uid& dependent : graph.dependents(uid)) enqueue(dependent);
      return;
    }
    const cache::Blob body = entry.body();
    // Most custom objects have neither; this check avoids parsing them.
    if (!codec::is_protobuf(*body) && body->find("\"ownerReferences\"") == std::string::npos &&
        body->find("\"deletionTimestamp\"") == std::string::npos && graph.find(uid) == nullptr) {
      return;
    }
    Arena arena;
    Result<Value> metadata = metadata_of(arena, *body);
    if (!metadata) return;
    std::vector<OwnerGraph::Owner> owners;
    std::unordered_map<Uid, size_t, UidHash> known;
    for (const Value& reference : metadata->items_at("ownerReferences")) {
      const Uid owner = Uid::of(reference.text_at("uid"));
      const auto [at, is_new] = known.emplace(owner, owners.size());
      if (is_new) owners.push_back({owner});
      if (blocks(reference)) owners[at->second].blocked = true;
    }
    const OwnerGraph::Change change = graph.set(uid, number, entry.key(), owners);
    for (const Uid& owner : change.lost) wake_owner(owner);
    for (const OwnerGraph::Owner& owner : owners) wake_owner(owner.uid);  // This object may have stopped blocking it.
    if (!change.gained.empty() && !owners_exist(kind, entry, *metadata)) enqueue(uid);

    if (!is_deleted(*metadata)) return;
    if (lists(*metadata, "finalizers", kForeground)) {
      const Item item{uid, number, std::string(entry.key())};
      if (waiting.insert_or_assign(uid, item).second) {
        for (const Uid& dependent : graph.dependents(uid)) enqueue(dependent);
      }
      enqueue(item);
    } else if (lists(*metadata, "finalizers", kOrphan)) {
      enqueue(Item{uid, number, std::string(entry.key())});
    }
  }

  void wake_owner(const Uid& owner) {
    const auto found = waiting.find(owner);
    if (found != waiting.end()) enqueue(found->second);
  }

  // From the caches: a negative result is verified, a positive one holds until something is deleted.
  bool owners_exist(const Kind& kind, const cache::Entry& entry, const Value& metadata) {
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    for (const Value& reference : metadata.items_at("ownerReferences")) {
      const resource::Served* served = find_owner_kind(*registry, reference);
      cache::Cache* objects =
          served == nullptr ? nullptr : api.cache_of(served->resource->group, served->resource->plural);
      if (objects == nullptr) return false;
      Result<cache::Snapshot> all = objects->snapshot();
      if (!all) return false;
      const cache::EntryRef owner = all->find(owner_key(*served->resource, *kind.resource, entry.key(), reference));
      if (!owner || owner->uid() != reference.text_at("uid")) return false;
      if (waiting.contains(Uid::of(owner->uid()))) return false;
    }
    return true;
  }

  static const resource::Served* find_owner_kind(const resource::Registry::Snapshot& registry, const Value& reference) {
    const std::string_view api_version = reference.text_at("apiVersion");
    const auto [group, version] = split_api_version(api_version);
    return registry.find_kind(group, version, reference.text_at("kind"));
  }

  // Namespaced owners are looked up in the namespace of the dependent.
  static std::string owner_key(const types::Resource& owner, const types::Resource& dependent, std::string_view key,
                               const Value& reference) {
    std::string found;
    if (owner.namespaced) found.append(namespace_of(dependent, key)).append("/");
    return found.append(reference.text_at("name"));
  }

  // --- The queue ---

  void enqueue(Item item) { queue.add(std::move(item)); }
  void enqueue(const Uid& uid) {
    if (const OwnerGraph::Object* object = graph.find(uid)) enqueue(Item{uid, object->kind, object->key});
  }

  Task<bool> work(Item item) { co_return co_await process(item) == Outcome::Done; }

  // --- One object ---

  // Null if it does not exist or its name now belongs to another object.
  Task<Result<std::unique_ptr<Live>>> read(const Kind& kind, std::string key, const Uid* uid) {
    Result<cache::Cache::Latest> latest = co_await kind.cache->latest(std::move(key), tasks.loop());
    if (!latest) co_return latest.take_error();
    if (!latest->entry || (uid != nullptr && Uid::of(latest->entry->uid()) != *uid)) co_return std::unique_ptr<Live>();
    auto live = std::make_unique<Live>();
    live->entry = latest->entry;
    live->body = live->entry->body();
    Result<Value> metadata = metadata_of(live->arena, *live->body);
    if (!metadata) co_return metadata.take_error();
    live->metadata = *metadata;
    co_return live;
  }

  Task<Outcome> process(const Item& item) {
    const KindRef kind = kind_of(item);
    if (kind == nullptr) co_return Outcome::Done;
    Result<std::unique_ptr<Live>> read_now = co_await read(*kind, item.key, &item.uid);
    if (!read_now) co_return Outcome::Again;
    if (*read_now == nullptr) co_return Outcome::Done;
    Live& live = **read_now;
    if (is_deleted(live.metadata)) {
      if (lists(live.metadata, "finalizers", kForeground))
        co_return co_await continue_foreground_deletion(item, *kind, live);
      if (lists(live.metadata, "finalizers", kOrphan)) co_return co_await orphan(item, *kind, live);
      co_return Outcome::Done;  // Already being deleted.
    }
    co_return co_await judge(item, *kind, live);
  }

  // Determines which owners exist, and acts accordingly.
  Task<Outcome> judge(const Item& item, const Kind& kind, Live& live) {
    const auto references = live.metadata.items_at("ownerReferences");
    if (references.empty()) co_return Outcome::Done;
    const uint64_t registry_version = api.registry().version();
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    ListBuilder solid(live.arena);
    size_t solid_count = 0, waiting_count = 0, looked = 0;
    Strangers strangers;
    for (const Value& reference : references) {
      if (++looked % kAtATime == 0) co_await tasks.sleep(0ms);
      const resource::Served* served = find_owner_kind(*registry, reference);
      cache::Cache* objects =
          served == nullptr ? nullptr : api.cache_of(served->resource->group, served->resource->plural);
      if (objects == nullptr) {
        // The kind may have been added while another owner was read; then `unresolved` would not be checked again.
        if (api.registry().version() != registry_version) co_return Outcome::Again;
        unresolved.insert_or_assign(item.uid, item);
        co_return Outcome::Done;
      }
      if (served->resource->namespaced && !kind.resource->namespaced) {
        // The reference is invalid, but the object is not deleted for it.
        co_await report_wrong_namespace(item, kind, *objects, reference, strangers);
        co_return Outcome::Done;
      }
      Result<cache::Cache::Latest> owner =
          co_await objects->latest(owner_key(*served->resource, *kind.resource, item.key, reference), tasks.loop());
      if (!owner) co_return Outcome::Again;
      if (!owner->entry || owner->entry->uid() != reference.text_at("uid")) {
        if (served->resource->namespaced) co_await report_wrong_namespace(item, kind, *objects, reference, strangers);
        continue;
      }
      Arena arena;
      const cache::Blob body = owner->entry->body();
      Result<Value> metadata = metadata_of(arena, *body);
      if (!metadata) co_return Outcome::Again;
      if (waits_for_dependents(*metadata)) {
        ++waiting_count;
      } else {
        ++solid_count;
        solid.add(reference);
      }
    }
    if (solid_count == references.size()) co_return Outcome::Done;
    if (solid_count > 0) co_return co_await change(kind, item, live, "ownerReferences", solid.build());
    if (waiting_count > 0 && graph.has_dependents(item.uid)) {
      const std::vector<Uid> dependents = graph.dependents(item.uid);
      const bool circle =
          std::any_of(dependents.begin(), dependents.end(), [this](const Uid& each) { return waiting.contains(each); });
      if (circle && std::any_of(references.begin(), references.end(), blocks)) {
        // Break the cycle: each would wait for the other.
        ListBuilder unblocked(live.arena);
        for (const Value& reference : references) {
          unblocked.add(with_member(live.arena, reference, "blockOwnerDeletion", Value::boolean(false)));
        }
        const Outcome freed = co_await change(kind, item, live, "ownerReferences", unblocked.build());
        co_return freed == Outcome::Again ? freed : Outcome::Again;  // Its resourceVersion has changed.
      }
      co_return co_await remove(kind, item, live, "Foreground");
    }
    co_return co_await remove(kind, item, live,
                              lists(live.metadata, "finalizers", kOrphan)       ? "Orphan"
                              : lists(live.metadata, "finalizers", kForeground) ? "Foreground"
                                                                                : "Background");
  }

  Task<Outcome> remove(const Kind& kind, const Item& item, const Live& live, std::string_view propagation) {
    Request request =
        Request::remove(target_of(*kind.resource, item.key), {.uid = live.metadata.text_at("uid"),
                                                              .revision = live.metadata.text_at("resourceVersion"),
                                                              .propagation = propagation});
    const std::string what = request.text();
    const Result<Answer> answer = co_await own_calls::send(calls, std::move(request));
    if (answer && (answer->succeeded() || answer->not_found())) co_return Outcome::Done;
    if (answer && answer->status != 409) {
      log::warning("cannot delete an object without owners", {{"request", what}, {"answer", answer->body}});
    }
    co_return Outcome::Again;
  }

  Task<Outcome> change(const Kind& kind, const Item& item, Live& live, std::string_view member, Value list) {
    const Value patch = merge_patch(live.arena, live.metadata, member, list);
    const Result<Answer> answer = co_await own_calls::send(
        calls, Request::merge_patch(target_of(*kind.resource, item.key), patch, kControllerManager));
    co_return answer && (answer->succeeded() || answer->not_found()) ? Outcome::Done : Outcome::Again;
  }

  Task<Outcome> without_finalizer(const Item& item, const Kind& kind, Live& live, std::string_view finalizer) {
    ListBuilder left(live.arena);
    for (const Value& each : live.metadata.items_at("finalizers")) {
      if (!each.is_string() || each.as_string() != finalizer) left.add(each);
    }
    co_return co_await change(kind, item, live, "finalizers", left.build());
  }

  // Events of different kinds are not ordered relative to each other: before concluding that an object has no
  // dependents, everything written before its deletion must have been processed. For kinds in another store, whose
  // revisions are unrelated, that means everything written until now.
  Task<bool> caught_up(const Kind& own, const Live& live) {
    const Revision revision = live.entry->revision();
    std::vector<KindRef> all;
    all.reserve(kinds.size());
    for (const auto& [number, kind] : kinds) all.push_back(kind);
    for (const KindRef& kind : all) {
      Result<cache::Snapshot> there = kind->store == own.store ? co_await kind->cache->at_least(revision, tasks.loop())
                                                               : co_await kind->cache->consistent(tasks.loop());
      if (!there) co_return false;
      while (!tasks.closing() && !kind->retired && has_unseen(*kind)) co_await tasks.sleep(1ms);
    }
    co_await tasks.sleep(1ms);  // For events already taken that are waiting for the loop.
    co_return !tasks.closing();
  }

  // Those of the objects, which refer to this one, that are in its namespace if it has one.
  std::vector<Item> dependents_of(const Item& item, const types::Resource& owner, const std::vector<Uid>& uids) {
    std::vector<Item> found;
    for (const Uid& uid : uids) {
      const OwnerGraph::Object* object = graph.find(uid);
      Item dependent{uid, object->kind, object->key};
      const KindRef kind = kind_of(dependent);
      if (kind == nullptr) continue;
      if (owner.namespaced && namespace_of(*kind->resource, object->key) != namespace_of(owner, item.key)) continue;
      found.push_back(std::move(dependent));
    }
    return found;
  }

  struct Dependent {
    KindRef kind;
    std::unique_ptr<Live> live;  // Null if the object is gone.
  };
  Task<Result<Dependent>> read_dependent(const Item& item) {
    Dependent dependent{kind_of(item), nullptr};
    if (dependent.kind == nullptr) co_return dependent;
    Result<std::unique_ptr<Live>> found = co_await read(*dependent.kind, item.key, &item.uid);
    if (!found) co_return found.take_error();
    dependent.live = std::move(*found);
    co_return dependent;
  }

  Task<Outcome> continue_foreground_deletion(const Item& item, const Kind& kind, Live& live) {
    if (!co_await caught_up(kind, live)) co_return Outcome::Again;
    // From the graph alone: a change of any dependent leads here again, and they may be many and large.
    bool blocked = false;
    for (const Item& dependent : dependents_of(item, *kind.resource, graph.blocking_dependents(item.uid))) {
      blocked = true;
      if (!waiting.contains(dependent.uid)) enqueue(dependent);
    }
    // It is processed again when the blocking dependents are deleted.
    if (blocked) co_return Outcome::Done;
    co_return co_await without_finalizer(item, kind, live, kForeground);
  }

  Task<Outcome> orphan(const Item& item, const Kind& kind, Live& live) {
    if (!co_await caught_up(kind, live)) co_return Outcome::Again;
    for (const Item& dependent : dependents_of(item, *kind.resource, graph.dependents(item.uid))) {
      const Result<Dependent> found = co_await read_dependent(dependent);
      if (!found) co_return Outcome::Again;
      if (found->live == nullptr) continue;
      ListBuilder left(found->live->arena);
      size_t taken = 0;
      for (const Value& reference : found->live->metadata.items_at("ownerReferences")) {
        if (Uid::of(reference.text_at("uid")) == item.uid) {
          ++taken;
        } else {
          left.add(reference);
        }
      }
      if (taken == 0) continue;
      const Outcome freed = co_await change(*found->kind, dependent, *found->live, "ownerReferences", left.build());
      if (freed == Outcome::Again) co_return freed;
    }
    co_return co_await without_finalizer(item, kind, live, kOrphan);
  }

  // The objects in which the owners of one object are searched.
  struct Strangers {
    std::unordered_map<cache::Cache*, std::unordered_set<Uid, UidHash>> uids;
    size_t reported = 0;

    bool contains(cache::Cache& owners, std::string_view uid) {
      const auto [found, is_new] = uids.try_emplace(&owners);
      if (is_new) {
        const Result<cache::Snapshot> all = owners.snapshot();
        if (all && all->count() <= kSearched) {
          for (const cache::EntryRef& entry : all->list({}).entries) found->second.insert(Uid::of(entry->uid()));
        }
      }
      return found->second.contains(Uid::of(uid));
    }
  };

  // Owners in another namespace do not count: reported once, as an event.
  Task<void> report_wrong_namespace(const Item& item, const Kind& kind, cache::Cache& owners, const Value& reference,
                                    Strangers& strangers) {
    const std::string_view uid = reference.text_at("uid");
    if (strangers.reported >= kReported || !strangers.contains(owners, uid)) co_return;
    ++strangers.reported;
    const std::string ns(namespace_of(*kind.resource, item.key));
    const std::string event_ns = ns.empty() ? "default" : ns;
    Result<std::unique_ptr<Live>> child = co_await read(kind, item.key, &item.uid);
    if (!child || *child == nullptr) co_return;
    const std::string_view child_uid = (*child)->metadata.text_at("uid");
    const std::string name(name_of(*kind.resource, item.key));
    const std::string now = format_rfc3339(clock.now());
    const std::string message = "ownerRef [" + std::string(reference.text_at("apiVersion")) + "/" +
                                std::string(reference.text_at("kind")) + ", namespace: " + ns +
                                ", name: " + std::string(reference.text_at("name")) + ", uid: " + std::string(uid) +
                                "] does not exist in namespace \"" + ns + "\"";
    // A deterministic name, so that repeating the report is a no-op.
    const std::string event_name = name.substr(0, 200) + "." + std::string(uid).substr(0, 16);
    Arena arena;
    MapBuilder metadata(arena), involved(arena), source(arena), event(arena);
    metadata.add("name", Value::string(event_name));
    involved.add("apiVersion", Value::string(arena, api_version_of(kind.resource->group, kind.resource->version)));
    involved.add("kind", Value::string(kind.resource->kind));
    involved.add("name", Value::string(name));
    if (!ns.empty()) involved.add("namespace", Value::string(ns));
    involved.add("uid", Value::string(child_uid));
    source.add("component", Value::string(kComponent));
    event.add("apiVersion", Value::string("v1"));
    event.add("kind", Value::string("Event"));
    event.add("metadata", metadata.build());
    event.add("involvedObject", involved.build());
    event.add("type", Value::string("Warning"));
    event.add("reason", Value::string("OwnerRefInvalidNamespace"));
    event.add("message", Value::string(message));
    event.add("count", Value::integer(1));
    event.add("firstTimestamp", Value::string(now));
    event.add("lastTimestamp", Value::string(now));
    event.add("source", source.build());
    event.add("reportingComponent", Value::string(kComponent));
    static const types::Resource& events = *types::find_resource("", "v1", "events");
    (void)co_await own_calls::send(
        calls, Request::create(own_calls::collection(events, event_ns), event.build(), kControllerManager));
  }
};

GarbageCollector::GarbageCollector(api::Api& api, net::EventLoop& loop, const Clock& clock,
                                   const own_calls::OwnCalls& calls, Standby& standby)
    : state_(std::make_unique<State>(api, loop, clock, calls, standby)) {}
GarbageCollector::~GarbageCollector() = default;

void GarbageCollector::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_registry(); });
}

Task<void> GarbageCollector::close(Executor& executor) {
  co_await state_->tasks.close(executor, [this] {
    for (const auto& [number, kind] : state_->kinds) kind->follower.cancel();
  });
}

}  // namespace holdfast::controllers
