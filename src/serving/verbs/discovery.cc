// /api, /apis and the paths directly below: groups, versions and resources.
#include "discovery/discovery.h"
#include "verbs/each.h"

#include <algorithm>

#include "aggregate/aggregate.h"
#include "call/call.h"
#include "render/status.h"
#include "verbs/openapi_endpoint.h"

namespace holdfast::verbs {
namespace {

struct Path {
  std::string_view root, group, version;
  bool known = false;
};
Path split(std::string_view path) {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  std::string_view parts[4];
  size_t count = 0;
  while (!path.empty() && count < 4) {
    const size_t slash = path.find('/');
    parts[count++] = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  Path out;
  out.root = parts[0];
  if (out.root == "api" && count <= 2) {
    out.version = parts[1];
    out.known = true;
  } else if (out.root == "apis" && count <= 3) {
    out.group = parts[1];
    out.version = parts[2];
    out.known = true;
  }
  return out;
}

// The aggregated form, if the client prefers it over the plain one.
struct DiscoveryForm {
  bool aggregated = false;
  request::Format format = request::Format::Json;
};
Result<DiscoveryForm> discovery_form(call::Call& call, bool may_aggregate, bool may_be_cbor) {
  const request::NegotiationInput input = call::negotiation_input(call.request, call.query, call.settings.accept_rule);
  if (input.accept.empty()) return DiscoveryForm{};
  std::span<const request::Format> formats = request::served_formats(call.settings.gates);
  if (!may_be_cbor && formats.back() == request::Format::Cbor) formats = formats.first(formats.size() - 1);
  for (const request::AcceptClause& clause : request::parse_accept(input.accept, input.rule)) {
    if (!may_match(clause, input.rule, call.settings.gates)) continue;
    for (const request::Format format : formats) {
      const std::string_view type = media_type(format);
      const bool matches =
          (clause.type == "application" && (clause.subtype == type.substr(12) || clause.subtype == "*")) ||
          (clause.type == "*" && clause.subtype == "*");
      if (!matches) continue;
      const std::string_view as = clause.parameter("as");
      const bool transform = !as.empty() || !clause.parameter("g").empty() || !clause.parameter("v").empty();
      if (!transform) return DiscoveryForm{false, format};
      if (may_aggregate && as == "APIGroupDiscoveryList" && clause.parameter("g") == "apidiscovery.k8s.io" &&
          clause.parameter("v") == "v2") {
        return DiscoveryForm{true, format};
      }
    }
  }
  return Error{Reason::NotAcceptable, "only the following media types are accepted: " + request::media_types(formats)};
}

void respond_document(call::Call& call, const DiscoveryForm& form, const Value& document, const types::Type* type) {
  const bool pretty =
      negotiate_error(call::negotiation_input(call.request, call.query, call.settings.accept_rule), call.settings.gates)
          .pretty;
  Result<std::string> body = render::encode_response(document, type, form.format, pretty);
  if (!body) return respond_error(call, body.error());
  respond(call, 200, net::Body(std::move(*body)), media_type(form.format));
}

// In JSON, whatever the client accepts: it may be a format that these paths do not have.
void respond_not_acceptable(call::Call& call, const Error& error) {
  static const types::Type& type = *types::find_type("meta/v1.Status");
  const bool pretty =
      negotiate_error(call::negotiation_input(call.request, call.query, call.settings.accept_rule), call.settings.gates)
          .pretty;
  Result<std::string> body =
      render::encode_response(render::status_of(call.arena, error), &type, request::Format::Json, pretty);
  if (!body) return respond_error(call, body.error());
  respond(call, render::http_code(error), net::Body(std::move(*body)), media_type(request::Format::Json));
}

void respond_aggregated(call::Call& call, const aggregate::Aggregation& aggregation, const DiscoveryForm& form,
                        discovery::Part part) {
  Value document = discovery::aggregated(call.arena, call.registry->resources(), part);
  if (const aggregate::RemoteApisRef remotes = aggregation.remotes();
      remotes != nullptr && part == discovery::Part::Groups) {
    document = aggregate::with_remote_discovery(call.arena, document, *remotes);
  }
  const std::string etag = discovery::aggregated_etag(document);
  call.response.set_header("cache-control", "public");
  call.response.set_header("vary", "Accept");
  call.response.set_header("etag", etag);
  if (call.request.headers.get("if-none-match") == etag) {
    (void)call.response.send(304);
    return;
  }
  static const types::Type* type = types::find_type("apidiscovery/v2.APIGroupDiscoveryList");
  Result<std::string> body = render::encode_response(document, type, form.format, false);
  if (!body) return respond_error(call, body.error());
  respond(call, 200, net::Body(std::move(*body)),
          std::string(media_type(form.format)) + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
}

}  // namespace

Task<void> serve_discovery(call::Call& call, const Parts& parts) {
  if (call.request.path.starts_with("/openapi/")) {
    co_await serve_openapi(call, parts);
    co_return;
  }
  const Path path = split(call.request.path);
  if (!path.known) co_return respond_path_not_found(call, parts);
  const bool is_root = path.group.empty() && path.version.empty();
  const aggregate::RemoteApisRef remotes = parts.aggregation.remotes();
  const bool remote_group =
      remotes != nullptr && std::any_of(remotes->begin(), remotes->end(),
                                        [&](const aggregate::RemoteApi& remote) { return remote.group == path.group; });
  if (path.root == "apis" && !path.group.empty() && !remote_group && !call.registry->has_group(path.group)) {
    co_return respond_path_not_found(call, parts);
  }
  // Like Kubernetes' aggregator, group discovery ignores the method, except for the aggregator's own group.
  const bool any_method = path.root == "apis" && path.version.empty() && path.group != "apiregistration.k8s.io";
  const bool wrong_method = call.request.method != "GET" && !any_method;
  if (wrong_method && path.version.empty()) co_return respond_error(call, render::route_method_not_allowed());
  // As in Kubernetes, only versions of built-in groups are described in CBOR.
  const bool may_be_cbor =
      !path.version.empty() && (path.root == "api" || call.registry->serves_builtin_group(path.group));
  Result<DiscoveryForm> form = discovery_form(call, is_root, may_be_cbor);
  if (!form) co_return respond_not_acceptable(call, form.error());
  const discovery::Resources resources = call.registry->resources();
  if (form->aggregated) {
    co_return respond_aggregated(call, parts.aggregation, *form,
                                 path.root == "api" ? discovery::Part::Core : discovery::Part::Groups);
  }
  Value document;
  std::string_view type_name;
  if (path.root == "api" && path.version.empty()) {
    document = discovery::core_versions(call.arena, call.settings.server_address);
    type_name = "meta/v1.APIVersions";
  } else if (path.root == "apis" && path.group.empty()) {
    document = discovery::group_list(call.arena, resources);
    if (remotes != nullptr) document = aggregate::with_remote_groups(call.arena, document, *remotes);
    type_name = "meta/v1.APIGroupList";
  } else if (path.root == "apis" && path.version.empty()) {
    document = discovery::group(call.arena, resources, path.group);
    if (remotes != nullptr) document = aggregate::with_remote_versions(call.arena, document, path.group, *remotes);
    type_name = "meta/v1.APIGroup";
  } else {
    document = discovery::resource_list(call.arena, resources, path.group, path.version);
    type_name = "meta/v1.APIResourceList";
  }
  if (document.is_null()) {
    if (!call.registry->serves_builtin_group(path.group)) co_return respond_path_not_found(call, parts);
    co_return respond_error(call, render::route_not_found());
  }
  if (wrong_method) co_return respond_error(call, render::route_method_not_allowed());
  respond_document(call, *form, document, types::find_type(type_name));
}

}  // namespace holdfast::verbs
