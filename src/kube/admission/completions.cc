// Plugins that complete an object: tolerations, taints, finalizers, default classes, topology labels.

#include <algorithm>

#include "admission/plugin.h"

namespace holdfast::admission {
namespace {

bool is_pod_write(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && subresource.empty() &&
         (operation == Operation::Create || operation == Operation::Update);
}

// --- DefaultTolerationSeconds ---

Value toleration(Arena& arena, std::string_view key) {
  MapBuilder builder(arena);
  builder.add("key", Value::string(key));
  builder.add("operator", Value::string("Exists"));
  builder.add("effect", Value::string("NoExecute"));
  builder.add("tolerationSeconds", Value::integer(300));
  return builder.build();
}

Result<Unit> add_tolerations(Attributes& attributes, Draft::Node pod) {
  for (const std::string_view key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const std::span<const Value> given = pod.value().items_at("spec", "tolerations");
    const bool tolerated = std::any_of(given.begin(), given.end(), [&](const Value& one) {
      const std::string_view effect = one.text_at("effect"), own = one.text_at("key");
      return (own == key || own.empty()) && (effect == "NoExecute" || effect.empty());
    });
    if (!tolerated) pod.child("spec").append("tolerations", toleration(attributes.arena, key));
  }
  return Unit{};
}

// --- TaintNodesByCondition ---

bool is_node_create(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "nodes") && subresource.empty() && operation == Operation::Create;
}

Result<Unit> add_taint(Attributes& attributes, Draft::Node node) {
  constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
  for (const Value& taint : node.value().items_at("spec", "taints")) {
    if (taint.text_at("key") == kNotReady && taint.text_at("effect") == "NoSchedule") return Unit{};
  }
  MapBuilder taint(attributes.arena);
  taint.add("key", Value::string(kNotReady));
  taint.add("effect", Value::string("NoSchedule"));
  node.child("spec").append("taints", taint.build());
  return Unit{};
}

// --- StorageObjectInUseProtection ---

std::string_view protection_of(const types::Resource& resource) {
  if (is_core(resource, "persistentvolumeclaims")) return "kubernetes.io/pvc-protection";
  if (is_core(resource, "persistentvolumes")) return "kubernetes.io/pv-protection";
  if (resource.group == "storage.k8s.io" && resource.plural == "volumeattributesclasses") {
    return "kubernetes.io/vac-protection";
  }
  return {};
}

bool is_protected_create(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return operation == Operation::Create && subresource.empty() && !protection_of(resource).empty();
}

Result<Unit> add_protection(Attributes& attributes, Draft::Node object) {
  const std::string_view finalizer = protection_of(attributes.resource);
  if (!has_text(object.value().items_at("metadata", "finalizers"), finalizer)) {
    object.child("metadata").append("finalizers", Value::string(finalizer));
  }
  return Unit{};
}

// --- Default classes: the newest one marked as default, ties broken by name ---

std::optional<Value> default_class(std::span<const Value> classes, std::initializer_list<std::string_view> marks) {
  std::optional<Value> chosen;
  for (const Value& one : classes) {
    const bool marked = std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) {
      return one.text_at("metadata", "annotations", mark) == "true";
    });
    if (!marked) continue;
    if (chosen) {
      const std::string_view made = one.text_at("metadata", "creationTimestamp");
      const std::string_view best = chosen->text_at("metadata", "creationTimestamp");
      // RFC 3339 in UTC sorts as text.
      const bool better =
          made > best || (made == best && one.text_at("metadata", "name") < chosen->text_at("metadata", "name"));
      if (!better) continue;
    }
    chosen = one;
  }
  return chosen;
}

bool is_claim_create(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "persistentvolumeclaims") && subresource.empty() && operation == Operation::Create;
}

Result<Unit> choose_storage_class(Attributes& attributes, Draft::Node claim) {
  if (claim.value().get("spec", "storageClassName") != nullptr ||
      claim.value().get("metadata", "annotations", "volume.beta.kubernetes.io/storage-class") != nullptr) {
    return Unit{};
  }
  const std::vector<Value> classes = attributes.lookup.list(attributes.arena, "storage.k8s.io", "storageclasses", "");
  const std::optional<Value> chosen = default_class(
      classes, {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"});
  if (chosen) claim.child("spec").set("storageClassName", *chosen->get("metadata", "name"));
  return Unit{};
}

bool is_ingress_create(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return resource.group == "networking.k8s.io" && resource.plural == "ingresses" && subresource.empty() &&
         operation == Operation::Create;
}

Result<Unit> choose_ingress_class(Attributes& attributes, Draft::Node ingress) {
  if (ingress.value().get("spec", "ingressClassName") != nullptr ||
      ingress.value().get("metadata", "annotations", "kubernetes.io/ingress.class") != nullptr) {
    return Unit{};
  }
  const std::vector<Value> classes =
      attributes.lookup.list(attributes.arena, "networking.k8s.io", "ingressclasses", "");
  const std::optional<Value> chosen = default_class(classes, {"ingressclass.kubernetes.io/is-default-class"});
  if (chosen) ingress.child("spec").set("ingressClassName", *chosen->get("metadata", "name"));
  return Unit{};
}

// --- PodTopologyLabels ---

bool is_placement(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return operation == Operation::Create &&
         ((is_core(resource, "pods") && (subresource.empty() || subresource == "binding")) ||
          is_core(resource, "bindings"));
}

Result<Unit> copy_topology(Attributes& attributes, Draft::Node object) {
  const bool binding = attributes.subresource == "binding" || is_core(attributes.resource, "bindings");
  const std::string_view node_name =
      binding ? object.value().text_at("target", "name") : object.value().text_at("spec", "nodeName");
  if (node_name.empty()) return Unit{};
  const std::optional<Value> node = attributes.lookup.get(attributes.arena, "", "nodes", "", node_name);
  if (!node) return Unit{};
  for (const std::string_view key : {"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}) {
    const Value* label = node->get("metadata", "labels", key);
    if (label != nullptr) object.child("metadata").child("labels").set(key, *label);
  }
  return Unit{};
}

}  // namespace

const Plugin kDefaultTolerationSeconds = {
    .name = "DefaultTolerationSeconds", .handles = is_pod_write, .admit = add_tolerations};
const Plugin kTaintNodesByCondition = {.name = "TaintNodesByCondition", .handles = is_node_create, .admit = add_taint};
const Plugin kStorageObjectInUseProtection = {
    .name = "StorageObjectInUseProtection", .handles = is_protected_create, .admit = add_protection};
const Plugin kDefaultStorageClass = {
    .name = "DefaultStorageClass", .handles = is_claim_create, .admit = choose_storage_class};
const Plugin kDefaultIngressClass = {
    .name = "DefaultIngressClass", .handles = is_ingress_create, .admit = choose_ingress_class};
const Plugin kPodTopologyLabels = {.name = "PodTopologyLabels", .handles = is_placement, .admit = copy_topology};

}  // namespace holdfast::admission
