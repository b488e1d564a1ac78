// Deployment, ReplicaSet and ReplicationController.

#include "codec/json.h"
#include "kinds/all.h"
#include "kinds/workload.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kAboveReplicas = "cannot be greater than status.replicas";

void drop_for_create(Context&, Draft::Node object) {
  drop_disabled_template_fields(object.child("spec"), "template", nullptr);
}
void drop_for_update(Context&, Draft::Node next, const Value& old) {
  drop_disabled_template_fields(next.child("spec"), "template", old.get("spec", "template"));
}

void warn_workload(Context&, const Value& object, const Value* old, Warnings& texts) {
  warn_about_name(object, old, "this is used in Pod names and hostnames", texts);
  const bool same =
      old != nullptr && object.int_at_or(0, "metadata", "generation") == old->int_at_or(0, "metadata", "generation");
  if (!same) warn_about_pod_template(sub(object, "spec", "template"), Path("spec.template"), texts);
}

// --- Deployment ---

void default_deployment(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_default("replicas", Value::integer(1));
  {
    Draft::Node strategy = spec.child("strategy");
    strategy.set_if_zero("type", Value::string("RollingUpdate"));
    if (strategy.value().text_at("type") == "RollingUpdate") {
      Draft::Node rolling = strategy.child("rollingUpdate");
      rolling.set_default("maxUnavailable", Value::string("25%"));
      rolling.set_default("maxSurge", Value::string("25%"));
    }
  }
  spec.set_default("revisionHistoryLimit", Value::integer(10));
  spec.set_default("progressDeadlineSeconds", Value::integer(600));
  default_pod_template(arena, spec, "template");
}

void validate_strategy(const Value& strategy, const Path& at, FieldErrors& errors) {
  const std::string_view type = strategy.text_at("type");
  const Path rolling_at = at.child("rollingUpdate");
  if (type == "Recreate") {
    if (is_set(strategy, "rollingUpdate")) {
      errors.forbidden(rolling_at, "may not be specified when strategy `type` is 'Recreate'");
    }
  } else if (type == "RollingUpdate") {
    if (!is_set(strategy, "rollingUpdate")) {
      return errors.required(rolling_at, "this should be defaulted and never be nil");
    }
    const Value& rolling = sub(strategy, "rollingUpdate");
    const Value &unavailable = sub(rolling, "maxUnavailable"), &surge = sub(rolling, "maxSurge");
    validate_int_or_percent(unavailable, rolling_at.child("maxUnavailable"), errors);
    validate_int_or_percent(surge, rolling_at.child("maxSurge"), errors);
    if (int_or_percent(unavailable) == 0 && int_or_percent(surge) == 0) {
      errors.invalid(rolling_at.child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0");
    }
    validate_at_most_100_percent(unavailable, rolling_at.child("maxUnavailable"), errors);
  } else {
    // The internal struct as printed by Go.
    std::string rolling = "null";
    if (is_set(strategy, "rollingUpdate")) {
      const Value& given = sub(strategy, "rollingUpdate");
      const auto text = [&](std::string_view key) {
        return is_set(given, key) ? codec::encode_json(sub(given, key)) : std::string("0");
      };
      rolling = "{\"MaxUnavailable\":" + text("maxUnavailable") + ",\"MaxSurge\":" + text("maxSurge") + "}";
    }
    errors.not_supported(
        at, Shown::verbatim("{\"Type\":" + codec::encode_json_string(type) + ",\"RollingUpdate\":" + rolling + "}"),
        {"Recreate", "RollingUpdate"});
  }
}

void validate_selector_and_template(Context& context, const Value& spec, const Path& at, FieldErrors& errors) {
  bool valid;
  validate_selector(spec, "deployment", at, errors, valid);
  if (valid) {
    validate_replica_template(context, spec, "ReplicaSet", at, errors);
  } else {
    errors.invalid(at.child("selector"), shown_selector(spec.find("selector")), "invalid label selector");
  }
}

void validate_deployment(Context& context, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  validate_non_negative(spec, "replicas", at, errors);
  validate_selector_and_template(context, spec, at, errors);
  validate_strategy(sub(spec, "strategy"), at.child("strategy"), errors);
  validate_non_negative(spec, "minReadySeconds", at, errors);
  validate_non_negative(spec, "revisionHistoryLimit", at, errors);
  if (is_set(spec, "progressDeadlineSeconds")) {
    validate_non_negative(spec, "progressDeadlineSeconds", at, errors);
    const int64_t deadline = spec.int_at_or(0, "progressDeadlineSeconds");
    if (deadline <= spec.int_at_or(0, "minReadySeconds")) {
      errors.invalid(at.child("progressDeadlineSeconds"), deadline, "must be greater than minReadySeconds");
    }
  }
}

void validate_deployment_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_deployment(context, next, errors);
  validate_selector_unchanged(next, old, errors);
}

void validate_deployment_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status");
  const Value& status = sub(next, "status");
  validate_counters(status,
                    {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
                     "unavailableReplicas", "terminatingReplicas", "collisionCount"},
                    at, errors);
  for (const std::string_view counter : {"updatedReplicas", "readyReplicas", "availableReplicas"}) {
    validate_at_most(status, counter, "replicas", kAboveReplicas, at, errors);
  }
  validate_at_most(status, "availableReplicas", "readyReplicas", "cannot be greater than readyReplicas", at, errors);
  validate_collisions(next, old, errors);
}

// --- ReplicaSet ---

void default_replica_set(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_default("replicas", Value::integer(1));
  default_pod_template(arena, spec, "template");
}

void validate_replica_set(Context& context, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  validate_non_negative(spec, "replicas", at, errors);
  validate_non_negative(spec, "minReadySeconds", at, errors);
  validate_selector_and_template(context, spec, at, errors);
}

void validate_replica_set_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_replica_set(context, next, errors);
  validate_selector_unchanged(next, old, errors);
}

void validate_replica_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  const Path at("status");
  const Value& status = sub(next, "status");
  validate_counters(status,
                    {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
                     "terminatingReplicas"},
                    at, errors);
  for (const std::string_view counter : {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}) {
    validate_at_most(status, counter, "replicas", kAboveReplicas, at, errors);
  }
  validate_at_most(status, "availableReplicas", "readyReplicas", "cannot be greater than readyReplicas", at, errors);
}

// --- ReplicationController: its selector is a plain map ---

void default_replication_controller(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_default("replicas", Value::integer(1));
  default_pod_template(arena, spec, "template");
  const Value labels = sub(spec.value(), "template", "metadata", "labels");
  if (is_empty(&labels)) return;
  if (is_empty(spec.value(), "selector")) spec.set("selector", labels);
  if (is_empty(sub(object.value(), "metadata"), "labels")) object.child("metadata").set("labels", labels);
}

void validate_replication_controller(Context& context, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  validate_non_negative(spec, "minReadySeconds", at, errors);
  const std::span<const Member> selector = spec.members_at("selector");
  if (selector.empty()) errors.required(at.child("selector"));
  validate_non_negative(spec, "replicas", at, errors);
  const Path here = at.child("template");
  if (!is_set(spec, "template")) return errors.required(here);
  const Value& pod_template = sub(spec, "template");
  const Value* labels = pod_template.get("metadata", "labels");
  for (const Member& label : selector) {
    const Value* value = labels == nullptr ? nullptr : labels->find(label.key);
    if (value != nullptr && equal(*value, label.value)) continue;
    errors.invalid(here.child("metadata.labels"), shown_sorted(labels), "`selector` does not match template `labels`");
    break;
  }
  validate_lasting_template(context, pod_template, "ReplicationController", here, errors);
}

// On update, kube-apiserver warns about the old template.
void warn_replication_controller(Context& context, const Value& object, const Value* old, Warnings& texts) {
  if (old == nullptr) return warn_workload(context, object, old, texts);
  const auto generation = [](const Value& one) { return one.int_at_or(0, "metadata", "generation"); };
  if (generation(object) == generation(*old)) return;
  warn_about_pod_template(sub(*old, "spec", "template"), Path("spec.template"), texts);
}

// Declarative validation has no rule for generateName.
Messages name_of_replication_controller(std::string_view name, bool prefix) {
  return prefix ? Messages{} : name_is_dns_subdomain(name, false);
}

}  // namespace

const Hooks kDeploymentHooks = {.generation = Generation::SpecOrAnnotations,
                                .status_metadata = StatusMetadata::KeepLabels,
                                .defaults = default_deployment,
                                .create = drop_for_create,
                                .update = drop_for_update,
                                .validate = validate_deployment,
                                .validate_update = validate_deployment_update,
                                .validate_status = validate_deployment_status,
                                .warn = warn_workload};

const Hooks kReplicaSetHooks = {.generation = Generation::Spec,
                                .defaults = default_replica_set,
                                .create = drop_for_create,
                                .update = drop_for_update,
                                .validate = validate_replica_set,
                                .validate_update = validate_replica_set_update,
                                .validate_status = validate_replica_status,
                                .warn = warn_workload};

const Hooks kReplicationControllerHooks = {.name = name_of_replication_controller,
                                           .generation = Generation::Spec,
                                           .defaults = default_replication_controller,
                                           .create = drop_for_create,
                                           .update = drop_for_update,
                                           .validate = validate_replication_controller,
                                           .validate_status = validate_replica_status,
                                           .warn = warn_replication_controller};

}  // namespace holdfast::kinds
