#include "controllers/namespaces.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/log.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "controllers/follow.h"
#include "controllers/keyed_work.h"
#include "controllers/objects.h"
#include "resource/resource.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {
namespace {

using std::chrono_literals::operator""ms;

// Delay before another attempt while objects have finalizers or a call has failed; doubles each time.
constexpr auto kFirstWait = 50ms, kLongestWait = 5000ms;

// An object that cannot be read is there as well.
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
  KeyedWork work{tasks, [this](std::string_view name) { return settle(std::string(name)); }};

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

  // Repeats until the namespace needs nothing more at the moment, or is gone.
  Task<void> settle(std::string name) {
    auto wait = kFirstWait;
    while (!tasks.closing()) {
      if (pause.on()) {
        co_await tasks.sleep(Pause::kLook);
        continue;
      }
      if (co_await settle_once(name)) co_return;
      co_await tasks.sleep(wait);
      wait = std::min<std::chrono::milliseconds>(wait * 2, kLongestWait);
    }
  }

  // False: try again later.
  Task<bool> settle_once(const std::string& name) {
    const std::string path = "/api/v1/namespaces/" + name;
    Result<net::ClientResponse> answer = co_await call("GET", path, "", "");
    if (answer && answer->status == 404) co_return true;
    if (!answer || answer->status != 200) co_return false;
    Arena arena;
    Result<Value> found = codec::decode_json(arena, answer->body);
    if (!found) co_return false;
    if (found->text_at("metadata", "deletionTimestamp").empty()) co_return co_await furnish(name);
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

  // Creates what every namespace has. False: try again later.
  Task<bool> furnish(const std::string& name) {
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

  // Creates the object unless it exists. A response of 4xx is final: the namespace is being deleted (an event follows),
  // or someone rejects the object (a quota, a webhook).
  Task<bool> ensure(std::string collection, std::string name, std::string object) {
    Result<net::ClientResponse> answer = co_await call("GET", collection + "/" + name, "", "");
    if (answer && answer->status == 404) {
      answer = co_await call("POST", collection + "?fieldManager=kube-controller-manager", std::move(object),
                             "application/json");
    }
    co_return answer && answer->status < 500;
  }

  // Deletes what is in the namespace, pods first. True when nothing is left.
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
      (void)co_await call("DELETE", collection_path(*resource, name), "", "");
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
