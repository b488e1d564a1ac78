#include "server/first_objects.h"

#include "base/api_error.h"
#include "base/log.h"
#include "base/task_group.h"
#include "cache/cache.h"
#include "codec/codec.h"
#include "server/reconcile.h"

namespace holdfast::server {

namespace {

std::string collection_path(const types::Resource& resource, std::string_view ns) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + std::string(resource.group) + "/";
  path += resource.version;
  if (resource.namespaced) path += "/namespaces/" + std::string(ns);
  return path + "/" + std::string(resource.plural);
}

// A step as the requests it makes.
struct Writes {
  std::string path;  // Of the object.
  net::ClientRequest create;
  std::optional<net::ClientRequest> status;
  bool made = false;
};

Writes writes_of(const bootstrap::Step& step) {
  const std::string collection = collection_path(*step.resource, step.object.text_at("metadata", "namespace"));
  Writes writes;
  writes.path = collection + "/" + std::string(step.object.text_at("metadata", "name"));
  writes.create.method = "POST";
  writes.create.target = collection + "?fieldManager=" + std::string(step.manager);
  writes.create.headers = {{"content-type", "application/json"}};
  writes.create.body = codec::encode_json(step.object);
  if (!step.status.is_null()) {
    net::ClientRequest& status = writes.status.emplace();
    status.method = "PATCH";
    status.target = writes.path + "/status?force=true&fieldManager=" + std::string(step.status_manager);
    status.headers = {{"content-type", "application/apply-patch+yaml"}};
    status.body = codec::encode_json(step.status);
  }
  return writes;
}

class Maker {
 public:
  Maker(api::Api& api, store::Store& store, net::Loops& loops) : api_(api), store_(store), loops_(loops) {}

  // Creates, then writes the status of those that have one.
  Task<void> make(std::vector<Writes> all) {
    std::vector<Call> creates, statuses;
    for (Writes& writes : all) creates.push_back({&writes, &writes.create});
    co_await call_all(std::move(creates));
    for (Writes& writes : all) {
      if (writes.made && writes.status) statuses.push_back({&writes, &*writes.status});
    }
    co_await call_all(std::move(statuses));
  }

 private:
  struct Call {
    Writes* writes;
    net::ClientRequest* request;
  };

  // All of them at once, and the store is notified how many: it commits together what arrives together.
  Task<void> call_all(std::vector<Call> calls) {
    if (calls.empty()) co_return;
    store_.expect_writes(calls.size());
    std::vector<Task<void>> tasks;
    tasks.reserve(calls.size());
    for (size_t i = 0; i < calls.size(); ++i) tasks.push_back(call_one(loops_.at(i % loops_.count()), calls[i]));
    co_await when_all(loops_.at(0), std::move(tasks));
  }

  Task<void> call_one(net::EventLoop& loop, Call call) {
    Writes& writes = *call.writes;
    const Result<net::ClientResponse> answer = co_await api_.own_calls(loop).send(std::move(*call.request));
    writes.made = answer && answer->status < 300;
    // 409: created by someone else.
    if (writes.made || (answer && answer->status == 409)) co_return;
    // Another server that starts on the same etcd may have taken the address of the Service and be about to store it.
    const Result<net::ClientResponse> found = co_await api_.own_calls(loop).call("GET", writes.path);
    if (found && found->status == 200) co_return;
    log::warning("an object of an empty server could not be made",
                 {{"path", writes.path}, {"answer", answer ? answer->body : answer.error().message}});
  }

  api::Api& api_;
  store::Store& store_;
  net::Loops& loops_;
};

// The object of this name as it is stored; nothing: there is none.
std::optional<Value> stored_object(api::Api& api, Arena& arena, const types::Resource& resource, std::string_view ns,
                                   std::string_view name) {
  cache::Cache* objects = api.cache_of(resource.group, resource.plural);
  Result<cache::Snapshot> snapshot = objects == nullptr ? internal_error("not served") : objects->snapshot();
  if (!snapshot) return std::nullopt;
  const std::string key = resource.namespaced ? std::string(ns) + "/" + std::string(name) : std::string(name);
  const cache::EntryRef entry = snapshot->find(key);
  if (!entry) return std::nullopt;
  const store::Blob body = entry->body();
  Result<codec::ProtobufEnvelope> envelope = codec::open_envelope(arena.copy(*body));
  Result<Value> object = envelope ? codec::decode_protobuf(arena, *resource.type, envelope->message, envelope->type)
                                  : Result<Value>(envelope.error());
  // What cannot be read is there all the same.
  return object ? *object : Value::empty_map();
}

constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

// Roles and bindings that are there and lack something: written again. One that refers to another role is deleted
// first.
std::vector<net::ClientRequest> repairs_of(Arena& arena, const bootstrap::Step& step, const Value& live) {
  std::vector<net::ClientRequest> repairs;
  if (step.resource->group != kRbacGroup || !live.has("metadata")) return repairs;
  const std::optional<Value> repaired = reconcile(arena, live, step.object);
  if (!repaired) return repairs;
  const std::string collection = collection_path(*step.resource, step.object.text_at("metadata", "namespace"));
  const std::string path = collection + "/" + std::string(step.object.text_at("metadata", "name"));
  const Value *before = live.find("roleRef"), *after = repaired->find("roleRef");
  const bool replaces = after != nullptr && (before == nullptr || !equal(*before, *after));
  Draft draft(arena, *repaired);
  if (replaces) {
    for (const std::string_view key : {"uid", "resourceVersion"}) draft.root().child("metadata").remove(key);
    repairs.push_back({.method = "DELETE", .target = path});
  }
  repairs.push_back({.method = replaces ? "POST" : "PUT",
                     .target = (replaces ? collection : path) + "?fieldManager=" + std::string(step.manager),
                     .headers = {{"content-type", "application/json"}},
                     .body = codec::encode_json(draft.value())});
  return repairs;
}

// The permissions of system:public-info-viewer were once part of system:discovery: where that is there and the new one
// is not, those who have the one get the other; also those who have it by default, unless the one is not to be changed
// (primeSplitClusterRoleBindings).
bool was_split(const bootstrap::Step& step) {
  return step.resource->plural == "clusterrolebindings" &&
         step.object.text_at("metadata", "name") == "system:public-info-viewer";
}

}  // namespace

Task<void> make_first_objects(api::Api& api, store::Store& store, net::Loops& loops, bootstrap::Options options,
                              UnixTime now) {
  if (!loops.at(0).in_thread()) co_await resume_on(loops.at(0));
  std::vector<Writes> namespaces, others, addresses;
  std::vector<net::ClientRequest> repairs, left_over;
  {
    Arena arena;
    std::string address;  // The path of the object of our Service's address, if there is one.
    for (bootstrap::Step& step : bootstrap::steps(arena, options, now)) {
      const std::optional<Value> live =
          stored_object(api, arena, *step.resource, step.object.text_at("metadata", "namespace"),
                        step.object.text_at("metadata", "name"));
      const bool is_address = step.resource->plural == "ipaddresses";
      if (live) {
        const bool own = is_address && live->text_at("spec", "parentRef", "namespace") == "default" &&
                         live->text_at("spec", "parentRef", "name") == "kubernetes";
        if (own) address = writes_of(step).path;
        for (net::ClientRequest& repair : repairs_of(arena, step, *live)) repairs.push_back(std::move(repair));
        continue;
      }
      if (was_split(step)) {
        if (const std::optional<Value> source = stored_object(api, arena, *step.resource, "", "system:discovery")) {
          const Value split = split_binding(arena, step.object, *source);
          step.object = reconcile(arena, split, step.object).value_or(split);
        }
      }
      const bool is_namespace = step.resource->group.empty() && step.resource->plural == "namespaces";
      // Of a start that did not get further: the Service could not have its address.
      if (step.resource->plural == "services" && !address.empty()) {
        left_over.push_back({.method = "DELETE", .target = address});
      }
      (is_namespace ? namespaces : is_address ? addresses : others).push_back(writes_of(step));
    }
    for (const std::string& name : bootstrap::unserved_api_services(options)) {
      static const types::Resource& services = *types::find_resource("apiregistration.k8s.io", "v1", "apiservices");
      const std::optional<Value> live = stored_object(api, arena, services, "", name);
      if (!live || live->text_at("metadata", "labels", bootstrap::kAutomanaged) != "onstart") continue;
      repairs.push_back({.method = "DELETE", .target = collection_path(services, "") + "/" + name});
    }
  }
  Maker maker(api, store, loops);
  // Namespaces first: everything else may be in one.
  co_await maker.make(std::move(namespaces));
  for (net::ClientRequest& removal : left_over) {
    (void)co_await api.own_calls(loops.at(0)).send(std::move(removal));
  }
  co_await maker.make(std::move(others));
  // Last: a Service makes the object of its address, and cannot have one that it finds taken. Those of older servers
  // have none.
  co_await maker.make(std::move(addresses));
  for (net::ClientRequest& repair : repairs) {
    const std::string what = repair.method + " " + repair.target;
    const Result<net::ClientResponse> answer = co_await api.own_calls(loops.at(0)).send(std::move(repair));
    if (answer && answer->status < 300) continue;
    log::warning("an object that every server has could not be repaired",
                 {{"request", what}, {"answer", answer ? answer->body : answer.error().message}});
  }
}

}  // namespace holdfast::server
