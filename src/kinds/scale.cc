// autoscaling/v1 Scale: the number of replicas of another object.

#include <algorithm>

#include "kinds/hooks.h"

namespace holdfast::kinds {
namespace {

// A selector as text: "a=b,c in (d,e)", keys in order.
std::string selector_text(const Value& selector, bool plain_map) {
  std::vector<std::pair<std::string, std::string>> parts;
  const auto add_equal = [&](const Member& label) {
    parts.emplace_back(
        label.key, std::string(label.key) + "=" + std::string(label.value.is_string() ? label.value.as_string() : ""));
  };
  if (plain_map) {
    if (selector.is_map()) {
      for (const Member& label : selector.members()) add_equal(label);
    }
  } else {
    for (const Member& label : selector.members_at("matchLabels")) add_equal(label);
    for (const Value& expression : selector.items_at("matchExpressions")) {
      const std::string key(expression.text_at("key"));
      const std::string_view op = expression.text_at("operator");
      std::vector<std::string> values;
      for (const Value& value : expression.items_at("values")) values.emplace_back(value.as_string());
      std::sort(values.begin(), values.end());
      std::string list;
      for (const std::string& value : values) list += (list.empty() ? "" : ",") + value;
      std::string text = key;
      if (op == "In") {
        text = key + " in (" + list + ")";
      } else if (op == "NotIn") {
        text = key + " notin (" + list + ")";
      } else if (op == "DoesNotExist") {
        text = "!" + key;
      }
      parts.emplace_back(key, std::move(text));
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [key, part] : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

}  // namespace

Value scale_of(Arena& arena, const types::Resource& resource, const Value& object) {
  MapBuilder metadata(arena), spec(arena), status(arena), scale(arena);
  for (const std::string_view key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    const Value& value = sub(object, "metadata", key);
    if (!value.is_null()) metadata.add(key, value);
  }
  const int64_t replicas = object.int_at_or(0, "spec", "replicas");
  if (replicas != 0) spec.add("replicas", Value::integer(replicas));
  status.add("replicas", Value::integer(object.int_at_or(0, "status", "replicas")));
  const std::string selector =
      selector_text(sub(object, "spec", "selector"), resource.plural == "replicationcontrollers");
  if (!selector.empty()) status.add("selector", Value::string(arena, selector));
  scale.add("kind", Value::string("Scale"));
  scale.add("apiVersion", Value::string("autoscaling/v1"));
  scale.add("metadata", metadata.build());
  scale.add("spec", spec.build());
  scale.add("status", status.build());
  return scale.build();
}

Result<Unit> validate_scale(const Value& scale) {
  FieldErrors errors;
  validate_metadata(sub(scale, "metadata"), true, name_is_dns_subdomain, Path("metadata"), errors);
  const int64_t replicas = scale.int_at_or(0, "spec", "replicas");
  if (replicas < 0) errors.invalid(Path("spec.replicas"), replicas, kNegative);
  if (errors.empty()) return Unit{};
  return errors.to_error("autoscaling", "Scale", scale.text_at("metadata", "name"));
}

void apply_scale(Draft::Node object, const Value& scale) {
  object.child("spec").set("replicas", Value::integer(scale.int_at_or(0, "spec", "replicas")));
}

}  // namespace holdfast::kinds
