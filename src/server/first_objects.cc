#include "server/first_objects.h"

#include "base/log.h"
#include "base/task_group.h"
#include "codec/codec.h"

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
    log::warning("an object of an empty server could not be made",
                 {{"path", writes.path}, {"answer", answer ? answer->body : answer.error().message}});
  }

  api::Api& api_;
  store::Store& store_;
  net::Loops& loops_;
};

bool is_there(const api::Api& api, const bootstrap::Step& step) {
  const types::Resource& resource = *step.resource;
  return api
      .identity_of(resource.group, resource.plural, step.object.text_at("metadata", "namespace"),
                   step.object.text_at("metadata", "name"))
      .has_value();
}

}  // namespace

Task<void> make_first_objects(api::Api& api, store::Store& store, net::Loops& loops, bootstrap::Options options,
                              UnixTime now) {
  if (!loops.at(0).in_thread()) co_await resume_on(loops.at(0));
  std::vector<Writes> namespaces, others;
  {
    Arena arena;
    for (const bootstrap::Step& step : bootstrap::steps(arena, options, now)) {
      if (is_there(api, step)) continue;
      const bool is_namespace = step.resource->group.empty() && step.resource->plural == "namespaces";
      (is_namespace ? namespaces : others).push_back(writes_of(step));
    }
  }
  Maker maker(api, store, loops);
  // Namespaces first: everything else may be in one.
  co_await maker.make(std::move(namespaces));
  co_await maker.make(std::move(others));
}

}  // namespace holdfast::server
