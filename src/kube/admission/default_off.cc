// Plugins that only run if --enable-admission-plugins names them.

#include <algorithm>
#include <string>
#include <vector>

#include "admission/plugin.h"
#include "base/api_error.h"

namespace holdfast::admission {
namespace {

bool is_write(Operation operation) { return operation == Operation::Create || operation == Operation::Update; }

bool is_pod_write(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && subresource.empty() && is_write(operation);
}

// --- AlwaysAdmit ---

bool handles_nothing(const types::Resource&, std::string_view, Operation) { return false; }

// --- AlwaysDeny ---

bool handles_everything(const types::Resource&, std::string_view, Operation) { return true; }

Result<Unit> deny(Attributes& attributes, const Value& object) {
  return refuse(attributes, object, "admission control is denying all modifications");
}
Result<Unit> deny_draft(Attributes& attributes, Draft::Node object) { return deny(attributes, object.value()); }

// --- AlwaysPullImages ---

constexpr std::string_view kContainerLists[] = {"initContainers", "containers", "ephemeralContainers"};

std::vector<std::string_view> images_of(const Value& pod) {
  std::vector<std::string_view> images;
  for (const std::string_view list : kContainerLists) {
    for (const Value& container : pod.items_at("spec", list)) images.push_back(container.text_at("image"));
  }
  return images;
}

// Updates that keep the images are exempt, so that pods created before the plugin was enabled can be changed.
bool has_new_image(const Attributes& attributes, const Value& pod) {
  if (attributes.operation != Operation::Update || attributes.old == nullptr) return true;
  const std::vector<std::string_view> known = images_of(*attributes.old), images = images_of(pod);
  return std::any_of(images.begin(), images.end(), [&](std::string_view image) {
    return std::find(known.begin(), known.end(), image) == known.end();
  });
}

Result<Unit> always_pull(Attributes& attributes, Draft::Node pod) {
  if (!has_new_image(attributes, pod.value())) return Unit{};
  Draft::Node spec = pod.existing("spec");
  if (!spec) return Unit{};
  for (const std::string_view list : kContainerLists) {
    for (Draft::Node container : spec.list(list)) container.set("imagePullPolicy", Value::string("Always"));
  }
  for (Draft::Node volume : spec.list("volumes")) {
    if (Draft::Node image = volume.existing("image")) image.set("pullPolicy", Value::string("Always"));
  }
  return Unit{};
}

// A mutating webhook may have reverted it.
Result<Unit> check_always_pulled(Attributes& attributes, const Value& pod) {
  if (!has_new_image(attributes, pod)) return Unit{};
  auto check = [&](std::string field, std::string_view policy) -> Result<Unit> {
    if (policy == "Always") return Unit{};
    constexpr std::string_view kSupported[] = {"Always"};
    const Cause cause = field_not_supported(std::move(field), policy, kSupported);
    return refuse(attributes, pod, cause.field + ": " + cause.message);
  };
  for (const std::string_view list : kContainerLists) {
    const std::span<const Value> containers = pod.items_at("spec", list);
    for (size_t i = 0; i < containers.size(); ++i) {
      std::string field = "spec." + std::string(list) + "[" + std::to_string(i) + "].imagePullPolicy";
      Result<Unit> checked = check(std::move(field), containers[i].text_at("imagePullPolicy"));
      if (!checked) return checked;
    }
  }
  const std::span<const Value> volumes = pod.items_at("spec", "volumes");
  for (size_t i = 0; i < volumes.size(); ++i) {
    if (volumes[i].find("image") == nullptr) continue;
    Result<Unit> checked =
        check("spec.volumes[" + std::to_string(i) + "].image.pullPolicy", volumes[i].text_at("image", "pullPolicy"));
    if (!checked) return checked;
  }
  return Unit{};
}

// --- DenyServiceExternalIPs ---

bool is_service_write(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "services") && subresource.empty() && is_write(operation);
}

// IPs that the service already had are allowed.
Result<Unit> deny_external_ips(Attributes& attributes, const Value& service) {
  const std::span<const Value> before =
      attributes.old == nullptr ? std::span<const Value>{} : attributes.old->items_at("spec", "externalIPs");
  for (const Value& ip : service.items_at("spec", "externalIPs")) {
    if (ip.is_string() && has_text(before, ip.as_string())) continue;
    return refuse(attributes, service, "Use of external IPs is denied by admission control");
  }
  return Unit{};
}

// --- LimitPodHardAntiAffinityTopology ---

Result<Unit> limit_anti_affinity(Attributes& attributes, const Value& pod) {
  constexpr std::string_view kHostname = "kubernetes.io/hostname";
  const std::span<const Value> terms =
      pod.items_at("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  for (const Value& term : terms) {
    const std::string_view key = term.text_at("topologyKey");
    if (key == kHostname) continue;
    return refuse(attributes, pod,
                  "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey " + std::string(key) +
                      " but only key " + std::string(kHostname) + " is allowed");
  }
  return Unit{};
}

// --- NamespaceExists ---

bool is_namespaced_write(const types::Resource& resource, std::string_view, Operation operation) {
  return resource.namespaced && operation != Operation::Connect;
}

Result<Unit> check_namespace_exists(Attributes& attributes, const Value&) {
  if (attributes.ns.empty()) return Unit{};
  if (attributes.lookup.get(attributes.arena, "", "namespaces", "", attributes.ns)) return Unit{};
  return not_found(GroupResource{"", "namespaces"}, attributes.ns);
}

// --- NamespaceAutoProvision ---

// The namespace is created before the plugins run, because that has to wait (write/plugins.cc).
bool is_namespaced_create(const types::Resource& resource, std::string_view, Operation operation) {
  return resource.namespaced && operation == Operation::Create;
}

}  // namespace

const Plugin kAlwaysAdmit = {.name = "AlwaysAdmit", .handles = handles_nothing};
const Plugin kAlwaysDeny = {.name = "AlwaysDeny", .handles = handles_everything, .admit = deny_draft, .validate = deny};
const Plugin kAlwaysPullImages = {
    .name = "AlwaysPullImages", .handles = is_pod_write, .admit = always_pull, .validate = check_always_pulled};
const Plugin kDenyServiceExternalIPs = {
    .name = "DenyServiceExternalIPs", .handles = is_service_write, .validate = deny_external_ips};
const Plugin kLimitPodHardAntiAffinityTopology = {
    .name = "LimitPodHardAntiAffinityTopology", .handles = is_pod_write, .validate = limit_anti_affinity};
const Plugin kNamespaceExists = {
    .name = "NamespaceExists", .handles = is_namespaced_write, .validate = check_namespace_exists};
const Plugin kNamespaceAutoProvision = {.name = "NamespaceAutoProvision", .handles = is_namespaced_create};

}  // namespace holdfast::admission
