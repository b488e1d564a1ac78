#include "controllers/namespaces.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/log.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "controllers/follow.h"
#include "controllers/objects.h"
#include "types/types.h"
#include "value/value.h"

namespace holdfast::controllers {
namespace {

using std::chrono_literals::operator""ms;

// Objects that hold themselves by finalizers are looked at again after this long, doubling.
constexpr auto kFirstWait = 50ms, kLongestWait = 5000ms;

}  // namespace

struct NamespaceController::State {
  State(api::Api& served, net::EventLoop& runs_on, const OwnCalls& own, Pause& rests, NamespaceControllerOptions chosen)
      : api(served), loop(runs_on), tasks(runs_on), calls(own), pause(rests), options(std::move(chosen)) {}

  api::Api& api;
  net::EventLoop& loop;
  Tasks tasks;
  const OwnCalls& calls;
  Pause& pause;
  const NamespaceControllerOptions options;

  // Owned by the loop.
  Followed namespaces;
  std::set<std::string> busy;  // Namespaces that a coroutine is at work on.

  Task<Result<net::ClientResponse>> call(std::string method, std::string target, std::string body, std::string type) {
    return calls.call(std::move(method), std::move(target), std::move(body), std::move(type));
  }

  Task<void> follow_namespaces() {
    return follow(
        tasks, *api.cache_of("", "namespaces"), namespaces, [] {},
        [this](const cache::Delivery& event) {
          if (event.type == cache::EventType::Deleted || !event.object()) return;
          std::string name(event.object()->name());
          if (busy.insert(name).second) tasks.run(look_after(std::move(name)));
        });
  }

  Task<void> look_after(std::string name) {
    co_await settle(name);
    busy.erase(name);
  }

  Task<void> settle(const std::string& name) {
    const std::string path = "/api/v1/namespaces/" + name;
    auto wait = kFirstWait;
    while (!tasks.closing()) {
      if (pause.on()) {
        co_await tasks.nap(Pause::kLook);
        continue;
      }
      Result<net::ClientResponse> answer = co_await call("GET", path, "", "");
      if (!answer || answer->status != 200) co_return;
      Arena arena;
      Result<Value> found = codec::decode_json(arena, answer->body);
      if (!found) co_return;
      if (found->text_at("metadata", "deletionTimestamp").empty()) {
        co_await furnish(name);
        co_return;
      }
      const auto finalizers = found->items_at("spec", "finalizers");
      const bool held = std::any_of(finalizers.begin(), finalizers.end(), [](const Value& item) {
        return item.is_string() && item.as_string() == "kubernetes";
      });
      if (!held || !options.deletes_content) co_return;
      if (co_await empty_out(name)) {
        ListBuilder left(arena);
        for (const Value& item : finalizers) {
          if (!item.is_string() || item.as_string() != "kubernetes") left.add(item);
        }
        const std::string_view at[] = {"spec", "finalizers"};
        const Value released = with_path(arena, *found, at, left.build());
        answer = co_await call("PUT", path + "/finalize", codec::encode_json(released), "application/json");
        // Somebody else changed it: look again.
        if (answer && answer->status != 409) co_return;
        continue;
      }
      co_await tasks.nap(wait);
      wait = std::min<std::chrono::milliseconds>(wait * 2, kLongestWait);
    }
  }

  // What every namespace has.
  Task<void> furnish(const std::string& name) {
    const std::string root = "/api/v1/namespaces/" + name;
    if (options.makes_service_accounts) {
      Result<net::ClientResponse> known = co_await call("GET", root + "/serviceaccounts/default", "", "");
      if (known && known->status == 404) {
        (void)co_await call("POST", root + "/serviceaccounts?fieldManager=kube-controller-manager",
                            R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})",
                            "application/json");
      }
    }
    if (!options.publishes_root_ca) co_return;
    Result<net::ClientResponse> known = co_await call("GET", root + "/configmaps/kube-root-ca.crt", "", "");
    if (!known || known->status != 404) co_return;
    (void)co_await call(
        "POST", root + "/configmaps?fieldManager=kube-controller-manager",
        R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt","annotations":{"kubernetes.io/description":)"
        R"("Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."}},"data":{"ca.crt":)" +
            codec::encode_json_string(options.root_ca_pem) + "}}",
        "application/json");
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
      if (before->list(within).entries.empty()) continue;
      (void)co_await call("DELETE", collection_path(*resource, name), "", "");
      Result<cache::Snapshot> after = co_await objects->consistent(loop);
      empty = empty && after && after->list(within).entries.empty();
    }
    co_return empty;
  }
};

NamespaceController::NamespaceController(api::Api& api, net::EventLoop& loop, const OwnCalls& calls, Pause& pause,
                                         NamespaceControllerOptions options)
    : state_(std::make_unique<State>(api, loop, calls, pause, std::move(options))) {}
NamespaceController::~NamespaceController() = default;

void NamespaceController::start() {
  state_->loop.post([state = state_.get()] { state->tasks.run(state->follow_namespaces()); });
}

Task<void> NamespaceController::close(Executor& executor) {
  co_await state_->tasks.close(executor, [this] { state_->namespaces.cancel(); });
}

}  // namespace holdfast::controllers
