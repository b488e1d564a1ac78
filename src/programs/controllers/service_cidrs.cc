#include "controllers/service_cidrs.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "controllers/address_use.h"
#include "controllers/objects.h"
#include "own_calls/requests.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {

using own_calls::Answer;
using own_calls::Request;

namespace {

constexpr std::string_view kGroup = "networking.k8s.io", kPlural = "servicecidrs", kAddresses = "ipaddresses";
constexpr std::string_view kFinalizer = "networking.k8s.io/service-cidr-finalizer";
constexpr std::string_view kManager = "service-cidr-controller";  // Field manager of the status.
constexpr std::string_view kManagedBy = "ipaddress.kubernetes.io/managed-by", kAllocator = "ipallocator.k8s.io";
// Other servers may still allocate from the range when its deletion begins, until they learn of it.
constexpr int64_t kGraceSeconds = 10;

const types::Resource& resource() {
  static const types::Resource& found = *types::find_resource(kGroup, "v1", kPlural);
  return found;
}

bool is_deleted(const Value& object) { return !object.text_at("metadata", "deletionTimestamp").empty(); }

Networks networks_of(const Value& object) {
  Networks all;
  for (const Value& cidr : object.items_at("spec", "cidrs")) {
    if (const std::optional<IpNetwork> network = IpNetwork::parse(cidr.as_string())) all.push_back(*network);
  }
  return all;
}

struct Ready {
  std::string_view status, reason, message;
};
constexpr Ready kReady{"True", "", "Kubernetes Service CIDR is ready"};
constexpr Ready kHeld{"False", "Terminating",
                      "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new "
                      "ServiceCIDR"};

bool says(const Value& object, const Ready& ready) {
  for (const Value& condition : object.items_at("status", "conditions")) {
    if (condition.text_at("type") != "Ready") continue;
    return condition.text_at("status") == ready.status && condition.text_at("reason") == ready.reason &&
           condition.text_at("message") == ready.message;
  }
  return false;
}

bool has_finalizer(const Value& object) {
  const std::span<const Value> all = object.items_at("metadata", "finalizers");
  return std::any_of(all.begin(), all.end(), [](const Value& one) { return one.as_string() == kFinalizer; });
}

}  // namespace

struct ServiceCidrs::State {
  State(api::Api& served, net::EventLoop& runs_on, const Clock& time, const own_calls::OwnCalls& own, Standby& other)
      : api(served), loop(runs_on), clock(time), tasks(runs_on, "service CIDRs"), calls(own), standby(other) {}

  api::Api& api;
  net::EventLoop& loop;
  const Clock& clock;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Standby& standby;

  // Owned by the loop.
  cache::Follower cidrs{tasks}, addresses{tasks};
  std::unordered_set<std::string, KeyHash, std::equal_to<>> deleted;  // Names of those that are being deleted.
  KeyedQueue<std::string> queue{tasks, [this](std::string name) { return settle(std::move(name)); }, standby.pausing()};

  // Those that wait for addresses or ranges to change.
  void look_at_deleted() {
    for (const std::string& name : deleted) queue.add(name);
  }

  Task<void> follow_cidrs() {
    return cidrs.run(*api.cache_of(kGroup, kPlural),
                     {.begin = [this] { deleted.clear(); }, .see = cache::one_by_one([this](const auto& event) {
                                                              const std::string name(event.object()->name());
                                                              deleted.erase(name);
                                                              look_at_deleted();
                                                              if (event.type != cache::EventType::Deleted)
                                                                queue.add(name);
                                                            })});
  }

  Task<void> follow_addresses() {
    return addresses.run(*api.cache_of(kGroup, kAddresses), {.see = cache::one_by_one([this](const auto& event) {
                                                               if (event.type == cache::EventType::Deleted)
                                                                 look_at_deleted();
                                                             })});
  }

  static Result<Value> tree_of(Arena& arena, const cache::Entry& entry) {
    const cache::Blob body = entry.body();
    return object_tree(arena, *resource().type, arena.copy(*body));
  }

  // Returns false to retry later.
  Task<bool> settle(std::string name) {
    Result<cache::Snapshot> all = co_await api.cache_of(kGroup, kPlural)->consistent(loop);
    if (!all) co_return false;
    const cache::EntryRef entry = all->find(name);
    if (!entry) co_return true;
    Arena arena;
    Result<Value> object = tree_of(arena, *entry);
    if (!object) co_return true;
    Draft draft(arena, *object);
    draft.root()
        .child("metadata")
        .set("resourceVersion", Value::string(arena, std::to_string(entry->revision().value)));
    if (is_deleted(*object)) co_return co_await settle_deleted(arena, *all, name, draft.value());
    if (!has_finalizer(*object)) {
      draft.root().child("metadata").append("finalizers", Value::string(kFinalizer));
      if (!co_await store(name, draft.value())) co_return false;
    }
    co_return co_await report(name, *object, kReady);
  }

  Task<bool> settle_deleted(Arena& arena, cache::Snapshot all, std::string name, Value object) {
    if (!has_finalizer(object)) co_return true;
    deleted.insert(name);
    const std::optional<bool> used = co_await is_used(all, name, networks_of(object));
    if (!used) co_return false;
    if (*used) co_return co_await report(name, object, kHeld);
    const std::optional<UnixTime> since = parse_rfc3339(object.text_at("metadata", "deletionTimestamp"));
    const int64_t left = since ? since->seconds + kGraceSeconds - clock.now().seconds : 0;
    if (left > 0) {
      tasks.run(look_again(name, std::chrono::seconds(std::min(left, kGraceSeconds))));
      co_return true;
    }
    ListBuilder kept(arena);
    for (const Value& one : object.items_at("metadata", "finalizers")) {
      if (one.as_string() != kFinalizer) kept.add(one);
    }
    Draft draft(arena, object);
    draft.root().child("metadata").set("finalizers", kept.build());
    co_return co_await store(name, draft.value());
  }

  Task<void> look_again(std::string name, std::chrono::seconds after) {
    co_await tasks.sleep(after);
    if (!tasks.closing()) queue.add(name);
  }

  // Whether addresses of these networks are in use that no other ServiceCIDR contains; nullopt if that is not known.
  Task<std::optional<bool>> is_used(cache::Snapshot all, std::string name, Networks leaving) {
    Networks remaining;
    for (const cache::EntryRef& entry : all.list({}).entries) {
      if (entry->key() == name) continue;
      Arena arena;
      Result<Value> other = tree_of(arena, *entry);
      if (!other || is_deleted(*other)) continue;
      const Networks more = networks_of(*other);
      remaining.insert(remaining.end(), more.begin(), more.end());
    }
    if (covered(leaving, remaining)) co_return false;
    Result<cache::Snapshot> in_use = co_await api.cache_of(kGroup, kAddresses)->consistent(loop);
    if (!in_use) co_return std::nullopt;
    const cache::ListPage page = in_use->list({});
    for (const cache::EntryRef& entry : page.entries) {
      if (entry->label(kManagedBy) != kAllocator) continue;
      const std::optional<IpAddress> address = IpAddress::parse(entry->key());
      if (address && orphaned(leaving, remaining, *address)) co_return true;
    }
    // An address that cannot be decoded may belong to a Service.
    for (const cache::Unreadable& unreadable : page.unreadable) {
      const std::optional<IpAddress> address = IpAddress::parse(unreadable.key);
      if (address && orphaned(leaving, remaining, *address)) co_return true;
    }
    co_return false;
  }

  Task<bool> store(std::string name, Value object) {
    const Result<Answer> answer =
        co_await own_calls::send(calls, Request::update(target_of(resource(), name), object, kControllerManager));
    co_return answer && (answer->succeeded() || answer->not_found());
  }

  Task<bool> report(std::string name, Value object, Ready ready) {
    if (says(object, ready)) co_return true;
    Arena arena;
    MapBuilder condition(arena), status(arena), metadata(arena), next(arena);
    condition.add("type", Value::string("Ready"));
    condition.add("status", Value::string(ready.status));
    condition.add("reason", Value::string(ready.reason));
    condition.add("message", Value::string(ready.message));
    condition.add("lastTransitionTime", Value::string(arena, format_rfc3339(clock.now())));
    ListBuilder conditions(arena);
    conditions.add(condition.build());
    status.add("conditions", conditions.build());
    metadata.add("name", Value::string(name));
    next.add("apiVersion", Value::string("networking.k8s.io/v1"));
    next.add("kind", Value::string("ServiceCIDR"));
    next.add("metadata", metadata.build());
    next.add("status", status.build());
    const Result<Answer> answer = co_await own_calls::send(
        calls, Request::apply(target_of(resource(), name).sub("status"), next.build(), kManager));
    if (answer && (answer->succeeded() || answer->not_found())) co_return true;
    log::warning("the status of a ServiceCIDR could not be written", {{"name", name}, {"answer", text_of(answer)}});
    co_return false;
  }
};

ServiceCidrs::ServiceCidrs(api::Api& api, net::EventLoop& loop, const Clock& clock, const own_calls::OwnCalls& calls,
                           Standby& standby)
    : state_(std::make_unique<State>(api, loop, clock, calls, standby)) {}
ServiceCidrs::~ServiceCidrs() = default;

void ServiceCidrs::start() {
  // Without the API group there is nothing to protect.
  if (state_->api.cache_of(kGroup, kPlural) == nullptr || state_->api.cache_of(kGroup, kAddresses) == nullptr) return;
  state_->tasks.post([state = state_.get()] { return state->follow_cidrs(); });
  state_->tasks.post([state = state_.get()] { return state->follow_addresses(); });
}

Task<void> ServiceCidrs::close(Executor& executor) {
  co_await state_->tasks.close(executor, [state = state_.get()] {
    state->cidrs.cancel();
    state->addresses.cancel();
  });
}

}  // namespace holdfast::controllers
