#include "kinds/stored_versions.h"

#include <algorithm>
#include <cstdint>

#include "base/api_version.h"
#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kRollbackTo = "deprecated.deployment.rollback.to";
constexpr std::string_view kRbacGroup = "rbac.authorization.k8s.io";

// Renames a member whose new name the struct does not have yet.
void rename(Draft::Node object, std::string_view from, std::string_view to) {
  const Value* found = object.find(from);
  if (found == nullptr) return;
  const Value moved = *found;
  object.remove(from);
  object.set(to, moved);
}

void annotate(Arena& arena, Draft::Node object, std::string_view key, int64_t number) {
  object.child("metadata").child("annotations").set(key, Value::string(arena, std::to_string(number)));
}

// --- apps/v1beta1, extensions/v1beta1 ---

// A selector was optional: it defaulted to the labels of the template.
void take_labels_of_template(Arena& arena, Draft::Node object) {
  const Value labels = sub(object.value(), "spec", "template", "metadata", "labels");
  if (is_empty(&labels)) return;
  Draft::Node spec = object.child("spec");
  if (!is_set(spec.value(), "selector")) {
    MapBuilder selector(arena);
    selector.add("matchLabels", labels);
    spec.set("selector", selector.build());
  }
  object.child("metadata").set_if_zero("labels", labels);
}

void upgrade_rollback(Arena& arena, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (is_set(spec.value(), "rollbackTo")) {
    annotate(arena, object, kRollbackTo, spec.value().int_at_or(0, "rollbackTo", "revision"));
  }
  object.child("spec").remove("rollbackTo");
}

void upgrade_apps_deployment(Arena& arena, Draft::Node object) {
  take_labels_of_template(arena, object);
  object.child("spec").set_default("revisionHistoryLimit", Value::integer(2));
  upgrade_rollback(arena, object);
}

void upgrade_stateful_set(Arena& arena, Draft::Node object) {
  take_labels_of_template(arena, object);
  object.child("spec").child("updateStrategy").set_if_zero("type", Value::string("OnDelete"));
}

void upgrade_deployment(Arena& arena, Draft::Node object) {
  take_labels_of_template(arena, object);
  Draft::Node spec = object.child("spec");
  for (const std::string_view key : {"revisionHistoryLimit", "progressDeadlineSeconds"}) {
    spec.set_default(key, Value::integer(INT32_MAX));
  }
  Draft::Node strategy = spec.child("strategy");
  strategy.set_if_zero("type", Value::string("RollingUpdate"));
  if (strategy.value().text_at("type") == "RollingUpdate" || is_set(strategy.value(), "rollingUpdate")) {
    Draft::Node rolling = strategy.child("rollingUpdate");
    for (const std::string_view key : {"maxUnavailable", "maxSurge"}) rolling.set_default(key, Value::integer(1));
  }
  upgrade_rollback(arena, object);
}

void upgrade_replica_set(Arena& arena, Draft::Node object) { take_labels_of_template(arena, object); }

void upgrade_daemon_set(Arena& arena, Draft::Node object) {
  take_labels_of_template(arena, object);
  annotate(arena, object, kTemplateGeneration, object.value().int_at_or(0, "spec", "templateGeneration"));
  Draft::Node spec = object.child("spec");
  spec.remove("templateGeneration");
  spec.child("updateStrategy").set_if_zero("type", Value::string("OnDelete"));
}

// --- networking.k8s.io/v1beta1, discovery.k8s.io/v1beta1, node.k8s.io/v1alpha1 ---

void upgrade_backend(Arena& arena, Draft::Node backend) {
  const std::string_view name = backend.value().text_at("serviceName");
  const Value port = sub(backend.value(), "servicePort");
  backend.remove("serviceName");
  backend.remove("servicePort");
  const bool numbered = port.is_int() && port.as_int() != 0;
  if (name.empty() && !numbered && !port.is_string()) return;
  MapBuilder service(arena), of_service(arena);
  service.add("name", Value::string(name));
  if (numbered) of_service.add("number", port);
  if (port.is_string() && port.count() > 0) of_service.add("name", port);
  service.add("port", of_service.build());
  backend.set("service", service.build());
}

void upgrade_ingress(Arena& arena, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (Draft::Node backend = spec.existing("backend")) upgrade_backend(arena, backend);
  rename(spec, "backend", "defaultBackend");
  for (Draft::Node rule : spec.list("rules")) {
    Draft::Node http = rule.existing("http");
    if (!http) continue;
    for (Draft::Node path : http.list("paths")) {
      path.set_default("pathType", Value::string("ImplementationSpecific"));
      upgrade_backend(arena, path.child("backend"));
    }
  }
}

// Topology had the zone, which became a field, and the node's name, which is one as well.
void upgrade_endpoint_slice(Arena& arena, Draft::Node object) {
  for (Draft::Node endpoint : object.list("endpoints")) {
    const Value topology = sub(endpoint.value(), "topology");
    endpoint.remove("topology");
    MapBuilder kept(arena);
    for (const Member& label : topology.members()) {
      if (label.key == "topology.kubernetes.io/zone") {
        endpoint.set("zone", label.value);
      } else if (label.key != "kubernetes.io/hostname" ||
                 label.value.as_string() != endpoint.value().text_at("nodeName")) {
        kept.add(label.key, label.value);
      }
    }
    if (kept.count() > 0) endpoint.set("deprecatedTopology", kept.build());
  }
}

void upgrade_runtime_class(Arena&, Draft::Node object) {
  const Value spec = sub(object.value(), "spec");
  object.remove("spec");
  object.set("handler", Value::string(spec.text_at("runtimeHandler")));
  for (const std::string_view key : {"overhead", "scheduling"}) {
    if (is_set(spec, key)) object.set(key, sub(spec, key));
  }
}

// --- rbac.authorization.k8s.io/v1alpha1 ---

void upgrade_binding(Arena&, Draft::Node object) {
  object.child("roleRef").set_if_zero("apiGroup", Value::string(kRbacGroup));
  for (Draft::Node subject : object.list("subjects")) {
    const std::string_view kind = subject.value().text_at("kind"), version = subject.value().text_at("apiVersion");
    const bool known = kind == "User" || kind == "Group";
    subject.remove("apiVersion");
    if (known) {
      subject.set("apiGroup", Value::string(kRbacGroup));
    } else if (kind != "ServiceAccount") {
      subject.set("apiGroup", Value::string(split_api_version(version).group));
    }
    // Only in this version, a user named * was every authenticated user.
    if (kind == "User" && subject.value().text_at("name") == "*") {
      subject.set("kind", Value::string("Group"));
      subject.set("name", Value::string("system:authenticated"));
    }
  }
}

// --- policy/v1beta1 ---

// An empty selector selected nothing; today it selects everything. Which of them a budget means is told by
// requirements on this label.
constexpr std::string_view kSelects = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

Value label_requirement(Arena& arena, std::string_view operation) {
  MapBuilder requirement(arena), selector(arena);
  requirement.add("key", Value::string(kSelects));
  requirement.add("operator", Value::string(operation));
  ListBuilder all(arena);
  all.add(requirement.build());
  selector.add("matchExpressions", all.build());
  return selector.build();
}

void upgrade_budget(Arena& arena, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  const Value selector = sub(spec.value(), "selector");
  if (selector.is_null()) return;
  const std::span<const Value> requirements = selector.items_at("matchExpressions");
  const bool labels = !is_empty(selector, "matchLabels");
  if (!labels && requirements.empty()) {
    spec.set("selector", label_requirement(arena, "Exists"));
    return;
  }
  const auto is_mark = [](const Value& one) { return one.text_at("key") == kSelects; };
  if (!labels && requirements.size() == 1 && is_mark(requirements[0]) && requirements[0].items_at("values").empty() &&
      requirements[0].text_at("operator") == "DoesNotExist") {
    spec.set("selector", Value::empty_map());
    return;
  }
  if (std::none_of(requirements.begin(), requirements.end(), is_mark)) return;
  ListBuilder others(arena);
  for (const Value& one : requirements) {
    if (!is_mark(one)) others.add(one);
  }
  spec.child("selector").set("matchExpressions", others.build());
  remove_if_empty(spec.child("selector"), "matchExpressions");
}

// --- flowcontrol.apiserver.k8s.io/v1beta1 to v1beta3 ---

// 0 was the default; today it means none. v1beta3 has an annotation for that.
constexpr std::string_view kKeepsZero = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

void upgrade_priority_level(Arena&, Draft::Node object) {
  const bool keeps = object.value().get("metadata", "annotations", kKeepsZero) != nullptr;
  if (keeps) {
    Draft::Node metadata = object.child("metadata");
    metadata.child("annotations").remove(kKeepsZero);
    remove_if_empty(metadata, "annotations");
  }
  Draft::Node limited = object.child("spec").existing("limited");
  if (limited && !keeps) limited.set_if_zero("nominalConcurrencyShares", Value::integer(30));
  if (limited) limited.set_default("nominalConcurrencyShares", Value::integer(0));
}

// The field has had another name in JSON.
void upgrade_assured_level(Arena& arena, Draft::Node object) {
  if (Draft::Node limited = object.child("spec").existing("limited")) {
    rename(limited, "assuredConcurrencyShares", "nominalConcurrencyShares");
  }
  upgrade_priority_level(arena, object);
}

// --- certificates.k8s.io/v1beta1, admissionregistration.k8s.io/v1beta1 ---

void upgrade_signing_request(Arena&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  static const Value kUsages[] = {Value::string("digital signature"), Value::string("key encipherment")};
  spec.set_default("usages", Value::list(kUsages));
  spec.set_default("signerName", Value::string("kubernetes.io/legacy-unknown"));
  for (Draft::Node condition : object.child("status").list("conditions")) {
    condition.set_if_zero("status", Value::string("True"));
  }
}

void upgrade_webhooks(Arena&, Draft::Node object) {
  for (Draft::Node hook : object.list("webhooks")) {
    hook.set_default("failurePolicy", Value::string("Ignore"));
    hook.set_default("matchPolicy", Value::string("Exact"));
    hook.set_default("sideEffects", Value::string("Unknown"));
    hook.set_default("timeoutSeconds", Value::integer(30));
    static const Value kVersions[] = {Value::string("v1beta1")};
    hook.set_default("admissionReviewVersions", Value::list(kVersions));
  }
}

// --- resource.k8s.io/v1beta1 ---

void default_device_request(Draft::Node request) {
  request.set_if_zero("allocationMode", Value::string("ExactCount"));
  if (request.value().text_at("allocationMode") == "ExactCount") request.set_if_zero("count", Value::integer(1));
}

void upgrade_device_requests(Arena& arena, Draft::Node spec) {
  for (Draft::Node request : spec.child("devices").list("requests")) {
    MapBuilder exactly(arena);
    for (const std::string_view key :
         {"deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity"}) {
      const Value* value = request.find(key);
      if (value == nullptr) continue;
      const bool zero =
          value->is_null() || (value->is_int() && value->as_int() == 0) || (!value->is_map() && is_empty(value));
      if (!zero) exactly.add(key, *value);
      request.remove(key);
    }
    const bool exact = exactly.count() > 0;
    if (exact) {
      request.set("exactly", exactly.build());
      if (request.value().get("exactly", "deviceClassName") != nullptr) {
        default_device_request(request.child("exactly"));
      }
    }
    for (Draft::Node alternative : request.list("firstAvailable")) default_device_request(alternative);
  }
}

void upgrade_claim(Arena& arena, Draft::Node object) { upgrade_device_requests(arena, object.child("spec")); }
void upgrade_claim_template(Arena& arena, Draft::Node object) {
  upgrade_device_requests(arena, object.child("spec").child("spec"));
}

void upgrade_resource_slice(Arena& arena, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (spec.value().text_at("nodeName").empty()) spec.remove("nodeName");
  if (!is_true(spec.value(), "allNodes")) spec.remove("allNodes");
  for (Draft::Node device : spec.list("devices")) {
    MapBuilder plain(arena);
    plain.add("name", sub(device.value(), "name"));
    for (const Member& property : sub(device.value(), "basic").members()) plain.add(property.key, property.value);
    device.assign(plain.build());
  }
}

// --- The table ---

// `type` is that of the version where it has other fields or numbers than today's.
constexpr StoredVersion kVersions[] = {
    {"admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"},
    {"admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"},
    {"admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1"},
    {"admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"},
    {"admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"},
    {"admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"},
    {"admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "",
     upgrade_webhooks},
    {"admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "",
     upgrade_webhooks},
    {"apps/v1beta1", "ControllerRevision", "apps/v1"},
    {"apps/v1beta1", "Deployment", "apps/v1", "apps/v1beta1.Deployment", upgrade_apps_deployment},
    {"apps/v1beta1", "StatefulSet", "apps/v1", "", upgrade_stateful_set},
    {"apps/v1beta2", "ControllerRevision", "apps/v1"},
    {"apps/v1beta2", "DaemonSet", "apps/v1"},
    {"apps/v1beta2", "Deployment", "apps/v1"},
    {"apps/v1beta2", "ReplicaSet", "apps/v1"},
    {"apps/v1beta2", "StatefulSet", "apps/v1"},
    {"batch/v1beta1", "CronJob", "batch/v1"},
    {"certificates.k8s.io/v1beta1", "CertificateSigningRequest", "certificates.k8s.io/v1", "", upgrade_signing_request},
    {"coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1"},
    {"discovery.k8s.io/v1beta1", "EndpointSlice", "discovery.k8s.io/v1", "discovery/v1beta1.EndpointSlice",
     upgrade_endpoint_slice},
    {"events.k8s.io/v1beta1", "Event", "events.k8s.io/v1"},
    {"extensions/v1beta1", "DaemonSet", "apps/v1", "extensions/v1beta1.DaemonSet", upgrade_daemon_set},
    {"extensions/v1beta1", "Deployment", "apps/v1", "apps/v1beta1.Deployment", upgrade_deployment},
    {"extensions/v1beta1", "Ingress", "networking.k8s.io/v1", "networking/v1beta1.Ingress", upgrade_ingress},
    {"extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1"},
    {"extensions/v1beta1", "ReplicaSet", "apps/v1", "", upgrade_replica_set},
    {"flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", "flowcontrol.apiserver.k8s.io/v1"},
    {"flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1",
     "flowcontrol/v1beta1.PriorityLevelConfiguration", upgrade_assured_level},
    {"flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema", "flowcontrol.apiserver.k8s.io/v1"},
    {"flowcontrol.apiserver.k8s.io/v1beta2", "PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1",
     "flowcontrol/v1beta1.PriorityLevelConfiguration", upgrade_assured_level},
    {"flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "flowcontrol.apiserver.k8s.io/v1"},
    {"flowcontrol.apiserver.k8s.io/v1beta3", "PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1", "",
     upgrade_priority_level},
    {"networking.k8s.io/v1beta1", "IPAddress", "networking.k8s.io/v1"},
    {"networking.k8s.io/v1beta1", "Ingress", "networking.k8s.io/v1", "networking/v1beta1.Ingress", upgrade_ingress},
    {"networking.k8s.io/v1beta1", "IngressClass", "networking.k8s.io/v1"},
    {"networking.k8s.io/v1beta1", "ServiceCIDR", "networking.k8s.io/v1"},
    {"node.k8s.io/v1alpha1", "RuntimeClass", "node.k8s.io/v1", "node/v1alpha1.RuntimeClass", upgrade_runtime_class},
    {"node.k8s.io/v1beta1", "RuntimeClass", "node.k8s.io/v1"},
    {"policy/v1beta1", "PodDisruptionBudget", "policy/v1", "", upgrade_budget},
    {"rbac.authorization.k8s.io/v1alpha1", "ClusterRole", "rbac.authorization.k8s.io/v1", "rbac/v1alpha1.ClusterRole"},
    {"rbac.authorization.k8s.io/v1alpha1", "ClusterRoleBinding", "rbac.authorization.k8s.io/v1",
     "rbac/v1alpha1.ClusterRoleBinding", upgrade_binding},
    {"rbac.authorization.k8s.io/v1alpha1", "Role", "rbac.authorization.k8s.io/v1", "rbac/v1alpha1.Role"},
    {"rbac.authorization.k8s.io/v1alpha1", "RoleBinding", "rbac.authorization.k8s.io/v1", "rbac/v1alpha1.RoleBinding",
     upgrade_binding},
    {"rbac.authorization.k8s.io/v1beta1", "ClusterRole", "rbac.authorization.k8s.io/v1"},
    {"rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", "rbac.authorization.k8s.io/v1"},
    {"rbac.authorization.k8s.io/v1beta1", "Role", "rbac.authorization.k8s.io/v1"},
    {"rbac.authorization.k8s.io/v1beta1", "RoleBinding", "rbac.authorization.k8s.io/v1"},
    {"resource.k8s.io/v1beta1", "DeviceClass", "resource.k8s.io/v1"},
    {"resource.k8s.io/v1beta1", "ResourceClaim", "resource.k8s.io/v1", "resource/v1beta1.ResourceClaim", upgrade_claim},
    {"resource.k8s.io/v1beta1", "ResourceClaimTemplate", "resource.k8s.io/v1", "resource/v1beta1.ResourceClaimTemplate",
     upgrade_claim_template},
    {"resource.k8s.io/v1beta1", "ResourceSlice", "resource.k8s.io/v1", "resource/v1beta1.ResourceSlice",
     upgrade_resource_slice},
    {"resource.k8s.io/v1beta2", "DeviceClass", "resource.k8s.io/v1"},
    {"resource.k8s.io/v1beta2", "ResourceClaim", "resource.k8s.io/v1"},
    {"resource.k8s.io/v1beta2", "ResourceClaimTemplate", "resource.k8s.io/v1"},
    {"resource.k8s.io/v1beta2", "ResourceSlice", "resource.k8s.io/v1"},
    {"scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"},
    {"storage.k8s.io/v1alpha1", "CSIStorageCapacity", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1alpha1", "VolumeAttachment", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1alpha1", "VolumeAttributesClass", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1beta1", "CSIDriver", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1beta1", "CSINode", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1beta1", "CSIStorageCapacity", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1beta1", "StorageClass", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1beta1", "VolumeAttachment", "storage.k8s.io/v1"},
    {"storage.k8s.io/v1beta1", "VolumeAttributesClass", "storage.k8s.io/v1"},
};

}  // namespace

std::span<const StoredVersion> stored_versions() { return kVersions; }

const StoredVersion* find_stored_version(std::string_view api_version, std::string_view kind) {
  const auto found = std::find_if(std::begin(kVersions), std::end(kVersions), [&](const StoredVersion& one) {
    return one.api_version == api_version && one.kind == kind;
  });
  return found == std::end(kVersions) ? nullptr : found;
}

const types::Resource& served_version(const StoredVersion& version) {
  const GroupVersion now = split_api_version(version.served_as);
  return *types::find_kind(now.group, now.version, version.kind);
}

const types::Type& type_of(const StoredVersion& version) {
  return version.type.empty() ? *served_version(version).type : *types::find_type(version.type);
}

Value upgraded(Arena& arena, const StoredVersion& version, const Value& object) {
  Draft draft(arena, object);
  draft.root().set("apiVersion", Value::string(version.served_as));
  if (version.upgrade != nullptr) version.upgrade(arena, draft.root());
  return draft.value();
}

// Like normalizeClusterIPs and defaultOnRead of registry/core/service/storage.
void complete_stored_service(Arena& arena, Draft::Node service, std::string_view default_family) {
  Draft::Node spec = service.child("spec");
  const auto list = [&](std::initializer_list<Value> items) {
    return Value::list(arena.copy(std::span<const Value>(items.begin(), items.size())));
  };
  const std::string_view ip = spec.value().text_at("clusterIP");
  if (!ip.empty() && is_empty(spec.value(), "clusterIPs")) spec.set("clusterIPs", list({Value::string(ip)}));
  if (spec.value().text_at("type") == "ExternalName") {
    spec.remove("internalTrafficPolicy");
    return;
  }
  if (!is_empty(spec.value(), "ipFamilies")) return;
  const auto set = [&](const Value& families, std::string_view policy) {
    spec.set("ipFamilies", families);
    spec.set("ipFamilyPolicy", Value::string(policy));
  };
  if (ip == "None") {
    const bool selected = !is_empty(spec.value(), "selector");
    const std::string_view other = default_family == "IPv4" ? "IPv6" : "IPv4";
    if (selected) {
      set(list({Value::string(default_family)}), "SingleStack");
    } else {
      set(list({Value::string(default_family), Value::string(other)}), "RequireDualStack");
    }
    return;
  }
  const std::span<const Value> ips = spec.value().items_at("clusterIPs");
  if (ips.empty()) return;
  ListBuilder families(arena);
  for (const Value& one : ips) {
    families.add(Value::string(one.as_string().find(':') == std::string_view::npos ? "IPv4" : "IPv6"));
  }
  set(families.build(), ips.size() == 1 ? "SingleStack" : "RequireDualStack");
}

}  // namespace holdfast::kinds
