#include "own_calls/requests.h"

#include "base/percent.h"
#include "codec/codec.h"

namespace holdfast::own_calls {
namespace {

constexpr std::string_view kJson = "application/json";

Result<Unit> append_segment(std::string& path, std::string_view segment) {
  if (!is_path_segment(segment)) return bad_request("\"" + std::string(segment) + "\" cannot be part of a path");
  path += '/';
  append_percent_encoded(path, segment);
  return Unit{};
}

Task<Result<Answer>> perform(OwnCalls calls, net::ClientRequest request) {
  Result<net::ClientResponse> response = co_await calls.send(std::move(request));
  if (!response) co_return response.take_error();
  co_return Answer{response->status, std::move(response->body)};
}

Task<Result<Answer>> refuse(Error why) { co_return why; }

}  // namespace

Target Target::sub(std::string_view subresource_name) const {
  Target target = *this;
  target.subresource = subresource_name;
  return target;
}

Target collection(const types::Resource& resource, std::string_view ns) {
  return {.group = std::string(resource.group),
          .version = std::string(resource.version),
          .resource = std::string(resource.plural),
          .ns = std::string(resource.namespaced ? ns : std::string_view())};
}

Target object(const types::Resource& resource, std::string_view ns, std::string_view name) {
  Target target = collection(resource, ns);
  target.name = name;
  return target;
}

bool is_path_segment(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find_first_of("/%") == std::string_view::npos;
}

Result<std::string> path_of(const Target& target) {
  std::string path = target.group.empty() ? "/api" : "/apis";
  const auto add = [&path](std::string_view segment) { return append_segment(path, segment); };
  if (!target.group.empty()) {
    if (Result<Unit> added = add(target.group); !added) return added.take_error();
  }
  if (Result<Unit> added = add(target.version); !added) return added.take_error();
  if (!target.ns.empty()) {
    path += "/namespaces";
    if (Result<Unit> added = add(target.ns); !added) return added.take_error();
  }
  if (Result<Unit> added = add(target.resource); !added) return added.take_error();
  if (target.name.empty() && target.subresource.empty()) return path;
  if (Result<Unit> added = add(target.name); !added) return added.take_error();
  if (target.subresource.empty()) return path;
  if (Result<Unit> added = add(target.subresource); !added) return added.take_error();
  return path;
}

Request::Request(std::string_view method, Result<std::string> path, std::string_view manager) {
  http_.method = method;
  if (!path) {
    refusal_ = path.take_error();
    return;
  }
  http_.target = std::move(*path);
  http_.headers.emplace_back("accept", kJson);
  if (!manager.empty()) *this = std::move(*this).with_query("fieldManager", manager);
}

Request Request::on_object(std::string_view method, const Target& target, std::string_view manager) {
  // Without a name, this would be a request for the whole collection.
  if (target.name.empty()) return {method, bad_request("an object of " + target.resource + " needs a name")};
  return {method, path_of(target), manager};
}

Request Request::on_collection(std::string_view method, const Target& target, std::string_view manager) {
  if (!target.name.empty()) return {method, bad_request("a collection of " + target.resource + " has no name")};
  return {method, path_of(target), manager};
}

Request Request::with(const Value& body, std::string_view content_type) && {
  http_.headers.emplace_back("content-type", content_type);
  http_.body = codec::encode_json(body);
  return std::move(*this);
}

Request Request::with_query(std::string_view name, std::string_view value) && {
  http_.target += http_.target.find('?') == std::string::npos ? '?' : '&';
  http_.target.append(name).append("=");
  append_percent_encoded(http_.target, value);
  return std::move(*this);
}

Request Request::get(const Target& object) { return on_object("GET", object); }
Request Request::list(const Target& collection) { return on_collection("GET", collection); }

Request Request::create(const Target& collection, const Value& object, std::string_view manager) {
  return on_collection("POST", collection, manager).with(object, kJson);
}

Request Request::update(const Target& object, const Value& next, std::string_view manager) {
  return on_object("PUT", object, manager).with(next, kJson);
}

Request Request::merge_patch(const Target& object, const Value& patch, std::string_view manager) {
  return on_object("PATCH", object, manager).with(patch, "application/merge-patch+json");
}

Request Request::apply(const Target& object, const Value& configuration, std::string_view manager) {
  return on_object("PATCH", object, manager)
      .with_query("force", "true")
      .with(configuration, "application/apply-patch+yaml");
}

Request Request::remove(const Target& object, const Deletion& deletion) {
  Arena arena;
  MapBuilder preconditions(arena), options(arena);
  if (!deletion.uid.empty()) preconditions.add("uid", Value::string(deletion.uid));
  if (!deletion.revision.empty()) preconditions.add("resourceVersion", Value::string(deletion.revision));
  options.add("kind", Value::string("DeleteOptions"));
  options.add("apiVersion", Value::string("v1"));
  if (!deletion.propagation.empty()) options.add("propagationPolicy", Value::string(deletion.propagation));
  if (const Value wanted = preconditions.build(); wanted.count() > 0) options.add("preconditions", wanted);
  return on_object("DELETE", object).with(options.build(), kJson);
}

Request Request::remove_all(const Target& collection) { return on_collection("DELETE", collection); }

Request Request::openapi(std::string_view group, std::string_view version) {
  std::string path = group.empty() ? "/openapi/v3/api" : "/openapi/v3/apis";
  if (!group.empty()) {
    if (Result<Unit> added = append_segment(path, group); !added) return {"GET", added.take_error()};
  }
  if (Result<Unit> added = append_segment(path, version); !added) return {"GET", added.take_error()};
  return {"GET", std::move(path)};
}

Request Request::without_body() && {
  for (auto& [name, value] : http_.headers) {
    if (name == "accept") value = "application/vnd.kubernetes.protobuf";
  }
  return std::move(*this);
}

Result<Value> Answer::object(Arena& arena) const { return codec::decode_json(arena, body); }

std::string_view text_of(const Result<Answer>& answer) { return answer ? answer->body : answer.error().message; }

Task<Result<Answer>> send(const OwnCalls& calls, Request request, net::Millis timeout) {
  if (request.refusal_) return refuse(std::move(*request.refusal_));
  request.http_.timeout = timeout;
  return perform(calls, std::move(request.http_));
}

}  // namespace holdfast::own_calls
