#include "server/first_objects.h"

#include "base/log.h"
#include "codec/codec.h"

namespace holdfast::server {

namespace {

struct Progress {
  size_t left = 0;
};

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
};

Writes writes_of(const bootstrap::Step& step) {
  const std::string collection = collection_path(*step.resource, step.object.text_at("metadata", "namespace"));
  Writes writes;
  writes.path = collection + "/" + std::string(step.object.text_at("metadata", "name"));
  writes.create.method = "POST";
  writes.create.target = collection + "?fieldManager=" + std::string(step.manager);
  writes.create.headers = {{"content-type", "application/json"}, {"accept", "application/json"}};
  writes.create.body = codec::encode_json(step.object);
  if (!step.status.is_null()) {
    net::ClientRequest& status = writes.status.emplace();
    status.method = "PATCH";
    status.target = writes.path + "/status?force=true&fieldManager=" + std::string(step.status_manager);
    status.headers = {{"content-type", "application/apply-patch+yaml"}, {"accept", "application/json"}};
    status.body = codec::encode_json(step.status);
  }
  return writes;
}

Task<void> make_one(net::EventLoop& loop, const net::Handler& handler, Writes writes) {
  auto note = [&](const Result<net::ClientResponse>& answer) {
    if (answer && answer->status < 300) return true;
    if (answer && answer->status == 409) return false;  // Somebody else's, or an earlier start's.
    log::warning("an object of an empty server could not be made",
                 {{"path", writes.path}, {"answer", answer ? answer->body : answer.error().message}});
    return false;
  };
  net::ClientRequest get;
  get.target = writes.path;
  get.headers = {{"accept", "application/json"}};
  Result<net::ClientResponse> known = co_await net::call_handler(loop, handler, std::move(get));
  if (known && known->status == 200) co_return;
  Result<net::ClientResponse> created = co_await net::call_handler(loop, handler, std::move(writes.create));
  if (!note(created) || !writes.status) co_return;
  note(co_await net::call_handler(loop, handler, std::move(*writes.status)));
}

// All of them at once: the store commits together what arrives together.
Task<void> make_all(net::EventLoop& loop, const net::Handler& handler, std::vector<Writes> all, Progress& progress) {
  if (all.empty()) co_return;
  progress.left = all.size();
  co_await from_callback<Unit>(loop, [&](auto done) {
    for (Writes& writes : all) {
      spawn(make_one(loop, handler, std::move(writes)), [&progress, done](std::exception_ptr thrown) mutable {
        if (thrown) log::error("an exception while making the objects of an empty server");
        if (--progress.left == 0) done(Unit{});
      });
    }
  });
}

}  // namespace

Task<void> make_first_objects(api::Api& api, net::EventLoop& loop, bootstrap::Options options, UnixTime now) {
  if (!loop.in_thread()) co_await resume_on(loop);
  auto user = std::make_shared<const auth::UserInfo>(
      auth::UserInfo{.name = "system:apiserver", .uid = {}, .groups = {std::string(auth::kMastersGroup)}, .extra = {}});
  const net::Handler handler = [&api, user](net::Request& request, net::Response& response) {
    return api.handle(request, response, user);
  };
  // Namespaces first: everything else may lie in one.
  std::vector<Writes> namespaces, others;
  {
    Arena arena;
    for (const bootstrap::Step& step : bootstrap::steps(arena, options, now)) {
      const bool is_namespace = step.resource->group.empty() && step.resource->plural == "namespaces";
      (is_namespace ? namespaces : others).push_back(writes_of(step));
    }
  }
  Progress progress;
  co_await make_all(loop, handler, std::move(namespaces), progress);
  co_await make_all(loop, handler, std::move(others), progress);
}

}  // namespace holdfast::server
