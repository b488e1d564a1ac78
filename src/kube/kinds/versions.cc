// Conversion between the two versions of HorizontalPodAutoscaler and the two groups of Event.

#include "base/api_version.h"
#include "base/strings.h"
#include "codec/json.h"
#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

void copy_member(MapBuilder& to, std::string_view to_key, const Value& from, std::string_view from_key) {
  const Value* value = from.find(from_key);
  if (value != nullptr && !value->is_null()) to.set(to_key, *value);
}

// --- Events ---

struct Renamed {
  std::string_view core, events;
};
constexpr Renamed kEventFields[] = {
    {"metadata", "metadata"},
    {"involvedObject", "regarding"},
    {"reason", "reason"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"type", "type"},
    {"eventTime", "eventTime"},
    {"series", "series"},
    {"action", "action"},
    {"related", "related"},
    {"reportingComponent", "reportingController"},
    {"reportingInstance", "reportingInstance"},
};

Value convert_event(Arena& arena, const types::Resource& to, const Value& event) {
  const bool to_core = to.group.empty();
  Draft draft(arena, zero_value(arena, *to.type));
  for (const Renamed& field : kEventFields) {
    const Value* value = event.find(to_core ? field.events : field.core);
    if (value == nullptr || value->is_null()) continue;
    const bool empty_text = value->is_string() && value->count() == 0;
    const std::string_view key = to_core ? field.core : field.events;
    if (empty_text && draft.root().has(key)) continue;
    if (empty_text || (value->is_int() && value->as_int() == 0)) continue;
    draft.root().set(key, *value);
  }
  return draft.value();
}

// --- HorizontalPodAutoscaler ---

constexpr std::string_view kMetrics = kAutoscalerAnnotations[0], kCurrentMetrics = kAutoscalerAnnotations[1];
constexpr std::string_view kConditions = kAutoscalerAnnotations[2], kBehavior = kAutoscalerAnnotations[3];

bool is_cpu(const Value& metric) {
  return metric.text_at("type") == "Resource" && metric.text_at("resource", "name") == "cpu";
}

Value quantity_or_zero(const Value& holder, std::string_view key) {
  const Value& value = sub(holder, key);
  return value.is_null() ? Value::string("0") : value;
}

// v2 {metric, target} -> v1's flat members, and back. `current` for statuses.
Value source_to_v1(Arena& arena, std::string_view kind, const Value& source, bool current) {
  MapBuilder out(arena);
  const Value& amounts = sub(source, current ? "current" : "target");
  const std::string_view value = current ? "currentValue" : "targetValue";
  const std::string_view average = current ? "currentAverageValue" : "targetAverageValue";
  const std::string_view utilization = current ? "currentAverageUtilization" : "targetAverageUtilization";
  if (kind == "object") {
    out.add("target", sub(source, "describedObject"));
    out.add("metricName", sub(source, "metric", "name"));
    out.add(value, quantity_or_zero(amounts, "value"));
    copy_member(out, "selector", sub(source, "metric"), "selector");
    copy_member(out, "averageValue", amounts, "averageValue");
  } else if (kind == "pods") {
    out.add("metricName", sub(source, "metric", "name"));
    out.add(average, quantity_or_zero(amounts, "averageValue"));
    copy_member(out, "selector", sub(source, "metric"), "selector");
  } else if (kind == "external") {
    out.add("metricName", sub(source, "metric", "name"));
    copy_member(out, "metricSelector", sub(source, "metric"), "selector");
    if (current) {
      out.add(value, quantity_or_zero(amounts, "value"));
    } else {
      copy_member(out, value, amounts, "value");
    }
    copy_member(out, average, amounts, "averageValue");
  } else {
    out.add("name", sub(source, "name"));
    copy_member(out, utilization, amounts, "averageUtilization");
    if (current) {
      out.add(average, quantity_or_zero(amounts, "averageValue"));
    } else {
      copy_member(out, average, amounts, "averageValue");
    }
    if (kind == "containerResource") out.add("container", sub(source, "container"));
  }
  return out.build();
}

Value source_to_v2(Arena& arena, std::string_view kind, const Value& source, bool current) {
  MapBuilder out(arena), amounts(arena), metric(arena);
  const std::string_view value = current ? "currentValue" : "targetValue";
  const std::string_view average = current ? "currentAverageValue" : "targetAverageValue";
  const std::string_view utilization = current ? "currentAverageUtilization" : "targetAverageUtilization";
  std::string_view type = "AverageValue";
  if (kind == "object") {
    const bool averaged = is_set(source, "averageValue");
    if (!averaged) type = "Value";
    if (!current) amounts.add("type", Value::string(type));
    const Value target = quantity_or_zero(source, value);
    if (current || !averaged || target.as_string() != "0") amounts.add("value", target);
    copy_member(amounts, "averageValue", source, "averageValue");
    out.add("describedObject", sub(source, "target"));
  } else if (kind == "pods") {
    if (!current) amounts.add("type", Value::string(type));
    amounts.add("averageValue", quantity_or_zero(source, average));
  } else if (kind == "external") {
    if (is_set(source, value)) type = "Value";
    if (!current) amounts.add("type", Value::string(type));
    if (current) {
      amounts.add("value", quantity_or_zero(source, value));
    } else {
      copy_member(amounts, "value", source, value);
    }
    copy_member(amounts, "averageValue", source, average);
  } else {
    if (is_set(source, utilization)) type = "Utilization";
    if (!current) amounts.add("type", Value::string(type));
    if (current) {
      amounts.add("averageValue", quantity_or_zero(source, average));
    } else {
      copy_member(amounts, "averageValue", source, average);
    }
    copy_member(amounts, "averageUtilization", source, utilization);
    out.add("name", sub(source, "name").is_null() ? Value::string("") : sub(source, "name"));
    if (kind == "containerResource") copy_member(out, "container", source, "container");
  }
  if (kind == "object" || kind == "pods" || kind == "external") {
    metric.add("name", sub(source, "metricName").is_null() ? Value::string("") : sub(source, "metricName"));
    copy_member(metric, "selector", source, kind == "external" ? "metricSelector" : "selector");
    out.add("metric", metric.build());
  }
  out.add(current ? "current" : "target", amounts.build());
  return out.build();
}

constexpr std::string_view kSourceKinds[] = {"object", "pods", "resource", "containerResource", "external"};

Value convert_metrics(Arena& arena, std::span<const Value> metrics, bool current, bool to_v1, bool skip_cpu) {
  ListBuilder list(arena);
  for (const Value& metric : metrics) {
    if (skip_cpu && is_cpu(metric) && metric.get("resource", "target", "averageUtilization") != nullptr) continue;
    MapBuilder out(arena);
    out.add("type", sub(metric, "type").is_null() ? Value::string("") : sub(metric, "type"));
    for (const std::string_view kind : kSourceKinds) {
      if (!is_set(metric, kind)) continue;
      out.add(kind, to_v1 ? source_to_v1(arena, kind, sub(metric, kind), current)
                          : source_to_v2(arena, kind, sub(metric, kind), current));
    }
    list.add(out.build());
  }
  return list.build();
}

Value cpu_metric(Arena& arena, const Value& percent) {
  MapBuilder target(arena), source(arena), metric(arena);
  target.add("type", Value::string("Utilization"));
  target.add("averageUtilization", percent);
  source.add("name", Value::string("cpu"));
  source.add("target", target.build());
  metric.add("type", Value::string("Resource"));
  metric.add("resource", source.build());
  return metric.build();
}

// The annotation for behavior uses Go's field names, because the internal structs have no JSON tags.
std::string rules_with_go_names(const Value& rules) {
  if (rules.is_null()) return "null";
  const auto json = [&](std::string_view key) { return codec::encode_json(sub(rules, key)); };
  std::string policies = "null";
  if (is_set(rules, "policies")) {
    policies = "[";
    for (const Value& policy : rules.items_at("policies")) {
      if (policies.size() > 1) policies += ',';
      policies += "{\"Type\":" + codec::encode_json_string(policy.text_at("type")) +
                  ",\"Value\":" + std::to_string(policy.int_at_or(0, "value")) +
                  ",\"PeriodSeconds\":" + std::to_string(policy.int_at_or(0, "periodSeconds")) + "}";
    }
    policies += "]";
  }
  return "{\"StabilizationWindowSeconds\":" + json("stabilizationWindowSeconds") +
         ",\"SelectPolicy\":" + json("selectPolicy") + ",\"Policies\":" + policies +
         ",\"Tolerance\":" + json("tolerance") + "}";
}

// encoding/json matches names case-insensitively.
const Value& any_case(const Value& object, std::string_view name) {
  static constexpr Value kNull;
  if (!object.is_map()) return kNull;
  for (const Member& member : object.members()) {
    if (equals_ignoring_case(member.key, name)) return member.value;
  }
  return kNull;
}

Value rules_from_go_names(Arena& arena, const Value& rules) {
  MapBuilder out(arena);
  for (const std::string_view key : {"stabilizationWindowSeconds", "selectPolicy"}) {
    const Value& value = any_case(rules, key);
    if (!value.is_null()) out.add(key, value);
  }
  const Value& given = any_case(rules, "policies");
  if (given.is_list()) {
    ListBuilder policies(arena);
    for (const Value& policy : given.items()) {
      MapBuilder one(arena);
      const Value &type = any_case(policy, "type"), &value = any_case(policy, "value");
      const Value& period = any_case(policy, "periodSeconds");
      one.add("type", type.is_string() ? type : Value::string(""));
      one.add("value", value.is_int() ? value : Value::integer(0));
      one.add("periodSeconds", period.is_int() ? period : Value::integer(0));
      policies.add(one.build());
    }
    out.add("policies", policies.build());
  }
  const Value& tolerance = any_case(rules, "tolerance");
  if (!tolerance.is_null()) out.add("tolerance", tolerance);
  return out.build();
}

void drop_annotations(Draft::Node object) {
  if (object.value().members_at("metadata", "annotations").empty()) return;
  Draft::Node metadata = object.child("metadata");
  {
    Draft::Node annotations = metadata.child("annotations");
    for (const std::string_view key : kAutoscalerAnnotations) annotations.remove(key);
  }
  remove_if_empty(metadata, "annotations");
}

void annotate(Arena& arena, Draft::Node object, std::string_view key, std::string text) {
  object.child("metadata").child("annotations").set(key, Value::string(arena, text));
}

Value autoscaler_to_v1(Arena& arena, const types::Resource& to, const Value& object) {
  Draft draft(arena, zero_value(arena, *to.type));
  Draft::Node out = draft.root();
  if (is_set(object, "metadata")) out.set("metadata", *object.find("metadata"));
  drop_annotations(out);
  const Value &spec = sub(object, "spec"), &status = sub(object, "status");
  {
    Draft::Node to_spec = out.child("spec");
    for (const std::string_view key : {"scaleTargetRef", "minReplicas", "maxReplicas"}) {
      if (is_set(spec, key)) to_spec.set(key, *spec.find(key));
    }
    for (const Value& metric : spec.items_at("metrics")) {
      const Value* percent = metric.get("resource", "target", "averageUtilization");
      if (!is_cpu(metric) || percent == nullptr) continue;
      to_spec.set("targetCPUUtilizationPercentage", *percent);
      break;
    }
  }
  {
    Draft::Node to_status = out.child("status");
    for (const std::string_view key : {"observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"}) {
      if (is_set(status, key)) to_status.set(key, *status.find(key));
    }
    for (const Value& metric : status.items_at("currentMetrics")) {
      const Value* percent = metric.get("resource", "current", "averageUtilization");
      if (is_cpu(metric) && percent != nullptr) to_status.set("currentCPUUtilizationPercentage", *percent);
    }
  }
  const Value others = convert_metrics(arena, spec.items_at("metrics"), false, true, true);
  if (others.count() > 0) annotate(arena, out, kMetrics, codec::encode_json(others));
  const Value current = convert_metrics(arena, status.items_at("currentMetrics"), true, true, false);
  if (current.count() > 0) annotate(arena, out, kCurrentMetrics, codec::encode_json(current));
  if (is_set(spec, "behavior")) {
    const Value& behavior = sub(spec, "behavior");
    annotate(arena, out, kBehavior,
             "{\"ScaleUp\":" + rules_with_go_names(sub(behavior, "scaleUp")) +
                 ",\"ScaleDown\":" + rules_with_go_names(sub(behavior, "scaleDown")) + "}");
  }
  if (!is_empty(status, "conditions")) {
    annotate(arena, out, kConditions, codec::encode_json(*status.find("conditions")));
  }
  return draft.value();
}

Value parsed_annotation(Arena& arena, const Value& object, std::string_view key) {
  const std::string_view text = object.text_at("metadata", "annotations", key);
  if (text.empty()) return Value::null();
  const Result<Value> value = codec::decode_json(arena, text);
  return value ? *value : Value::null();
}

Value autoscaler_to_v2(Arena& arena, const types::Resource& to, const Value& object) {
  Draft draft(arena, zero_value(arena, *to.type));
  Draft::Node out = draft.root();
  if (is_set(object, "metadata")) out.set("metadata", *object.find("metadata"));
  const Value &spec = sub(object, "spec"), &status = sub(object, "status");
  {
    Draft::Node to_spec = out.child("spec");
    for (const std::string_view key : {"scaleTargetRef", "minReplicas", "maxReplicas"}) {
      if (is_set(spec, key)) to_spec.set(key, *spec.find(key));
    }
    const Value others = parsed_annotation(arena, object, kMetrics);
    if (others.is_list()) {
      const Value converted = convert_metrics(arena, others.items(), false, false, false);
      for (const Value& metric : converted.items()) to_spec.append("metrics", metric);
    }
    const Value& percent = sub(spec, "targetCPUUtilizationPercentage");
    if (!percent.is_null()) to_spec.append("metrics", cpu_metric(arena, percent));
    if (is_empty(to_spec.value(), "metrics")) to_spec.append("metrics", cpu_metric(arena, Value::integer(80)));
    const Value behavior = parsed_annotation(arena, object, kBehavior);
    if (behavior.is_map()) {
      MapBuilder rules(arena);
      const Value &up = any_case(behavior, "scaleUp"), &down = any_case(behavior, "scaleDown");
      if (up.is_map()) rules.add("scaleUp", rules_from_go_names(arena, up));
      if (down.is_map()) rules.add("scaleDown", rules_from_go_names(arena, down));
      const Value built = rules.build();
      if (built.count() > 0) to_spec.set("behavior", built);
    }
  }
  {
    Draft::Node to_status = out.child("status");
    for (const std::string_view key : {"observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"}) {
      if (is_set(status, key)) to_status.set(key, *status.find(key));
    }
    const Value current = parsed_annotation(arena, object, kCurrentMetrics);
    if (current.is_list()) {
      to_status.set("currentMetrics", convert_metrics(arena, current.items(), true, false, false));
    } else if (is_set(status, "currentCPUUtilizationPercentage")) {
      MapBuilder amounts(arena), source(arena), metric(arena);
      amounts.add("averageUtilization", *status.find("currentCPUUtilizationPercentage"));
      source.add("name", Value::string("cpu"));
      source.add("current", amounts.build());
      metric.add("type", Value::string("Resource"));
      metric.add("resource", source.build());
      to_status.append("currentMetrics", metric.build());
    }
    const Value conditions = parsed_annotation(arena, object, kConditions);
    if (conditions.is_list() && conditions.count() > 0) to_status.set("conditions", conditions);
  }
  drop_annotations(out);
  return draft.value();
}

}  // namespace

Value convert(Arena& arena, const types::Resource& from, const types::Resource& to, const Value& object) {
  if (from.group == to.group && from.version == to.version) return object;
  Value result = object;
  if (from.plural == "events" && to.plural == "events") {
    result = convert_event(arena, to, object);
  } else if (from.plural == "horizontalpodautoscalers" && to.plural == from.plural) {
    result = to.version == "v1" ? autoscaler_to_v1(arena, to, object) : autoscaler_to_v2(arena, to, object);
  }
  // Kinds stored in an older version of the same shape differ only in apiVersion and kind, which come first, as always.
  MapBuilder named(arena);
  named.add("kind", Value::string(to.kind));
  named.add("apiVersion", Value::string(arena, api_version_of(to.group, to.version)));
  for (const Member& member : result.members()) {
    if (member.key != "kind" && member.key != "apiVersion") named.add(member.key, member.value);
  }
  return named.build();
}

std::span<const std::string_view> conversion_annotations(const types::Resource& resource) {
  static constexpr std::string_view kDaemonSet[] = {kTemplateGeneration};
  static constexpr std::string_view kAutoscaler[] = {kBehavior, kConditions, kCurrentMetrics, kMetrics};
  if (resource.group == "apps" && resource.plural == "daemonsets") return kDaemonSet;
  if (resource.plural == "horizontalpodautoscalers" && resource.version == "v1") return kAutoscaler;
  return {};
}

Value zero_object(Arena& arena, const types::Resource& resource) {
  const Value zero = zero_value(arena, *resource.type);
  if (resource.group != "apps") return zero;
  if (resource.plural == "daemonsets") {
    return with_path(arena, zero,
                     std::array{std::string_view("metadata"), std::string_view("annotations"), kTemplateGeneration},
                     Value::string("0"));
  }
  if (resource.plural == "controllerrevisions") return zero;
  // Deployments, ReplicaSets and StatefulSets: the number of replicas, which is the first member of their spec.
  MapBuilder spec(arena);
  spec.add("replicas", Value::integer(0));
  for (const Member& member : sub(zero, "spec").members()) spec.add(member.key, member.value);
  return with_member(arena, zero, "spec", spec.build());
}

}  // namespace holdfast::kinds
