#include "controllers/quota_controller.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "admission/admission.h"
#include "base/log.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "controllers/objects.h"
#include "resource/resource.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {
namespace {

using namespace std::chrono_literals;
namespace quota = admission::quota;

constexpr auto kSoon = 5ms;            // Batches changes that happen together.
constexpr auto kAfterCharge = 1000ms;  // A charge is correct unless its write failed.
constexpr auto kRetry = 50ms;
constexpr auto kRegistryLook = 250ms;
constexpr auto kPodsEnd = 5000ms;  // Pods whose grace period ends stop counting without an event.
// Number of objects examined before yielding the loop.
constexpr size_t kAtATime = 256;

}  // namespace

struct QuotaController::State {
  State(api::Api& served, net::EventLoop& loop, const Clock& time, const own_calls::OwnCalls& own, Standby& other)
      : api(served), tasks(loop, "quota controller"), clock(time), calls(own), standby(other) {}

  struct Kind {
    explicit Kind(TaskGroup& tasks) : follower(tasks) {}
    const types::Resource* resource = nullptr;
    cache::Cache* cache = nullptr;
    std::shared_ptr<const void> keeps_alive;
    cache::Follower follower;
  };

  api::Api& api;
  TaskGroup tasks;
  const Clock& clock;
  const own_calls::OwnCalls& calls;
  Standby& standby;

  // Owned by the loop.
  cache::Follower quotas{tasks};
  std::map<std::string, std::set<std::string>, std::less<>> by_namespace;  // Keys of existing quotas.
  std::map<const types::Resource*, std::unique_ptr<Kind>> kinds;           // Watched, because some quota counts them.
  std::set<std::pair<std::string, net::Millis>> planned;                   // Keys to be counted, and the delay.
  KeyedQueue<std::string> counts{tasks, [this](std::string key) { return settle(std::move(key)); },
                                 standby.pausing({.first_retry = kRetry, .longest_retry = kRetry})};

  // --- Watching ---

  Task<void> follow_quotas() {
    return quotas.run(*api.cache_of("", "resourcequotas"),
                      {.begin = [this] { by_namespace.clear(); },
                       .see = cache::one_by_one([this](const cache::Delivery& event) { see_quota(event); })});
  }

  void see_quota(const cache::Delivery& event) {
    const std::string key(event.object()->key()), ns(event.object()->namespace_name());
    if (event.type == cache::EventType::Deleted) {
      const auto found = by_namespace.find(ns);
      if (found == by_namespace.end()) return;
      found->second.erase(key);
      if (found->second.empty()) by_namespace.erase(found);
      return;
    }
    by_namespace[ns].insert(key);
    Arena arena;
    const cache::Blob body = event.object()->body();
    Result<Value> tree = object_tree(arena, *types::find_type("core/v1.ResourceQuota"), *body);
    if (!tree) return;
    follow_counted(*tree);
    const Value* spec = tree->find("spec");
    const Value* status = tree->find("status");
    const quota::Usage wanted = spec == nullptr ? quota::Usage() : quota::usage_in(*spec, "hard");
    const bool fits = status != nullptr && quota::usage_in(*status, "hard") == wanted && status->has("used");
    plan(key, fits ? kAfterCharge : kSoon);
  }

  void follow_counted(const Value& tree) {
    const Value* spec = tree.find("spec");
    if (spec == nullptr) return;
    const quota::Usage hard = quota::usage_in(*spec, "hard");
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    for (const resource::Served& served : registry->all()) {
      const types::Resource& resource = *served.resource;
      if (!resource.namespaced || served.storage == nullptr || served.resource != served.stored) continue;
      if (kinds.contains(&resource) || quota::counted_names(resource, hard).empty()) continue;
      cache::Cache* objects = api.cache_of(resource.group, resource.plural);
      if (objects == nullptr) continue;
      auto kind = std::make_unique<Kind>(tasks);
      kind->resource = &resource;
      kind->cache = objects;
      kind->keeps_alive = served.keeps_alive;
      Kind& followed = *kinds.emplace(&resource, std::move(kind)).first->second;
      tasks.run(follow_until_unserved(followed));
    }
  }

  // Changes before the watch started are counted, too.
  Task<void> follow_until_unserved(Kind& kind) {
    co_await kind.follower.run(
        *kind.cache, {.start = cache::WatchRequest::Start::Now,
                      .wanted = [this, &kind] { return is_served(kind); },
                      .begin = [this] { plan_all(); },
                      .see = cache::one_by_one([this, &kind](const auto& event) { see_counted(kind, event); })});
    kinds.erase(kind.resource);
  }

  void see_counted(const Kind& kind, const cache::Delivery& event) {
    // New objects were charged by admission.
    if (event.type == cache::EventType::Added) return;
    if (event.type == cache::EventType::Modified && quota::counts_objects_only(*kind.resource)) return;
    plan_all_of(event.object()->namespace_name());
  }

  // A watch keeps its cache alive, and a cache its kind: kinds that are no longer served must be released.
  void release_unserved() {
    for (const auto& [resource, kind] : kinds) {
      if (!is_served(*kind)) kind->follower.cancel();
    }
  }

  bool is_served(const Kind& kind) const {
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    const resource::Served* served =
        registry->find(kind.resource->group, kind.resource->version, kind.resource->plural);
    return served != nullptr && served->resource == kind.resource;
  }

  // --- Counting ---

  void plan_all() {
    for (const auto& [ns, keys] : by_namespace) {
      for (const std::string& key : keys) plan(key, kSoon);
    }
  }

  void plan_all_of(std::string_view ns) {
    const auto found = by_namespace.find(ns);
    if (found == by_namespace.end()) return;
    for (const std::string& key : found->second) plan(key, kSoon);
  }

  void plan(const std::string& key, net::Millis delay) {
    if (planned.emplace(key, delay).second) tasks.run(count_later(key, delay));
  }

  Task<void> count_later(std::string key, net::Millis delay) {
    co_await tasks.sleep(delay);
    planned.erase(std::pair(key, delay));
    counts.add(std::move(key));
  }

  // Returns true if the status is up to date.
  Task<bool> settle(std::string key) {
    static const types::Resource& resource = *types::find_resource("", "v1", "resourcequotas");
    const own_calls::Target target = target_of(resource, key);
    const Result<own_calls::Answer> answer = co_await own_calls::send(calls, own_calls::Request::get(target));
    if (!answer) co_return false;
    if (answer->not_found()) co_return true;
    Arena arena;
    const Result<Value> found = answer->object(arena);
    if (!found || !answer->succeeded()) co_return false;
    const std::string ns(namespace_of(resource, key));
    follow_counted(*found);
    // Any earlier charge is reflected in the quota just read, or its object is already stored: see write/quota.h.
    if (api.charges_quota(ns)) co_return false;
    const Value* spec = found->find("spec");
    const quota::Usage hard = spec == nullptr ? quota::Usage() : quota::usage_in(*spec, "hard");
    std::optional<quota::Usage> used = co_await count(ns, *found, hard);
    if (!used) co_return false;
    const Value* status = found->find("status");
    if (status != nullptr && status->has("used") && quota::usage_in(*status, "hard") == hard &&
        quota::usage_in(*status, "used") == *used) {
      co_return true;
    }
    MapBuilder counted(arena);
    counted.add("hard", quota::to_value(arena, hard));
    counted.add("used", quota::to_value(arena, *used));
    const Value next = with_member(arena, *found, "status", counted.build());
    const Result<own_calls::Answer> written =
        co_await own_calls::send(calls, own_calls::Request::update(target.sub("status"), next, kControllerManager));
    co_return written && (written->succeeded() || written->not_found());
  }

  Task<std::optional<quota::Usage>> count(const std::string& ns, const Value& tree, const quota::Usage& hard) {
    quota::Usage used;
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    for (const resource::Served& served : registry->all()) {
      const types::Resource& resource = *served.resource;
      if (!resource.namespaced || served.storage == nullptr || served.resource != served.stored) continue;
      const std::vector<std::string> names = quota::counted_names(resource, hard);
      cache::Cache* objects = names.empty() ? nullptr : api.cache_of(resource.group, resource.plural);
      if (objects == nullptr) continue;
      for (const std::string& name : names) used.try_emplace(name);
      Result<cache::Snapshot> snapshot = co_await objects->consistent(tasks.loop());
      if (!snapshot) co_return std::nullopt;
      cache::ListRequest request;
      request.scope = ns + "/";
      const cache::ListPage page = snapshot->list(request);
      if (quota::counts_objects_only(resource)) {
        if (!quota::in_scopes(resource, tree, Value::null())) continue;
        for (const std::string& name : names) {
          used[name] = codec::Quantity::of(static_cast<int64_t>(page.entries.size()));
        }
        continue;
      }
      size_t looked = 0;
      for (const cache::EntryRef& entry : page.entries) {
        if (++looked % kAtATime == 0) co_await tasks.sleep(net::Millis(0));
        Arena arena;
        const cache::Blob body = entry->body();
        Result<Value> object = object_tree(arena, *resource.type, *body);
        if (!object || !quota::in_scopes(resource, tree, *object)) continue;
        if (resource.plural == "pods" && !object->text_at("metadata", "deletionTimestamp").empty()) {
          pods_end.insert(ns);
        }
        for (const auto& [name, amount] : quota::usage_of(resource, *object, clock.now())) {
          if (const auto sum = used.find(name); sum != used.end()) sum->second = sum->second + amount;
        }
      }
    }
    co_return used;
  }

  std::set<std::string> pods_end;  // Namespaces with pods about to terminate.

  // A new kind may already be counted by existing quotas.
  Task<void> watch_registry() {
    uint64_t seen = api.registry().version();
    while (!tasks.closing()) {
      co_await tasks.sleep(kRegistryLook);
      if (const uint64_t version = api.registry().version(); version != seen) {
        seen = version;
        release_unserved();
        plan_all();
      }
    }
  }

  Task<void> watch_ends() {
    while (!tasks.closing()) {
      co_await tasks.sleep(kPodsEnd);
      for (const std::string& ns : std::exchange(pods_end, {})) plan_all_of(ns);
    }
  }
};

QuotaController::QuotaController(api::Api& api, net::EventLoop& loop, const Clock& clock,
                                 const own_calls::OwnCalls& calls, Standby& standby)
    : state_(std::make_unique<State>(api, loop, clock, calls, standby)) {}
QuotaController::~QuotaController() = default;

void QuotaController::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_quotas(); });
  state_->tasks.post([state = state_.get()] { return state->watch_registry(); });
  state_->tasks.post([state = state_.get()] { return state->watch_ends(); });
}

Task<void> QuotaController::close(Executor& executor) {
  co_await state_->tasks.close(executor, [this] {
    state_->quotas.cancel();
    for (auto& [resource, kind] : state_->kinds) kind->follower.cancel();
  });
}

}  // namespace holdfast::controllers
