// autoscaling/v1 Scale: the number of replicas of another object.

#include "kinds/hooks.h"

namespace holdfast::kinds {

Value make_scale(Arena& arena, const Value& object, const ScaleFields& fields) {
  MapBuilder metadata(arena), spec(arena), status(arena), scale(arena);
  for (const std::string_view key : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    const Value& value = sub(object, "metadata", key);
    if (!value.is_null()) metadata.add(key, value);
  }
  if (fields.spec_replicas != 0) spec.add("replicas", Value::integer(fields.spec_replicas));
  status.add("replicas", Value::integer(fields.status_replicas));
  if (!fields.selector.empty()) status.add("selector", Value::string(arena, fields.selector));
  scale.add("kind", Value::string("Scale"));
  scale.add("apiVersion", Value::string("autoscaling/v1"));
  scale.add("metadata", metadata.build());
  scale.add("spec", spec.build());
  scale.add("status", status.build());
  return scale.build();
}

Value scale_of(Arena& arena, const types::Resource& resource, const Value& object) {
  const bool plain = resource.plural == "replicationcontrollers";
  return make_scale(arena, object,
                    {.spec_replicas = object.int_at_or(0, "spec", "replicas"),
                     .status_replicas = object.int_at_or(0, "status", "replicas"),
                     .selector = plain ? selector_text(object.members_at("spec", "selector"))
                                       : selector_text(object.get("spec", "selector"))});
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
