// Priority and RuntimeClass: the classes a pod refers to.

#include <algorithm>

#include "admission/plugin.h"
#include "base/text.h"
#include "codec/quantity.h"

namespace holdfast::admission {
namespace {

// --- Priority ---

bool has_priority(const types::Resource& resource, std::string_view subresource, Operation operation) {
  const bool write = operation == Operation::Create || operation == Operation::Update;
  return write && subresource.empty() &&
         (is_core(resource, "pods") || (resource.group == "scheduling.k8s.io" && resource.plural == "priorityclasses"));
}

Result<Unit> set_priority(Attributes& attributes, Draft::Node pod) {
  if (!is_core(attributes.resource, "pods")) return Unit{};
  if (attributes.operation == Operation::Update) {
    if (attributes.old == nullptr) return Unit{};
    for (const std::string_view key : {"priority", "preemptionPolicy"}) {
      const Value* before = attributes.old->get("spec", key);
      if (before != nullptr) pod.child("spec").set_default(key, *before);
    }
    return Unit{};
  }
  std::optional<Value> chosen;
  const std::string_view name = pod.value().text_at("spec", "priorityClassName");
  if (!name.empty()) {
    chosen = attributes.lookup.get(attributes.arena, "scheduling.k8s.io", "priorityclasses", "", name);
    if (!chosen) {
      return refuse(attributes, pod.value(), "no PriorityClass with name " + std::string(name) + " was found");
    }
  } else {
    // Several defaults can only result from a race: the lowest wins.
    for (const Value& one : attributes.lookup.list(attributes.arena, "scheduling.k8s.io", "priorityclasses", "")) {
      if (!is_true(one, "globalDefault")) continue;
      if (!chosen || one.int_at_or(0, "value") < chosen->int_at_or(0, "value")) chosen = one;
    }
    if (chosen) pod.child("spec").set("priorityClassName", *chosen->get("metadata", "name"));
  }
  const int64_t priority = chosen ? chosen->int_at_or(0, "value") : 0;
  const Value* given = pod.value().get("spec", "priority");
  if (given != nullptr && given->is_int() && given->as_int() != priority) {
    return refuse(attributes, pod.value(),
                  "the integer value of priority (" + std::to_string(given->as_int()) +
                      ") must not be provided in pod spec; priority admission controller computed " +
                      std::to_string(priority) + " from the given PriorityClass name");
  }
  pod.child("spec").set("priority", Value::integer(priority));
  Value policy = Value::string("PreemptLowerPriority");
  if (chosen && chosen->find("preemptionPolicy") != nullptr) policy = *chosen->find("preemptionPolicy");
  const std::string_view wanted = pod.value().text_at("spec", "preemptionPolicy");
  if (!wanted.empty() && wanted != policy.as_string()) {
    return refuse(attributes, pod.value(),
                  "the string value of PreemptionPolicy (" + std::string(wanted) +
                      ") must not be provided in pod spec; priority admission controller computed " +
                      std::string(policy.as_string()) + " from the given PriorityClass name");
  }
  pod.child("spec").set("preemptionPolicy", policy);
  return Unit{};
}

Result<Unit> one_default_priority(Attributes& attributes, const Value& object) {
  if (is_core(attributes.resource, "pods") || !is_true(object, "globalDefault")) return Unit{};
  for (const Value& other : attributes.lookup.list(attributes.arena, "scheduling.k8s.io", "priorityclasses", "")) {
    const std::string_view name = other.text_at("metadata", "name");
    if (!is_true(other, "globalDefault") || name == object.text_at("metadata", "name")) continue;
    return refuse(attributes, object,
                  "PriorityClass " + std::string(name) + " is already marked as default. Only one default can exist");
  }
  return Unit{};
}

// --- RuntimeClass ---

bool is_pod_create(const types::Resource& resource, std::string_view subresource, Operation operation) {
  return is_core(resource, "pods") && subresource.empty() && operation == Operation::Create;
}

Result<std::optional<Value>> runtime_class(Attributes& attributes, const Value& pod) {
  const std::string_view name = pod.text_at("spec", "runtimeClassName");
  if (name.empty()) return std::optional<Value>();
  std::optional<Value> found = attributes.lookup.get(attributes.arena, "node.k8s.io", "runtimeclasses", "", name);
  if (!found) return refuse(attributes, pod, "pod rejected: RuntimeClass " + go_quote(name) + " not found");
  return found;
}

bool same_amounts(const Value& a, const Value& b) {
  if (!a.is_map() || !b.is_map() || a.count() != b.count()) return false;
  for (const Member& amount : a.members()) {
    const Value* other = b.find(amount.key);
    if (other == nullptr || !other->is_string() || !amount.value.is_string()) return false;
    const Result<codec::Quantity> x = codec::Quantity::parse(amount.value.as_string());
    const Result<codec::Quantity> y = codec::Quantity::parse(other->as_string());
    if (!x || !y || *x != *y) return false;
  }
  return true;
}

Result<Unit> merge_runtime_class(Attributes& attributes, Draft::Node pod) {
  Result<std::optional<Value>> found = runtime_class(attributes, pod.value());
  if (!found) return found.take_error();
  if (!*found) return Unit{};
  const Value& chosen = **found;
  if (chosen.find("overhead") != nullptr) {
    const Value* overhead = chosen.get("overhead", "podFixed");
    const Value* given = pod.value().get("spec", "overhead");
    if (given == nullptr) {
      if (overhead != nullptr) pod.child("spec").set("overhead", *overhead);
    } else if (overhead == nullptr || !same_amounts(*given, *overhead)) {
      return refuse(attributes, pod.value(),
                    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    }
  }
  for (const Member& label : chosen.members_at("scheduling", "nodeSelector")) {
    const Value* given = pod.value().get("spec", "nodeSelector", label.key);
    if (given != nullptr && !equal(*given, label.value)) {
      const std::string key(label.key);
      return refuse(attributes, pod.value(),
                    "conflict: runtimeClass.scheduling.nodeSelector[" + key +
                        "] = " + std::string(label.value.as_string()) + "; pod.spec.nodeSelector[" + key +
                        "] = " + std::string(given->as_string()));
    }
    pod.child("spec").child("nodeSelector").set(label.key, label.value);
  }
  for (const Value& toleration : chosen.items_at("scheduling", "tolerations")) {
    const std::span<const Value> given = pod.value().items_at("spec", "tolerations");
    if (std::none_of(given.begin(), given.end(), [&](const Value& one) { return equal(one, toleration); })) {
      pod.child("spec").append("tolerations", toleration);
    }
  }
  return Unit{};
}

Result<Unit> check_overhead(Attributes& attributes, const Value& pod) {
  Result<std::optional<Value>> found = runtime_class(attributes, pod);
  if (!found) return found.take_error();
  const bool defined = *found && (*found)->find("overhead") != nullptr;
  if (!defined && pod.get("spec", "overhead") != nullptr) {
    return refuse(attributes, pod,
                  "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  }
  return Unit{};
}

}  // namespace

const Plugin kPriority = {
    .name = "Priority", .handles = has_priority, .admit = set_priority, .validate = one_default_priority};
const Plugin kRuntimeClass = {
    .name = "RuntimeClass", .handles = is_pod_create, .admit = merge_runtime_class, .validate = check_overhead};

}  // namespace holdfast::admission
