// HorizontalPodAutoscaler, validated as autoscaling/v2, which is also its storage version.

#include <algorithm>

#include "kinds/all.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"

namespace holdfast::kinds {
namespace {

// --- Defaults ---

Value policy(Arena& arena, std::string_view type, int64_t value) {
  MapBuilder builder(arena);
  builder.add("type", Value::string(type));
  builder.add("value", Value::integer(value));
  builder.add("periodSeconds", Value::integer(15));
  return builder.build();
}

void default_autoscaler(Arena& arena, const types::Resource& resource, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_default("minReplicas", Value::integer(1));
  if (resource.version != "v2") return;
  if (is_empty(spec.value(), "metrics")) {
    MapBuilder target(arena), source(arena), metric(arena);
    target.add("type", Value::string("Utilization"));
    target.add("averageUtilization", Value::integer(80));
    source.add("name", Value::string("cpu"));
    source.add("target", target.build());
    metric.add("type", Value::string("Resource"));
    metric.add("resource", source.build());
    spec.append("metrics", metric.build());
  }
  Draft::Node behavior = spec.existing("behavior");
  if (!behavior) return;
  if (Draft::Node up = behavior.child("scaleUp")) {
    up.set_default("stabilizationWindowSeconds", Value::integer(0));
    up.set_default("selectPolicy", Value::string("Max"));
    if (!is_set(up.value(), "policies")) {
      up.append("policies", policy(arena, "Pods", 4));
      up.append("policies", policy(arena, "Percent", 100));
    }
  }
  if (Draft::Node down = behavior.child("scaleDown")) {
    down.set_default("selectPolicy", Value::string("Max"));
    if (!is_set(down.value(), "policies")) down.append("policies", policy(arena, "Percent", 100));
  }
}

// v1's annotations have no meaning in v2, even if a client sends them.
void drop_round_trip(Draft::Node object) {
  bool any = false;
  for (const std::string_view key : kAutoscalerAnnotations) {
    any = any || object.value().get("metadata", "annotations", key) != nullptr;
  }
  if (!any) return;
  Draft::Node metadata = object.child("metadata");
  {
    Draft::Node annotations = metadata.child("annotations");
    for (const std::string_view key : kAutoscalerAnnotations) annotations.remove(key);
  }
  remove_if_empty(metadata, "annotations");
}
void create_autoscaler(Context&, Draft::Node object) { drop_round_trip(object); }
void update_autoscaler(Context&, Draft::Node next, const Value&) { drop_round_trip(next); }

// --- Validation ---

enum class ApiVersion : uint8_t { OfAGroup, OfAnyGroup, Any };

// Empty if valid.
std::string api_version_error(std::string_view version, ApiVersion rule) {
  const auto slashes = std::count(version.begin(), version.end(), '/');
  if (rule == ApiVersion::Any) return {};
  if (slashes > 1) return "unexpected GroupVersion string: " + std::string(version);
  const bool group = slashes == 1 && !version.starts_with('/');
  return group || rule == ApiVersion::OfAnyGroup ? std::string() : "apiVersion must specify API group";
}

void validate_reference(const Value& reference, ApiVersion rule, const Path& at, FieldErrors& errors) {
  for (const std::string_view key : {"kind", "name"}) {
    errors.require_valid(at.child(key), reference.text_at(key), path_segment_errors);
  }
  const std::string_view version = reference.text_at("apiVersion");
  const std::string wrong = api_version_error(version, rule);
  if (!wrong.empty()) errors.invalid(at.child("apiVersion"), version, wrong);
}

void validate_target(const Value& target, const Path& at, FieldErrors& errors) {
  const std::string_view type = target.text_at("type");
  if (type.empty()) errors.required(at.child("type"), "must specify a metric target type");
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    errors.invalid(at.child("type"), type, "must be either Utilization, Value, or AverageValue");
  }
  for (const std::string_view key : {"value", "averageValue"}) {
    if (is_set(target, key) && quantity_of(target.find(key)).sign() != 1) {
      errors.invalid(at.child(key), target.find(key), "must be positive");
    }
  }
  if (is_set(target, "averageUtilization") && target.int_at_or(0, "averageUtilization") < 1) {
    errors.invalid(at.child("averageUtilization"), target.find("averageUtilization"), "must be greater than 0");
  }
}

void validate_identifier(const Value& metric, const Path& at, FieldErrors& errors) {
  const std::string_view name = metric.text_at("name");
  errors.require_valid(at.child("name"), name, path_segment_errors, "must specify a metric name");
}

void validate_source(const Value& source, std::string_view key, ApiVersion described, const Path& at,
                     FieldErrors& errors) {
  const Value& target = sub(source, "target");
  const Path target_at = at.child("target");
  const bool value = is_set(target, "value"), average = is_set(target, "averageValue");
  const bool utilization = is_set(target, "averageUtilization");
  if (key == "resource" || key == "containerResource") {
    const std::string_view name = source.text_at("name");
    if (name.empty()) errors.required(at.child("name"), "must specify a resource name");
    if (key == "containerResource") {
      if (!name.empty()) validate_container_resource_name(name, at.child("name"), errors);
      const std::string_view container = source.text_at("container");
      errors.require_valid(at.child("container"), container, dns_label_errors, "must specify a container");
    }
    validate_target(target, target_at, errors);
    if (!utilization && !average) {
      errors.required(target_at.child("averageUtilization"),
                      "must set either a target raw value or a target utilization");
    }
    if (utilization && average) {
      errors.forbidden(target_at.child("averageValue"), "may not set both a target raw value and a target utilization");
    }
    return;
  }
  if (key == "object") {
    validate_reference(sub(source, "describedObject"), described, at.child("describedObject"), errors);
  }
  validate_identifier(sub(source, "metric"), at.child("metric"), errors);
  validate_target(target, target_at, errors);
  if (key == "pods") {
    if (!average) errors.required(target_at.child("averageValue"), "must specify a positive target averageValue");
  } else if (key == "object") {
    if (!value && !average) {
      errors.required(target_at.child("averageValue"), "must set either a target value or averageValue");
    }
  } else {
    if (!value && !average) {
      errors.required(target_at.child("averageValue"), "must set either a target value for metric or a per-pod target");
    }
    if (value && average) {
      errors.forbidden(target_at.child("value"), "may not set both a target value for metric and a per-pod target");
    }
  }
}

void validate_metric(const Value& metric, ApiVersion described, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kTypes[] = {"ContainerResource", "External", "Object", "Pods", "Resource"};
  const std::string_view type = metric.text_at("type");
  if (type.empty()) errors.required(at.child("type"), "must specify a metric source type");
  if (!contains(kTypes, type)) errors.not_supported(at.child("type"), type, kTypes);
  std::vector<std::string_view> present;
  for (const std::string_view key : {"object", "external", "pods", "resource", "containerResource"}) {
    if (!is_set(metric, key)) continue;
    present.push_back(key);
    if (present.size() == 1) validate_source(sub(metric, key), key, described, at.child(key), errors);
  }
  std::string expected(type);
  if (!expected.empty()) expected[0] = static_cast<char>(expected[0] | 0x20);
  if (!contains(kTypes, type)) {
    errors.not_supported(at.child("type"), type, kTypes);
    expected.clear();
  } else if (!contains(present, expected)) {
    errors.required(at.child(expected), "must populate information for the given metric source");
  }
  if (present.size() == 1) return;
  for (const std::string_view key : present) {
    if (key != expected) errors.forbidden(at.child(key), "must populate the given metric source only");
  }
}

void validate_rules(const Value& behavior, std::string_view key, const Path& at, FieldErrors& errors) {
  if (!is_set(behavior, key)) return;
  const Value& rules = sub(behavior, key);
  const Path here = at.child(key), window = here.child("stabilizationWindowSeconds");
  const int64_t seconds = rules.int_at_or(0, "stabilizationWindowSeconds");
  if (seconds < 0) errors.invalid(window, seconds, "must be greater than or equal to zero");
  if (seconds > 3600) errors.invalid(window, seconds, "must be less than or equal to 3600");
  if (is_set(rules, "selectPolicy")) validate_enum(rules, "selectPolicy", {"Disabled", "Max", "Min"}, here, errors);
  const std::span<const Value> policies = rules.items_at("policies");
  if (policies.empty()) errors.required(here.child("policies"), "must specify at least one Policy");
  for (size_t i = 0; i < policies.size(); ++i) {
    const Path policy_at = here.item("policies", i);
    validate_enum(policies[i], "type", {"Percent", "Pods"}, policy_at, errors);
    const int64_t value = policies[i].int_at_or(0, "value"), period = policies[i].int_at_or(0, "periodSeconds");
    if (value <= 0) errors.invalid(policy_at.child("value"), value, kNotPositive);
    if (period <= 0) errors.invalid(policy_at.child("periodSeconds"), period, kNotPositive);
    if (period > 1800) errors.invalid(policy_at.child("periodSeconds"), period, "must be less than or equal to 1800");
  }
  if (quantity_of(rules.find("tolerance")).sign() < 0) {
    errors.invalid(here.child("tolerance"), rules.find("tolerance"), kNegative);
  }
}

// A stored object may violate rules that are newer than it.
void validate_spec(const Value& spec, const Value* before, FieldErrors& errors) {
  const Path at("spec");
  const int64_t least = before != nullptr && before->int_at_or(1, "minReplicas") == 0 ? 0 : 1;
  const int64_t max = spec.int_at_or(0, "maxReplicas"), min = spec.int_at_or(1, "minReplicas");
  if (min < least) {
    errors.invalid(at.child("minReplicas"), min, "must be greater than or equal to " + std::to_string(least));
  }
  if (max == 0) {
    errors.required(at.child("maxReplicas"), "must be set and greater than 0");
  } else if (max < 0) {
    errors.invalid(at.child("maxReplicas"), max, "must be greater than or equal to 1");
  }
  if (is_set(spec, "minReplicas") && max < min) {
    errors.invalid(at.child("maxReplicas"), max, "must be greater than or equal to `minReplicas`");
  }
  const Value& target = sub(spec, "scaleTargetRef");
  const auto as_before = [&](std::string_view key) {
    return before != nullptr && target.text_at(key) == before->text_at("scaleTargetRef", key);
  };
  validate_reference(target,
                     as_before("apiVersion") && as_before("kind") ? ApiVersion::Any
                     // The only kind in the core group that scales.
                     : target.text_at("kind") == "ReplicationController" ? ApiVersion::OfAnyGroup
                                                                         : ApiVersion::OfAGroup,
                     at.child("scaleTargetRef"), errors);
  ApiVersion described = ApiVersion::OfAnyGroup;
  if (before != nullptr) {
    for (const Value& metric : before->items_at("metrics")) {
      if (metric.text_at("type") == "Object" &&
          !api_version_error(metric.text_at("object", "describedObject", "apiVersion"), described).empty()) {
        described = ApiVersion::Any;
      }
    }
  }
  const std::span<const Value> metrics = spec.items_at("metrics");
  for (size_t i = 0; i < metrics.size(); ++i) validate_metric(metrics[i], described, at.item("metrics", i), errors);
  const auto counts_without_pods = [](const Value& metric) {
    return metric.text_at("type") == "Object" || metric.text_at("type") == "External";
  };
  if (min == 0 && std::none_of(metrics.begin(), metrics.end(), counts_without_pods)) {
    errors.forbidden(at.child("metrics"),
                     "must specify at least one Object or External metric to support scaling to zero replicas");
  }
  if (is_set(spec, "behavior")) {
    const Path behavior = at.child("behavior");
    validate_rules(sub(spec, "behavior"), "scaleUp", behavior, errors);
    validate_rules(sub(spec, "behavior"), "scaleDown", behavior, errors);
  }
}

void validate_autoscaler(Context&, const Value& object, FieldErrors& errors) {
  validate_spec(sub(object, "spec"), nullptr, errors);
}
void validate_autoscaler_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_spec(sub(next, "spec"), &sub(old, "spec"), errors);
}

void validate_autoscaler_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  const Path at("status");
  for (const std::string_view key : {"currentReplicas", "desiredReplicas"}) {
    validate_non_negative(sub(next, "status"), key, at, errors);
  }
}

}  // namespace

const Hooks kHorizontalPodAutoscalerHooks = {.defaults = default_autoscaler,
                                             .create = create_autoscaler,
                                             .update = update_autoscaler,
                                             .validate = validate_autoscaler,
                                             .validate_update = validate_autoscaler_update,
                                             .validate_status = validate_autoscaler_status};

}  // namespace holdfast::kinds
