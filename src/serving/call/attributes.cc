#include "call/call.h"

namespace holdfast::call {
namespace {

auth::ResourceAttributes resource_attributes(const request::Target& target, std::string_view name) {
  return {.group = target.group,
          .version = target.version,
          .resource = target.resource,
          .subresource = target.subresource,
          .ns = target.ns,
          .name = name};
}

// As in Kubernetes, /watch/ paths have no selectors for authorization.
std::string_view selected_node(const request::RequestInfo& info) {
  const request::Verb verb = info.target().verb;
  const bool selects =
      verb == request::Verb::List || verb == request::Verb::Watch || verb == request::Verb::DeleteCollection;
  if (!selects || info.target().legacy_watch || !info.list()) return {};
  return request::required_node(info.list()->fields);
}

}  // namespace

auth::Attributes attributes_of(const request::RequestInfo& info, const auth::UserInfo* user) {
  if (!info.target().is_resource) return {user, info.verb(), info.path()};
  auth::Attributes attributes(user, info.verb(), resource_attributes(info.target(), info.name()));
  attributes.selected_node = selected_node(info);
  return attributes;
}

auth::Attributes Call::attributes(std::string_view verb) const {
  return {user.get(), verb, resource_attributes(info, info.name)};
}

}  // namespace holdfast::call
