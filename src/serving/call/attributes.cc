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

}  // namespace

auth::Attributes attributes_of(const request::RequestInfo& info, const auth::UserInfo* user) {
  if (!info.target().is_resource) return {user, info.verb(), info.path()};
  return {user, info.verb(), resource_attributes(info.target(), info.name())};
}

auth::Attributes Call::attributes(std::string_view verb) const {
  return {user.get(), verb, resource_attributes(info, info.name)};
}

}  // namespace holdfast::call
