#include "types/types.h"

#include <algorithm>
#include <string>

#include "catalog.inc"

namespace holdfast::types {

const Field* find_member(const Type& type, std::string_view name) {
  const auto found = std::ranges::lower_bound(type.members_by_name, name, {},
                                              [&](uint16_t position) { return type.members[position]->name; });
  if (found == type.members_by_name.end()) return nullptr;
  const Field* field = type.members[*found];
  return field->name == name ? field : nullptr;
}

std::span<const Resource> builtin_resources() { return catalog::resources; }

namespace {

// `order` is sorted by (name, group, version).
const Resource* find_in(std::span<const uint8_t> order, std::string_view Resource::* name_of, std::string_view name,
                        std::string_view group, std::string_view version) {
  const auto before = [&](uint8_t position) {
    const Resource& resource = catalog::resources[position];
    if (const int by_name = (resource.*name_of).compare(name)) return by_name < 0;
    if (const int by_group = resource.group.compare(group)) return by_group < 0;
    return resource.version < version;
  };
  const auto found = std::ranges::partition_point(order, before);
  if (found == order.end()) return nullptr;
  const Resource& resource = catalog::resources[*found];
  const bool same = resource.*name_of == name && resource.group == group && resource.version == version;
  return same ? &resource : nullptr;
}

}  // namespace

const Resource* find_resource(std::string_view group, std::string_view version, std::string_view plural) {
  return find_in(catalog::resources_by_plural, &Resource::plural, plural, group, version);
}

const Resource* find_kind(std::string_view group, std::string_view version, std::string_view kind) {
  return find_in(catalog::resources_by_kind, &Resource::kind, kind, group, version);
}

const Type* find_type_of(std::string_view group, std::string_view version, std::string_view kind) {
  const auto in_package = [&](std::string_view package) {
    std::string name(package);
    name += '.';
    name += kind;
    const Type* type = find_type(name);
    const bool is_kind = type != nullptr && type->shape == Shape::Struct && find_member(*type, "apiVersion") != nullptr;
    return is_kind ? type : nullptr;
  };
  bool served = group == "meta.k8s.io" && version == "v1";
  for (const Resource& resource : builtin_resources()) {
    if (resource.group != group || resource.version != version) continue;
    const std::string_view name = resource.type->name;
    if (const Type* type = in_package(name.substr(0, name.rfind('.')))) return type;
    served = true;
    break;
  }
  return served ? in_package("meta/v1") : nullptr;
}

std::span<const Type* const> builtin_types() { return catalog::types; }

const Type* find_type(std::string_view name) {
  const auto found = std::ranges::lower_bound(catalog::types, name, {}, &Type::name);
  return found != std::end(catalog::types) && (*found)->name == name ? *found : nullptr;
}

const Type* find_type_by_openapi_name(std::string_view openapi_name) {
  const auto found = std::ranges::lower_bound(catalog::types_by_openapi_name, openapi_name, {},
                                              [](uint16_t position) { return catalog::types[position]->openapi_name; });
  if (found == std::end(catalog::types_by_openapi_name)) return nullptr;
  const Type* type = catalog::types[*found];
  return type->openapi_name == openapi_name ? type : nullptr;
}

}  // namespace holdfast::types
