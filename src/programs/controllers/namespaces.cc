#include "controllers/namespaces.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "cache/cache.h"
#include "cache/follower.h"
#include "codec/codec.h"
#include "controllers/objects.h"
#include "own_calls/requests.h"
#include "resource/resource.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {

using own_calls::Answer;
using own_calls::Request;
using own_calls::Target;

namespace {

constexpr std::string_view kRootCaDescription =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters.";

// An object with this name, so far without any other member.
MapBuilder named(Arena& arena, std::string_view kind, Value metadata) {
  MapBuilder object(arena);
  object.add("apiVersion", Value::string("v1"));
  object.add("kind", Value::string(kind));
  object.add("metadata", metadata);
  return object;
}

// Objects that cannot be decoded count as well.
bool nothing_in(const cache::ListPage& page) { return page.entries.empty() && page.unreadable.empty(); }

}  // namespace

struct NamespaceController::State {
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Standby& other,
        NamespaceControllerOptions chosen)
      : api(served),
        loop(runs_on),
        tasks(runs_on, "namespace controller"),
        calls(own),
        standby(other),
        options(std::move(chosen)) {}

  api::Api& api;
  net::EventLoop& loop;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Standby& standby;
  const NamespaceControllerOptions options;

  // Owned by the loop.
  cache::Follower namespaces{tasks};
  KeyedQueue<std::string> queue{tasks, [this](std::string name) { return settle(std::move(name)); }, standby.pausing()};

  Task<void> follow_namespaces() {
    return namespaces.run(*api.cache_of("", "namespaces"), {.see = cache::one_by_one([this](const auto& event) {
                                                              if (event.type != cache::EventType::Deleted)
                                                                queue.add(std::string(event.object()->name()));
                                                            })});
  }

  // Returns false to retry later, true if the namespace needs no more work for now, or is deleted.
  Task<bool> settle(std::string name) {
    static const types::Resource& resource = *types::find_resource("", "v1", "namespaces");
    const Target target = own_calls::object(resource, "", name);
    Result<Answer> answer = co_await own_calls::send(calls, Request::get(target));
    if (answer && answer->not_found()) co_return true;
    if (!answer || !answer->succeeded()) co_return false;
    Arena arena;
    Result<Value> found = answer->object(arena);
    if (!found) co_return false;
    if (found->text_at("metadata", "deletionTimestamp").empty()) co_return co_await create_default_objects(name);
    const auto finalizers = found->items_at("spec", "finalizers");
    const bool held = std::any_of(finalizers.begin(), finalizers.end(), [](const Value& item) {
      return item.is_string() && item.as_string() == "kubernetes";
    });
    if (!held || !options.deletes_content) co_return true;
    if (!co_await empty_out(name)) co_return false;
    ListBuilder left(arena);
    for (const Value& item : finalizers) {
      if (!item.is_string() || item.as_string() != "kubernetes") left.add(item);
    }
    const std::string_view at[] = {"spec", "finalizers"};
    const Value released = with_path(arena, *found, at, left.build());
    const Result<Answer> written =
        co_await own_calls::send(calls, Request::update(target.sub("finalize"), released, kControllerManager));
    co_return written && (written->succeeded() || written->not_found());
  }

  // Creates the objects that every namespace has. Returns false to retry later.
  Task<bool> create_default_objects(const std::string& name) {
    bool done = true;
    Arena arena;
    MapBuilder metadata(arena);
    if (options.makes_service_accounts) {
      static const types::Resource& accounts = *types::find_resource("", "v1", "serviceaccounts");
      metadata.add("name", Value::string("default"));
      done = co_await ensure(own_calls::object(accounts, name, "default"),
                             named(arena, "ServiceAccount", metadata.build()).build());
    }
    if (options.publishes_root_ca) {
      static const types::Resource& maps = *types::find_resource("", "v1", "configmaps");
      MapBuilder annotations(arena), published(arena), data(arena);
      annotations.add("kubernetes.io/description", Value::string(kRootCaDescription));
      published.add("name", Value::string("kube-root-ca.crt"));
      published.add("annotations", annotations.build());
      data.add("ca.crt", Value::string(options.root_ca_pem));
      MapBuilder map = named(arena, "ConfigMap", published.build());
      map.add("data", data.build());
      done = co_await ensure(own_calls::object(maps, name, "kube-root-ca.crt"), map.build()) && done;
    }
    co_return done;
  }

  // Creates the object unless it exists. A 4xx response is final: the namespace is terminating (an event follows), or
  // the object is rejected (by a quota, a webhook).
  Task<bool> ensure(Target target, Value object) {
    Result<Answer> answer = co_await own_calls::send(calls, Request::get(target));
    if (answer && answer->not_found()) {
      target.name.clear();
      answer = co_await own_calls::send(calls, Request::create(target, object, kControllerManager));
    }
    co_return answer && answer->status < 500;
  }

  // Deletes the content of the namespace, pods first. Returns true when nothing is left.
  Task<bool> empty_out(const std::string& name) {
    const resource::Registry::SnapshotRef registry = api.registry().snapshot();
    std::vector<const types::Resource*> resources;
    for (const resource::Served& served : registry->all()) {
      const types::Resource& resource = *served.resource;
      if (!resource.namespaced || served.storage == nullptr || served.resource != served.stored) continue;
      if (has_verb(resource, "deletecollection") && has_verb(resource, "list")) resources.push_back(&resource);
    }
    std::stable_partition(resources.begin(), resources.end(),
                          [](const types::Resource* resource) { return resource->plural == "pods"; });
    bool empty = true;
    for (const types::Resource* resource : resources) {
      cache::Cache* objects = api.cache_of(resource->group, resource->plural);
      if (objects == nullptr) continue;
      Result<cache::Snapshot> before = co_await objects->consistent(loop);
      if (!before) co_return false;
      cache::ListRequest within;
      within.scope = name + "/";
      within.limit = 1;
      if (nothing_in(before->list(within))) continue;
      (void)co_await own_calls::send(calls, Request::remove_all(own_calls::collection(*resource, name)));
      Result<cache::Snapshot> after = co_await objects->consistent(loop);
      empty = empty && after && nothing_in(after->list(within));
    }
    co_return empty;
  }
};

NamespaceController::NamespaceController(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls,
                                         Standby& standby, NamespaceControllerOptions options)
    : state_(std::make_unique<State>(api, loop, calls, standby, std::move(options))) {}
NamespaceController::~NamespaceController() = default;

void NamespaceController::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_namespaces(); });
}

Task<void> NamespaceController::close(Executor& executor) {
  co_await state_->tasks.close(executor, [this] { state_->namespaces.cancel(); });
}

}  // namespace holdfast::controllers
