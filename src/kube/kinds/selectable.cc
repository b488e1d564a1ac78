#include "kinds/selectable.h"

namespace holdfast::kinds {
namespace {

using Alias = std::pair<std::string_view, std::string_view>;
constexpr std::string_view kRefusal = "field label not supported: %s";

constexpr std::string_view kPod[] = {
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase",  "status.podIP",       "status.podIPs",      "status.nominatedNodeName"};
constexpr Alias kPodAliases[] = {{"spec.host", "spec.nodeName"}};
constexpr uint16_t kFirst[] = {0};
constexpr std::string_view kNode[] = {"spec.unschedulable"};
constexpr std::string_view kReplicationController[] = {"status.replicas"};
constexpr std::string_view kNamespace[] = {"status.phase"};
constexpr std::string_view kSecret[] = {"type"};
constexpr std::string_view kService[] = {"spec.clusterIP", "spec.type"};
constexpr std::string_view kJob[] = {"status.successful"};
constexpr std::string_view kCsr[] = {"spec.signerName"};
constexpr std::string_view kResourceSlice[] = {"spec.nodeName", "spec.driver"};
constexpr std::string_view kEvent[] = {"involvedObject.kind",
                                       "involvedObject.namespace",
                                       "involvedObject.name",
                                       "involvedObject.uid",
                                       "involvedObject.apiVersion",
                                       "involvedObject.resourceVersion",
                                       "involvedObject.fieldPath",
                                       "reason",
                                       "reportingComponent",
                                       "source",
                                       "type"};
constexpr Alias kNewEventAliases[] = {{"regarding.kind", "involvedObject.kind"},
                                      {"regarding.namespace", "involvedObject.namespace"},
                                      {"regarding.name", "involvedObject.name"},
                                      {"regarding.uid", "involvedObject.uid"},
                                      {"regarding.apiVersion", "involvedObject.apiVersion"},
                                      {"regarding.resourceVersion", "involvedObject.resourceVersion"},
                                      {"regarding.fieldPath", "involvedObject.fieldPath"},
                                      {"reason", "reason"},
                                      {"reportingController", "reportingComponent"},
                                      {"type", "type"}};

// What Go prints for the field: an absent bool is "false", an absent number "0".
std::string_view shown(Arena& arena, const Value* value, std::string_view when_absent) {
  if (value == nullptr || value->is_null()) return when_absent;
  if (value->is_string()) return value->as_string();
  if (value->is_bool()) return value->as_bool() ? "true" : "false";
  if (value->is_int()) return arena.copy(std::to_string(value->as_int()));
  return when_absent;
}

const Value* at_path(const Value& object, std::string_view path) {
  const Value* value = &object;
  while (value != nullptr && !path.empty()) {
    const size_t dot = path.find('.');
    value = value->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return value;
}

std::string_view value_of(Arena& arena, std::string_view kind, std::string_view name, const Value& object) {
  if (kind == "Pod") {
    if (name == "spec.hostNetwork") return shown(arena, object.get("spec", "hostNetwork"), "false");
    if (name == "status.podIP") {
      const std::span<const Value> ips = object.items_at("status", "podIPs");
      return ips.empty() ? std::string_view{} : ips[0].text_at("ip");
    }
    if (name == "status.podIPs") return {};  // Accepted but never set: upstream has no value for it.
  }
  if (kind == "Node") return shown(arena, at_path(object, name), "false");
  if (kind == "ReplicationController") return shown(arena, at_path(object, name), "0");
  if (kind == "Job") return shown(arena, object.get("status", "succeeded"), "0");
  if (kind == "Event" && name == "source") {
    const std::string_view component = object.text_at("source", "component");
    return component.empty() ? object.text_at("reportingComponent") : component;
  }
  return shown(arena, at_path(object, name), {});
}

}  // namespace

SelectableFields selectable_fields(const types::Resource& resource) {
  SelectableFields fields;
  fields.namespaced = resource.namespaced;
  const auto own = [&](std::span<const std::string_view> names, std::string_view refusal = kRefusal) {
    fields.names = names;
    fields.refusal = refusal;
  };
  const std::string_view kind = resource.kind;
  if (kind == "Event" && resource.group == "events.k8s.io") {
    own(kEvent);
    fields.aliases = kNewEventAliases;
    fields.only_aliases = true;
  } else if (resource.group.empty()) {
    if (kind == "Pod") {
      own(kPod);
      fields.aliases = kPodAliases;
    } else if (kind == "Node") {
      own(kNode);
    } else if (kind == "ReplicationController") {
      own(kReplicationController);
    } else if (kind == "Namespace") {
      own(kNamespace);
    } else if (kind == "Secret") {
      own(kSecret);
    } else if (kind == "Service") {
      own(kService);
    } else if (kind == "Event") {
      own(kEvent);
    }
  } else if (resource.group == "batch" && kind == "Job") {
    own(kJob, "field label \"%s\" not supported for Job");
  } else if (resource.group == "certificates.k8s.io" && kind == "CertificateSigningRequest") {
    own(kCsr);
  } else if (resource.group == "resource.k8s.io" && kind == "ResourceSlice") {
    own(kResourceSlice, "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: %s");
  }
  return fields;
}

std::span<const uint16_t> indexed_fields(const types::Resource& resource) {
  const bool indexed = (resource.group.empty() && resource.kind == "Pod") ||
                       (resource.group == "resource.k8s.io" && resource.kind == "ResourceSlice");
  return indexed ? std::span<const uint16_t>(kFirst) : std::span<const uint16_t>{};
}

std::vector<std::string_view> selectable_values(Arena& arena, const types::Resource& stored, const Value& object) {
  std::vector<std::string_view> values;
  for (const std::string_view name : selectable_fields(stored).names) {
    values.push_back(value_of(arena, stored.kind, name, object));
  }
  return values;
}

}  // namespace holdfast::kinds
