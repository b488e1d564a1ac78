// PodDisruptionBudget, PriorityClass, RuntimeClass and Lease.

#include <unordered_set>

#include "base/hash.h"
#include "codec/json.h"
#include "kinds/all.h"
#include "kinds/pod.h"
#include "kinds/workload.h"

namespace holdfast::kinds {
namespace {

// --- PodDisruptionBudget ---

void validate_budget(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const Value &available = sub(spec, "minAvailable"), &unavailable = sub(spec, "maxUnavailable");
  if (!available.is_null() && !unavailable.is_null()) {
    const Value& policy = sub(spec, "unhealthyPodEvictionPolicy");
    errors.invalid(at,
                   Shown::verbatim("{\"MinAvailable\":" + codec::encode_json(available) +
                                   ",\"Selector\":" + shown_selector(spec.find("selector")).text() +
                                   ",\"MaxUnavailable\":" + codec::encode_json(unavailable) +
                                   ",\"UnhealthyPodEvictionPolicy\":" + codec::encode_json(policy) + "}"),
                   "minAvailable and maxUnavailable cannot be both set");
  }
  for (const std::string_view key : {"minAvailable", "maxUnavailable"}) {
    if (!is_set(spec, key)) continue;
    validate_int_or_percent(sub(spec, key), at.child(key), errors);
    validate_at_most_100_percent(sub(spec, key), at.child(key), errors);
  }
  validate_label_selector(spec.find("selector"), at.child("selector"), errors);
  if (is_set(spec, "unhealthyPodEvictionPolicy")) {
    validate_enum(spec, "unhealthyPodEvictionPolicy", {"AlwaysAllow", "IfHealthyBudget"}, at, errors);
  }
}

void validate_budget_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  const Path at("status");
  validate_conditions(next.items_at("status", "conditions"), at.child("conditions"), errors);
  validate_counters(sub(next, "status"), {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}, at,
                    errors);
}

// --- PriorityClass ---

void default_priority_class(Arena&, const types::Resource&, Draft::Node object) {
  object.set_default("preemptionPolicy", Value::string("PreemptLowerPriority"));
}

std::string system_class_error(const Value& object) {
  const std::string_view name = object.text_at("metadata", "name");
  const int64_t value = object.int_at_or(0, "value");
  for (const auto& [known, expected] : {std::pair<std::string_view, int64_t>{"system-node-critical", 2000001000},
                                        {"system-cluster-critical", 2000000000}}) {
    if (name != known) continue;
    if (value != expected) {
      return "value of " + std::string(name) + " PriorityClass must be " + std::to_string(expected);
    }
    if (is_true(object, "globalDefault")) {
      return "globalDefault of " + std::string(name) + " PriorityClass must be false";
    }
    return {};
  }
  return std::string(name) + " is not a known system priority class";
}

void validate_priority_class(Context&, const Value& object, FieldErrors& errors) {
  if (object.text_at("metadata", "name").starts_with("system-")) {
    const std::string wrong = system_class_error(object);
    if (!wrong.empty()) {
      errors.forbidden(Path("metadata.name"),
                       "priority class names with 'system-' prefix are reserved for system use only. error: " + wrong);
    }
  } else if (object.int_at_or(0, "value") > 1000000000) {
    errors.forbidden(Path("value"), "maximum allowed value of a user defined priority is 1000000000");
  }
  const std::string_view policy = object.text_at("preemptionPolicy");
  if (is_set(object, "preemptionPolicy") && policy.empty()) {
    errors.required(Path("preemptionPolicy"));
  } else if (is_set(object, "preemptionPolicy") && policy != "PreemptLowerPriority" && policy != "Never") {
    errors.not_supported(Path("preemptionPolicy"), policy, {"PreemptLowerPriority", "Never"});
  }
}

void validate_priority_class_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  if (next.int_at_or(0, "value") != old.int_at_or(0, "value")) {
    errors.forbidden(Path("value"), "may not be changed in an update.");
  }
  if (next.text_at("preemptionPolicy") != old.text_at("preemptionPolicy")) {
    errors.invalid(Path("preemptionPolicy"), next.find("preemptionPolicy"), kImmutable);
  }
}

// --- RuntimeClass ---

void validate_runtime_class(Context& context, const Value& object, FieldErrors& errors) {
  const std::string_view handler = object.text_at("handler");
  errors.require_valid(Path("handler"), handler, dns_label_errors);
  if (is_set(object, "overhead")) {
    MapBuilder limits(context.arena);
    limits.add("limits", sub(object, "overhead", "podFixed"));
    validate_resource_requirements(limits.build(), false, {}, Path("overhead"), errors);
  }
  if (!is_set(object, "scheduling")) return;
  const Path at("scheduling");
  validate_labels(object.get("scheduling", "nodeSelector"), at.child("nodeSelector"), errors);
  const std::span<const Value> tolerations = object.items_at("scheduling", "tolerations");
  validate_tolerations(tolerations, at.child("tolerations"), errors);
  std::unordered_set<std::string, KeyHash> known;
  for (size_t i = 0; i < tolerations.size(); ++i) {
    std::string key;
    for (const std::string_view part : {"key", "operator", "value", "effect"}) {
      key.append(tolerations[i].text_at(part)).append(1, '\n');
    }
    if (known.insert(std::move(key)).second) continue;
    errors.duplicate(at.item("tolerations", i), shown_internal(type_named("core/v1.Toleration"), &tolerations[i]));
  }
}

void validate_runtime_class_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_runtime_class(context, next, errors);
  const std::string_view handler = next.text_at("handler");
  if (handler != old.text_at("handler")) errors.invalid(Path("handler"), handler, kImmutable);
}

// --- Lease ---

// The gate for coordinated leader election is off.
void create_lease(Context&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  for (const std::string_view key : {"strategy", "preferredHolder"}) spec.remove(key);
}
void update_lease(Context&, Draft::Node next, const Value& old) {
  Draft::Node spec = next.child("spec");
  for (const std::string_view key : {"strategy", "preferredHolder"}) {
    if (!is_set(sub(old, "spec"), key)) spec.remove(key);
  }
}

void validate_lease(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  if (is_set(spec, "leaseDurationSeconds") && spec.int_at_or(0, "leaseDurationSeconds") <= 0) {
    errors.invalid(at.child("leaseDurationSeconds"), spec.find("leaseDurationSeconds"), "must be greater than 0");
  }
  if (spec.int_at_or(0, "leaseTransitions") < 0) {
    errors.invalid(at.child("leaseTransitions"), spec.find("leaseTransitions"), kNegative);
  }
}

}  // namespace

const Hooks kPodDisruptionBudgetHooks = {.name = name_is_path_segment,
                                         .generation = Generation::Spec,
                                         .checks_metadata_last = true,
                                         .validate = validate_budget,
                                         .validate_status = validate_budget_status};
const Hooks kPriorityClassHooks = {.generation = Generation::Never,
                                   .defaults = default_priority_class,
                                   .validate = validate_priority_class,
                                   .validate_update = validate_priority_class_update};
const Hooks kRuntimeClassHooks = {.update_checks = {.whole = 1},
                                  .validate = validate_runtime_class,
                                  .validate_update = validate_runtime_class_update};
const Hooks kLeaseHooks = {.create = create_lease, .update = update_lease, .validate = validate_lease};

}  // namespace holdfast::kinds
