#include "controllers/namespaces.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "controllers/follow.h"
#include "controllers/keyed_work.h"
#include "controllers/objects.h"
#include "own_calls/own_calls.h"
#include "resource/resource.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {
namespace {

// Objects that cannot be decoded count as well.
bool nothing_in(const cache::ListPage& page) { return page.entries.empty() && page.unreadable.empty(); }

}  // namespace

struct NamespaceController::State {
  State(api::Api& served, net::EventLoop& runs_on, const own_calls::OwnCalls& own, Pause& rests,
        NamespaceControllerOptions chosen)
      : api(served),
        loop(runs_on),
        tasks(runs_on, "namespace controller"),
        calls(own),
        pause(rests),
        options(std::move(chosen)) {}

  api::Api& api;
  net::EventLoop& loop;
  TaskGroup tasks;
  const own_calls::OwnCalls& calls;
  Pause& pause;
  const NamespaceControllerOptions options;

  // Owned by the loop.
  Followed namespaces;
  KeyedWork work{tasks, &pause, [this](std::string name) { return settle(std::move(name)); }};

  Task<Result<net::ClientResponse>> call(std::string method, std::string target, std::string body, std::string type) {
    return calls.call(std::move(method), std::move(target), std::move(body), std::move(type));
  }

  Task<void> follow_namespaces() {
    return follow(
        tasks, *api.cache_of("", "namespaces"), namespaces, [] {},
        [this](const cache::Delivery& event) {
          if (event.type != cache::EventType::Deleted && event.object()) work.request(event.object()->name());
        });
  }

  // Returns false to retry later, true if the namespace needs no more work for now, or is deleted.
  Task<bool> settle(std::string name) {
    const std::string path = "/api/v1/namespaces/" + name;
    Result<net::ClientResponse> answer = co_await call("GET", path, "", "");
    if (answer && answer->status == 404) co_return true;
    if (!answer || answer->status != 200) co_return false;
    Arena arena;
    Result<Value> found = codec::decode_json(arena, answer->body);
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
    answer = co_await call("PUT", path + "/finalize", codec::encode_json(released), "application/json");
    co_return answer && (answer->status < 300 || answer->status == 404);
  }

  // Creates the objects that every namespace has. Returns false to retry later.
  Task<bool> create_default_objects(const std::string& name) {
    const std::string root = "/api/v1/namespaces/" + name;
    bool done = true;
    if (options.makes_service_accounts) {
      done = co_await ensure(root + "/serviceaccounts", "default",
                             R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
    }
    if (options.publishes_root_ca) {
      done =
          co_await ensure(
              root + "/configmaps", "kube-root-ca.crt",
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt","annotations":{"kubernetes.io/description":)"
              R"("Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."}},"data":{"ca.crt":)" +
                  codec::encode_json_string(options.root_ca_pem) + "}}") &&
          done;
    }
    co_return done;
  }

  // Creates the object unless it exists. A 4xx response is final: the namespace is terminating (an event follows), or
  // the object is rejected (by a quota, a webhook).
  Task<bool> ensure(std::string collection, std::string name, std::string object) {
    Result<net::ClientResponse> answer = co_await call("GET", collection + "/" + name, "", "");
    if (answer && answer->status == 404) {
      answer = co_await call("POST", collection + "?fieldManager=kube-controller-manager", std::move(object),
                             "application/json");
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
      (void)co_await call("DELETE", own_calls::collection_path(*resource, name), "", "");
      Result<cache::Snapshot> after = co_await objects->consistent(loop);
      empty = empty && after && nothing_in(after->list(within));
    }
    co_return empty;
  }
};

NamespaceController::NamespaceController(api::Api& api, net::EventLoop& loop, const own_calls::OwnCalls& calls,
                                         Pause& pause, NamespaceControllerOptions options)
    : state_(std::make_unique<State>(api, loop, calls, pause, std::move(options))) {}
NamespaceController::~NamespaceController() = default;

void NamespaceController::start() {
  state_->tasks.post([state = state_.get()] { return state->follow_namespaces(); });
}

Task<void> NamespaceController::close(Executor& executor) {
  co_await state_->tasks.close(executor, [this] { state_->namespaces.cancel(); });
}

}  // namespace holdfast::controllers
