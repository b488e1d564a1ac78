#include "verbs/verbs.h"

#include "base/api_error.h"
#include "base/text.h"
#include "own_calls/own_calls.h"
#include "verbs/each.h"
#include "verbs/subresources.h"

namespace holdfast::verbs {
namespace {

// --- Routing. A path that no route has is 404, a method that its routes lack 405. ---

enum class Route : uint8_t {
  Found,
  NoPath,
  NoMethod,
  NoSubresource,  // That the definition of a custom resource declares.
  NoVerb,         // That a custom resource has.
};

Route route_subresource(call::Call& call) {
  call.subresource = call.served->subresource(call.info.subresource);
  if (call.subresource == nullptr) return Route::NoPath;
  if (call.info.subresource == "proxy") {
    if (call.request.method == "OPTIONS") return Route::Found;
  } else if (call.request.method == "HEAD") {
    return Route::NoMethod;
  }
  std::string_view verb = to_string(call.info.verb);
  for (const std::string_view allowed : call.subresource->verbs) {
    if (allowed == verb) return Route::Found;
  }
  return Route::NoMethod;
}

// Custom resources have no routes: the scope, the subresource and the verb are looked at in this order
// (crdHandler.ServeHTTP in customresource_handler.go).
Route route_custom(call::Call& call) {
  const request::Target& info = call.info;
  const bool namespaced = call.served->resource->namespaced, in_namespace = !info.ns.empty();
  const bool crosses = info.verb == request::Verb::List || info.verb == request::Verb::Watch;
  if (namespaced ? !in_namespace && !crosses : in_namespace) return Route::NoPath;
  if (info.verb == request::Verb::Other || info.verb == request::Verb::Proxy) return Route::NoVerb;
  if (!info.subresource.empty()) {
    call.subresource = call.served->subresource(info.subresource);
    if (call.subresource == nullptr) return Route::NoSubresource;
    for (const std::string_view allowed : call.subresource->verbs) {
      if (allowed == to_string(info.verb)) return Route::Found;
    }
    return Route::NoVerb;
  }
  return call.served->has_verb(to_string(info.verb)) ? Route::Found : Route::NoVerb;
}

Route route(call::Call& call) {
  const request::Target& info = call.info;
  const types::Resource& resource = *call.served->resource;
  if (call.served->custom) return route_custom(call);
  // namespaces/{x} names itself; everything else says its scope in the path.
  const bool is_namespace = resource.group.empty() && resource.plural == "namespaces";
  const bool in_namespace = !info.ns.empty() && !is_namespace;
  if (info.verb == request::Verb::Proxy) return Route::NoPath;
  if (!resource.namespaced && in_namespace) return Route::NoPath;
  if (resource.namespaced && !in_namespace && !info.name.empty()) return Route::NoPath;
  if (info.has_rest && info.subresource != "proxy") return Route::NoPath;
  if (!info.subresource.empty()) {
    if (info.legacy_watch) return Route::NoPath;
    return route_subresource(call);
  }
  if (call.request.method == "HEAD") return Route::NoMethod;
  const bool all_namespaces = resource.namespaced && !in_namespace;
  switch (info.verb) {
    case request::Verb::Get:
    case request::Verb::List:
    case request::Verb::Watch:
    case request::Verb::Update:
    case request::Verb::Patch:
    case request::Verb::Delete:
      break;
    case request::Verb::Create:
      if (!info.name.empty() || all_namespaces) return Route::NoMethod;
      break;
    case request::Verb::DeleteCollection:
      if (all_namespaces) return Route::NoMethod;
      break;
    case request::Verb::Proxy:
    case request::Verb::Other:
      return Route::NoMethod;
  }
  if (info.legacy_watch && call.request.method != "GET") return Route::NoMethod;
  if ((info.verb == request::Verb::Update || info.verb == request::Verb::Patch) && info.name.empty())
    return Route::NoMethod;
  return call.served->has_verb(to_string(info.verb)) ? Route::Found : Route::NoMethod;
}

// Names that no object can have, because they would be another path: "..", "a%b".
bool has_impossible_name(call::Call& call) {
  const request::Verb verb = call.info.verb;
  if (call.info.name.empty() || call.served->storage == nullptr ||
      (verb != request::Verb::Get && verb != request::Verb::Patch && verb != request::Verb::Delete)) {
    return false;
  }
  const std::vector<std::string> problems = kinds::path_segment_errors(call.info.name);
  if (problems.empty()) return false;
  std::string message = "Name parameter invalid: " + go_quote(call.info.name) + ": ";
  for (size_t i = 0; i < problems.size(); ++i) message += (i == 0 ? "" : ";") + problems[i];
  respond_error(call, bad_request(std::move(message)));
  return true;
}

Task<void> dispatch(call::Call& call, const Parts& parts) {
  if (has_impossible_name(call)) co_return;
  if (is_connect(call)) {
    co_await serve_connect(call, parts.writer, parts.authorizer);
    co_return;
  }
  switch (call.info.verb) {
    case request::Verb::Get:
      co_await serve_get(call);
      break;
    case request::Verb::List:
      co_await serve_list(call);
      break;
    case request::Verb::Watch:
      co_await serve_watch(call);
      break;
    case request::Verb::Create:
      co_await serve_create(call, parts);
      break;
    case request::Verb::Update:
      co_await serve_update(call, parts);
      break;
    case request::Verb::Patch:
      co_await serve_patch(call, parts);
      break;
    case request::Verb::Delete:
      co_await serve_delete(call, parts.writer);
      break;
    case request::Verb::DeleteCollection:
      co_await serve_delete_collection(call, parts.writer);
      break;
    case request::Verb::Proxy:
    case request::Verb::Other:
      respond_error(call, render::route_method_not_allowed());
      break;
  }
}

void respond_unknown_path(call::Call& call, const Parts& parts) {
  // Unknown groups, and what is unknown in a custom one, fall through every router.
  if (!resource::Registry::Snapshot::is_builtin_group(call.info.group)) return respond_no_page(call, parts);
  respond_error(call, render::route_not_found());
}

// What the router of a built-in resource looks at before its verb does. Custom resources have no such router, and what
// is passed on to a node may have any form.
Result<Unit> check_route_headers(const call::Call& call) {
  if (call.served->custom || is_connect(call)) return Unit{};
  if (call.info.verb == request::Verb::Patch) {
    Result<request::PatchType> type =
        request::patch_type(call.request.headers.get("content-type"), false, call.settings.gates);
    if (!type) return type.take_error();
  }
  const bool list_route = call.info.verb == request::Verb::List || call.info.verb == request::Verb::Watch;
  return request::check_accept_route(call.request.headers.get("accept"), list_route, call.settings.gates);
}

}  // namespace

void respond_no_page(call::Call& call, const Parts& parts) {
  if (parts.definitions.listed()) {
    return respond(call, 404, net::Body(std::string("404 page not found\n")), "text/plain; charset=utf-8");
  }
  Error error{Reason::ServiceUnavailable,
              "the request has been made before all known HTTP paths have been installed, please try again"};
  error.retry_after_seconds = 5;
  respond_error(call, error);
}

Task<void> answer_written(call::Call& call, const Parts& parts, Result<write::Written> written) {
  if (!written) co_return respond_error(call, written.error());
  // The server's own status writes come this way too; they are part of settling.
  if (custom::is_definition(*call.served->resource) && call.user->name != own_calls::kServerUser) {
    const std::string name(written->stored.text_at("metadata", "name"));
    co_await parts.definitions.settle(name, call.request.loop());
  }
  Result<Unit> prepared = co_await custom::prepare_to_show(call, written->body);
  if (!prepared) co_return respond_error(call, prepared.error());
  write::respond_written(call, written->created ? 201 : 200, *written);
}

Task<void> serve(call::Call& call, const Parts& parts) {
  if (parts.aggregation.any() && co_await parts.aggregation.proxied(call)) co_return;
  if (!call.info.is_resource) {
    co_await serve_discovery(call, parts);
    co_return;
  }
  call.served = call.registry->find(call.info.group, call.info.version, call.info.resource);
  if (call.served == nullptr) co_return respond_unknown_path(call, parts);
  switch (route(call)) {
    case Route::Found:
      break;
    case Route::NoPath:
      co_return respond_unknown_path(call, parts);
    case Route::NoMethod:
      co_return respond_error(call, render::route_method_not_allowed());
    case Route::NoSubresource:
      co_return respond_error(call, not_found(call.group_resource(), call.info.name));
    case Route::NoVerb:
      co_return respond_error(call, method_not_supported(call.group_resource(), to_string(call.info.verb)));
  }
  const bool needs_name = call.info.verb == request::Verb::Update || call.info.verb == request::Verb::Patch;
  if (call.served->custom && needs_name && call.info.name.empty()) {
    co_return respond_error(call, bad_request("name must be provided"));
  }
  Result<Unit> acceptable = check_route_headers(call);
  if (!acceptable) co_return respond_error(call, acceptable.error());
  if (const std::string_view warning = call.served->object_rules->deprecation_warning(); !warning.empty()) {
    call.warnings.add(warning);
    record_annotation(call, "k8s.io/deprecated", "true");
  }
  co_await dispatch(call, parts);
}

}  // namespace holdfast::verbs
