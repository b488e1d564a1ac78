#include "write/admission_inputs.h"

#include "write/admission_match.h"

namespace holdfast::write {
namespace {

void add_text(MapBuilder& map, std::string_view key, std::string_view text) {
  if (!text.empty()) map.add(key, Value::string(text));
}

}  // namespace

cel::Authorizer::Decision RequestAuthorizer::decide(const Check& check) {
  auth::UserInfo account;
  if (!check.service_account_name.empty()) {
    const std::string ns(check.service_account_namespace);
    account.name = "system:serviceaccount:" + ns + ":" + std::string(check.service_account_name);
    account.groups = {"system:serviceaccounts", "system:serviceaccounts:" + ns, std::string(auth::kAuthenticatedGroup)};
  }
  const auth::UserInfo* user = check.service_account_name.empty() ? &user_ : &account;
  const auth::ResourceAttributes on = {.group = check.group,
                                       .resource = check.resource,
                                       .subresource = check.subresource,
                                       .ns = check.namespace_name,
                                       .name = check.name};
  const auth::Decision decision = authorizer_.authorize(
      check.about_resource ? auth::Attributes(user, check.verb, on) : auth::Attributes(user, check.verb, check.path));
  return {decision.allowed(), decision.reason, std::nullopt};
}

Value request_value(call::Call& call, const AdmissionRequest& request, const types::Resource& kind,
                    const types::Resource& resource) {
  Arena& arena = call.arena;
  MapBuilder map(arena);
  map.add("kind", webhook::kind_value(arena, kind_of(call, kind)));
  map.add("resource", webhook::resource_value(arena, resource_of(resource)));
  add_text(map, "subResource", request.subresource);
  map.add("requestKind", webhook::kind_value(arena, kind_of(call, *call.served->resource)));
  map.add("requestResource", webhook::resource_value(arena, resource_of(*call.served->resource)));
  add_text(map, "requestSubResource", request.subresource);
  add_text(map, "name", request.name);
  add_text(map, "namespace", request.ns);
  map.add("operation", Value::string(webhook::to_string(request.operation)));
  map.add("userInfo", webhook::user_value(arena, *request.user));
  map.add("dryRun", Value::boolean(request.dry_run));
  map.add("options", request.options);
  return map.build();
}

cel::Val::RequestResource request_resource(const call::Call& call, const AdmissionRequest& request) {
  const types::Resource& asked = *call.served->resource;
  return {asked.group, asked.plural, request.subresource, request.ns, request.name};
}

}  // namespace holdfast::write
