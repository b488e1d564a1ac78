#include "verbs/verbs.h"

#include "base/api_error.h"
#include "own_calls/own_calls.h"
#include "verbs/each.h"
#include "verbs/subresources.h"

namespace holdfast::verbs {
namespace {

// --- Routing. 404 for a path without routes, 405 for a method that its routes do not support. ---

enum class Route : uint8_t {
  Found,
  NoPath,
  NoMethod,
  NoSubresource,  // Not declared by the definition of the custom resource.
  NoVerb,         // Not supported by the custom resource.
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

// Custom resources have no routes: scope, subresource and verb are checked in this order (crdHandler.ServeHTTP in
// customresource_handler.go).
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
  const bool in_namespace = info.in_namespace;
  if (info.verb == request::Verb::Proxy) return Route::NoPath;
  // Includes namespaces/{ns}/namespaces, which permissions inside {ns} would authorize.
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

Task<void> dispatch(call::Call& call, const Parts& parts) {
  if (is_connect(call)) {
    co_await serve_connect(call, parts);
    co_return;
  }
  switch (call.info.verb) {
    case request::Verb::Get:
      co_await serve_get(call, parts);
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
  // Unknown groups, and unknown resources of custom groups, fall through every router.
  if (!call.registry->serves_builtin_group(call.info.group)) return respond_path_not_found(call, parts);
  respond_error(call, render::route_not_found());
}

// The header checks of a built-in resource's router, before its verb. Custom resources have no such router, and
// requests proxied to a node may have any form.
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

void respond_path_not_found(call::Call& call, const Parts& parts) {
  if (parts.definitions.listed()) {
    return respond(call, 404, net::Body(std::string("404 page not found\n")), "text/plain; charset=utf-8");
  }
  Error error{Reason::ServiceUnavailable,
              "the request has been made before all known HTTP paths have been installed, please try again"};
  error.retry_after_seconds = 5;
  respond_error(call, error);
}

Task<void> respond_to_write(call::Call& call, const Parts& parts, Result<write::Written> written) {
  if (!written) co_return respond_error(call, written.error());
  // The server's own status writes end up here as well; they are part of settle().
  if (custom::is_definition(*call.served->resource) && call.user->name != own_calls::kServerUser) {
    const std::string name(written->stored.text_at("metadata", "name"));
    co_await parts.definitions.settle(name, call.request.loop());
  }
  Result<Unit> prepared = co_await custom::convert_for_view(call, written->body);
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
