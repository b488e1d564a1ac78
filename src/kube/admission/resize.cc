// NodeDeclaredFeatureValidator and PodResizeValidator: what the node of a pod can do with a change of the pod.

#include <algorithm>

#include "admission/amounts.h"
#include "admission/plugin.h"
#include "base/strings.h"

namespace holdfast::admission {
namespace {

// A changed spec of a pod that is on a node: changes of the spec count up the generation.
bool changes_on_node(const Attributes& attributes, const Value& pod) {
  return attributes.old != nullptr && !pod.text_at("spec", "nodeName").empty() &&
         attributes.old->int_at_or(0, "metadata", "generation") != pod.int_at_or(0, "metadata", "generation");
}

std::optional<Value> node_of(const Attributes& attributes, const Value& pod) {
  return attributes.lookup.get(attributes.arena, "", "nodes", "", pod.text_at("spec", "nodeName"));
}

Error node_not_found(const Attributes& attributes, const Value& pod) {
  return refuse(attributes, pod, "node \"" + std::string(pod.text_at("spec", "nodeName")) + "\" not found");
}

// --- NodeDeclaredFeatureValidator (k8s.io/component-helpers/nodedeclaredfeatures) ---

bool is_pod_change(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && operation == Operation::Update &&
         (subresource.empty() || subresource == "resize");
}

bool same_amounts(const Value& a, const Value& b) {
  for (const std::string_view list : {"limits", "requests"}) {
    if (amounts_in(a, list) != amounts_in(b, list)) return false;
  }
  return equal(Value::list(a.items_at("claims")), Value::list(b.items_at("claims")));
}

// Of the pod, as opposed to its containers.
bool resizes_pod(const Value& pod, const Value& old) {
  const Value *now = pod.get("spec", "resources"), *before = old.get("spec", "resources");
  if (now == nullptr || before == nullptr) return now != before;
  return !same_amounts(*now, *before);
}

bool resizes_init_container(const Value& pod, const Value& old) {
  const std::span<const Value> now = pod.items_at("spec", "initContainers"),
                               before = old.items_at("spec", "initContainers");
  for (size_t i = 0; i < before.size() && i < now.size(); ++i) {
    if (before[i].text_at("restartPolicy") == "Always") continue;
    const Value *next = now[i].find("resources"), *last = before[i].find("resources");
    const bool same = next == nullptr || last == nullptr ? next == last : equal(*next, *last);
    if (!same) return true;
  }
  return false;
}

Result<Unit> require_features(Attributes& attributes, const Value& pod) {
  if (!changes_on_node(attributes, pod)) return Unit{};
  std::vector<std::string_view> required;  // Sorted.
  if (resizes_pod(pod, *attributes.old)) required.push_back("InPlacePodLevelResourcesVerticalScaling");
  if (resizes_init_container(pod, *attributes.old)) required.push_back("InPlacePodVerticalScalingInitContainers");
  if (required.empty()) return Unit{};
  const std::optional<Value> node = node_of(attributes, pod);
  if (!node) return node_not_found(attributes, pod);
  const std::span<const Value> declared = node->items_at("status", "declaredFeatures");
  std::erase_if(required, [&](std::string_view feature) { return has_text(declared, feature); });
  if (required.empty()) return Unit{};
  return refuse(attributes, pod,
                "pod update requires features " + join(required, ", ") + " which are not available on node \"" +
                    std::string(node->text_at("metadata", "name")) + "\"");
}

// --- PodResizeValidator ---

bool is_resize(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && operation == Operation::Update && subresource == "resize";
}

Error refuse_resize(const Attributes& attributes, const Value& pod, std::string_view why, std::string_view reason) {
  Error error = refuse(attributes, pod, why);
  error.causes.push_back({std::string(reason), "", ""});
  return error;
}

Result<Unit> check_node(Attributes& attributes, const Value& pod) {
  if (!changes_on_node(attributes, pod)) return Unit{};
  const std::optional<Value> node = node_of(attributes, pod);
  if (!node) return node_not_found(attributes, pod);
  const Value* os = node->get("metadata", "labels", "kubernetes.io/os");
  if (os != nullptr && os->as_string() != "linux") {
    return refuse_resize(attributes, pod,
                         "pod resize is only supported on linux nodes, node \"" +
                             std::string(node->text_at("metadata", "name")) + "\" is \"" +
                             std::string(os->as_string()) + "\"",
                         "UnsupportedPlatform");
  }
  Amounts requests = pod_amounts(pod, "requests");
  if (const Value* spec = pod.find("spec")) add(requests, amounts_in(*spec, "overhead"));
  const auto offered = [&](std::string_view name) { return quantity_of(node->get("status", "allocatable", name)); };
  const codec::Quantity cpu = offered("cpu"), memory = offered("memory");
  std::vector<std::string> lacking;
  if (requests["cpu"] > cpu) {
    lacking.push_back("cpu, requested: " + std::to_string(requests["cpu"].milli_value()) +
                      ", allocatable: " + std::to_string(cpu.milli_value()));
  }
  if (requests["memory"] > memory) {
    lacking.push_back("memory, requested: " + std::to_string(requests["memory"].value()) +
                      ", allocatable: " + std::to_string(memory.value()));
  }
  if (lacking.empty()) return Unit{};
  return refuse_resize(attributes, pod, "node didn't have enough allocatable resources: " + join(lacking, "; "),
                       "NodeCapacity");
}

}  // namespace

const Plugin kNodeDeclaredFeatureValidator = {
    .name = "NodeDeclaredFeatureValidator", .handles = is_pod_change, .validate = require_features};
const Plugin kPodResizeValidator = {.name = "PodResizeValidator", .handles = is_resize, .validate = check_node};

}  // namespace holdfast::admission
