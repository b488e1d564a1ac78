// ExtendedResourceToleration: pods tolerate the taints of nodes with the extended resources that they request.

#include <set>
#include <string>

#include "admission/plugin.h"
#include "kinds/kinds.h"

namespace holdfast::admission {
namespace {

bool is_pod_write(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && subresource.empty() &&
         (operation == Operation::Create || operation == Operation::Update);
}

bool is_extended(std::string_view resource) {
  constexpr std::string_view kQuotaPrefix = "requests.";
  return !kinds::is_native_resource(resource) && !resource.starts_with(kQuotaPrefix) &&
         kinds::qualified_name_errors(std::string(kQuotaPrefix) + std::string(resource)).empty();
}

Result<Unit> tolerate_resources(Attributes& attributes, Draft::Node pod) {
  std::set<std::string_view> missing;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Value& container : pod.value().items_at("spec", list)) {
      for (const Member& request : container.members_at("resources", "requests")) {
        if (is_extended(request.key)) missing.insert(request.key);
      }
    }
  }
  if (missing.empty()) return Unit{};
  const auto toleration = [&](std::string_view resource) {
    MapBuilder map(attributes.arena);
    map.add("key", Value::string(attributes.arena, resource));
    map.add("operator", Value::string("Exists"));
    map.add("effect", Value::string("NoSchedule"));
    return map.build();
  };
  const std::set<std::string_view> wanted = missing;
  ListBuilder next(attributes.arena);
  for (const Value& given : pod.value().items_at("spec", "tolerations")) {
    const std::string_view key = given.text_at("key");
    const bool same = wanted.contains(key) && given.text_at("operator") == "Exists" &&
                      given.text_at("effect") == "NoSchedule" && given.text_at("value").empty();
    if (same) missing.erase(key);
    next.add(same ? toleration(key) : given);
  }
  for (const std::string_view resource : missing) next.add(toleration(resource));
  pod.child("spec").set("tolerations", next.build());
  return Unit{};
}

}  // namespace

const Plugin kExtendedResourceToleration = {
    .name = "ExtendedResourceToleration", .handles = is_pod_write, .admit = tolerate_resources};

}  // namespace holdfast::admission
