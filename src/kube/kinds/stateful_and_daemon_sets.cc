// StatefulSet, DaemonSet and ControllerRevision.

#include <charconv>

#include "codec/json.h"
#include "kinds/all.h"
#include "kinds/names.h"
#include "kinds/workload.h"

namespace holdfast::kinds {
namespace {

// --- StatefulSet ---

void default_stateful_set(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_if_zero("podManagementPolicy", Value::string("OrderedReady"));
  {
    Draft::Node strategy = spec.child("updateStrategy");
    if (strategy.value().text_at("type").empty()) {
      strategy.set("type", Value::string("RollingUpdate"));
      strategy.child("rollingUpdate");
    }
    if (strategy.value().text_at("type") == "RollingUpdate") {
      if (Draft::Node rolling = strategy.existing("rollingUpdate")) {
        rolling.set_default("partition", Value::integer(0));
      }
    }
  }
  {
    Draft::Node retention = spec.child("persistentVolumeClaimRetentionPolicy");
    retention.set_if_zero("whenDeleted", Value::string("Retain"));
    retention.set_if_zero("whenScaled", Value::string("Retain"));
  }
  spec.set_default("replicas", Value::integer(1));
  spec.set_default("revisionHistoryLimit", Value::integer(10));
  default_pod_template(arena, spec, "template");
  // Claim templates are full objects, and are printed as such.
  for (Draft::Node claim : spec.list("volumeClaimTemplates")) {
    claim.set("kind", Value::string("PersistentVolumeClaim"));
    claim.set("apiVersion", Value::string("v1"));
    claim.child("status").set_if_zero("phase", Value::string("Pending"));
    Draft::Node claim_spec = claim.child("spec");
    claim_spec.set_default("volumeMode", Value::string("Filesystem"));
    default_resources(arena, claim_spec);
  }
}

void drop_max_unavailable(Draft::Node object, const Value* old) {
  if (old != nullptr && old->get("spec", "updateStrategy", "rollingUpdate", "maxUnavailable") != nullptr) return;
  Draft::Node spec = object.child("spec");
  Draft::Node strategy = spec.existing("updateStrategy");
  if (!strategy) return;
  if (Draft::Node rolling = strategy.existing("rollingUpdate")) rolling.remove("maxUnavailable");
}

void create_stateful_set(Context&, Draft::Node object) {
  drop_max_unavailable(object, nullptr);
  drop_disabled_template_fields(object.child("spec"), "template", nullptr);
}
void update_stateful_set(Context&, Draft::Node next, const Value& old) {
  drop_max_unavailable(next, &old);
  drop_disabled_template_fields(next.child("spec"), "template", old.get("spec", "template"));
}

// The template as pods will see it: each claim template is a volume; the controller sets hostname and subdomain.
Value template_with_claims(Arena& arena, const Value& spec) {
  const Value& pod_template = sub(spec, "template");
  const std::span<const Value> claims = spec.items_at("volumeClaimTemplates");
  Value pod_spec = sub(pod_template, "spec");
  if (pod_spec.is_null()) return pod_template;
  pod_spec = without_member(arena, without_member(arena, pod_spec, "subdomain"), "hostname");
  if (!claims.empty()) {
    ListBuilder volumes(arena);
    Names names;
    for (const Value& claim : claims) {
      const std::string_view name = claim.text_at("metadata", "name");
      if (contains(names, name)) continue;
      names.push_back(name);
      MapBuilder source(arena), volume(arena);
      source.add("claimName", Value::string(name));
      volume.add("name", Value::string(name));
      volume.add("persistentVolumeClaim", source.build());
      volumes.add(volume.build());
    }
    for (const Value& volume : pod_spec.items_at("volumes")) {
      if (!contains(names, volume.text_at("name"))) volumes.add(volume);
    }
    pod_spec = with_member(arena, pod_spec, "volumes", volumes.build());
  }
  return with_member(arena, pod_template, "spec", pod_spec);
}

void validate_stateful_spec(Context& context, const Value& spec, bool create, FieldErrors& errors) {
  const Path at("spec");
  const std::string_view management = spec.text_at("podManagementPolicy");
  if (management.empty()) {
    errors.required(at.child("podManagementPolicy"));
  } else if (management != "OrderedReady" && management != "Parallel") {
    errors.invalid(at.child("podManagementPolicy"), management, "must be 'OrderedReady' or 'Parallel'");
  }
  const Value& strategy = sub(spec, "updateStrategy");
  const Path strategy_at = at.child("updateStrategy"), rolling_at = strategy_at.child("rollingUpdate");
  const std::string_view type = strategy.text_at("type");
  const Value& rolling = sub(strategy, "rollingUpdate");
  const auto rolling_text = [&] {
    if (rolling.is_null()) return std::string("null");
    return "{\"Partition\":" + std::to_string(rolling.int_at_or(0, "partition")) +
           ",\"MaxUnavailable\":" + codec::encode_json(sub(rolling, "maxUnavailable")) + "}";
  };
  if (type.empty()) {
    errors.required(strategy_at);
  } else if (type == "OnDelete") {
    if (!rolling.is_null()) {
      errors.invalid(rolling_at, Shown::verbatim(rolling_text()), "only allowed for updateStrategy 'RollingUpdate'");
    }
  } else if (type == "RollingUpdate") {
    validate_non_negative(rolling, "partition", rolling_at, errors);
    const Value& unavailable = sub(rolling, "maxUnavailable");
    if (!unavailable.is_null()) {
      const Path here = rolling_at.child("maxUnavailable");
      validate_int_or_percent(unavailable, here, errors);
      if (int_or_percent(unavailable) == 0) errors.invalid(here, unavailable, "cannot be 0");
      validate_at_most_100_percent(unavailable, here, errors);
    }
  } else {
    errors.invalid(
        strategy_at,
        Shown::verbatim("{\"Type\":" + codec::encode_json_string(type) + ",\"RollingUpdate\":" + rolling_text() + "}"),
        "must be 'RollingUpdate' or 'OnDelete'");
  }
  if (is_set(spec, "persistentVolumeClaimRetentionPolicy")) {
    const Path retention = at.child("persistentVolumeClaimRetentionPolicy");
    for (const std::string_view key : {"whenDeleted", "whenScaled"}) {
      validate_enum(sub(spec, "persistentVolumeClaimRetentionPolicy"), key, {"Retain", "Delete"}, retention, errors);
    }
  }
  if (create) {
    const std::span<const Value> claims = spec.items_at("volumeClaimTemplates");
    for (size_t i = 0; i < claims.size(); ++i) {
      const Path claim = at.item("volumeClaimTemplates", i);
      validate_claim_spec(sub(claims[i], "spec"), claim.child("spec"), errors);
    }
  }
  validate_non_negative(spec, "replicas", at, errors);
  validate_non_negative(spec, "minReadySeconds", at, errors);
  if (spec.int_at_or(0, "ordinals", "start") < 0) {
    errors.invalid(at.child("ordinals.start"), spec.int_at_or(0, "ordinals", "start"), kNegative);
  }
  const std::string_view service = spec.text_at("serviceName");
  if (create && !service.empty()) errors.invalid_each(at.child("serviceName"), service, dns_label_errors(service));
  bool valid;
  validate_selector(spec, "statefulset", at, errors, valid);
  const Value& pod_template = sub(spec, "template");
  const Path template_at = at.child("template");
  if (valid) {
    validate_selected(spec, at, errors);
    PodOptions options;
    options.allow_privileged = context.allow_privileged;
    validate_pod_template(template_with_claims(context.arena, spec), options, template_at, errors);
    // Validated again: each error is reported twice.
    const Value& metadata = sub(pod_template, "metadata");
    validate_labels(metadata.find("labels"), template_at.child("labels"), errors);
    validate_annotations(metadata.find("annotations"), template_at.child("annotations"), errors);
  } else {
    errors.invalid(at.child("selector"), shown_selector(spec.find("selector")), "");
  }
  validate_long_running(pod_template, "StatefulSet", template_at, errors);
}

void validate_stateful_set(Context& context, const Value& object, FieldErrors& errors) {
  validate_stateful_spec(context, sub(object, "spec"), true, errors);
}

void validate_stateful_set_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_stateful_spec(context, sub(next, "spec"), false, errors);
  Draft draft(context.arena, sub(next, "spec"));
  for (const std::string_view key : {"replicas", "template", "updateStrategy", "minReadySeconds", "ordinals",
                                     "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"}) {
    restore(draft.root(), sub(old, "spec"), key);
  }
  const Value rest = draft.value();
  if (semantic_equal(type_named("apps/v1.StatefulSetSpec"), &rest, old.find("spec"))) return;
  errors.forbidden(Path("spec"),
                   "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                   "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                   "'minReadySeconds' are forbidden");
}

void validate_stateful_set_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status");
  const Value& status = sub(next, "status");
  validate_counters(status,
                    {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
                     "observedGeneration", "collisionCount"},
                    at, errors);
  for (const std::string_view counter : {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}) {
    validate_at_most(status, counter, "replicas", "cannot be greater than status.replicas", at, errors);
  }
  validate_at_most(status, "availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas", at,
                   errors);
  validate_collisions(next, old, errors);
}

void warn_set(Context&, const Value& object, const Value* old, Warnings& texts) {
  const bool same =
      old != nullptr && object.int_at_or(0, "metadata", "generation") == old->int_at_or(0, "metadata", "generation");
  if (!same) warn_about_pod_template(sub(object, "spec", "template"), Path("spec.template"), texts);
  const std::span<const Value> claims = object.items_at("spec", "volumeClaimTemplates");
  const Path at("spec");
  for (size_t i = 0; i < claims.size(); ++i) {
    // kube-apiserver uses these two paths.
    const Path claim = at.item("volumeClaimTemplates", i);
    if (old == nullptr) {
      warn_about_claim(sub(claims[i], "spec"), claim, texts);
    } else {
      warn_about_claim(sub(claims[i], "spec"), claim.child("Spec"), texts);
    }
  }
  if (object.text_at("kind") == "StatefulSet" && object.int_at_or(0, "spec", "revisionHistoryLimit") < 0) {
    texts.add(
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended");
  }
}

// --- DaemonSet: the counter of template changes is stored in an annotation ---

int64_t template_generation(const Value& object) {
  const std::string_view text = object.text_at("metadata", "annotations", kTemplateGeneration);
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void set_template_generation(Arena& arena, Draft::Node object, int64_t number) {
  object.child("metadata").child("annotations").set(kTemplateGeneration, Value::string(arena, std::to_string(number)));
}

void default_daemon_set(Arena& arena, const types::Resource&, Draft::Node object) {
  if (object.value().text_at("metadata", "annotations", kTemplateGeneration).empty()) {
    set_template_generation(arena, object, 0);
  }
  Draft::Node spec = object.child("spec");
  {
    Draft::Node strategy = spec.child("updateStrategy");
    strategy.set_if_zero("type", Value::string("RollingUpdate"));
    if (strategy.value().text_at("type") == "RollingUpdate") {
      Draft::Node rolling = strategy.child("rollingUpdate");
      rolling.set_default("maxUnavailable", Value::integer(1));
      rolling.set_default("maxSurge", Value::integer(0));
    } else if (Draft::Node rolling = strategy.existing("rollingUpdate")) {
      // Not pointers inside kube-apiserver: absent becomes zero.
      for (const std::string_view key : {"maxUnavailable", "maxSurge"}) rolling.set_default(key, Value::integer(0));
    }
  }
  spec.set_default("revisionHistoryLimit", Value::integer(10));
  default_pod_template(arena, spec, "template");
}

void create_daemon_set(Context& context, Draft::Node object) {
  if (template_generation(object.value()) < 1) set_template_generation(context.arena, object, 1);
  drop_disabled_template_fields(object.child("spec"), "template", nullptr);
}

void update_daemon_set(Context& context, Draft::Node next, const Value& old) {
  drop_disabled_template_fields(next.child("spec"), "template", old.get("spec", "template"));
  const bool changed = !semantic_equal(type_named("core/v1.PodTemplateSpec"), next.value().get("spec", "template"),
                                       old.get("spec", "template"));
  set_template_generation(context.arena, next, template_generation(old) + (changed ? 1 : 0));
}

// Inside kube-apiserver the counter is part of the spec: a status update cannot change it.
void update_daemon_set_status(Context& context, Draft::Node next, const Value& old) {
  set_template_generation(context.arena, next, template_generation(old));
}

void validate_daemon_set(Context& context, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const Value& selector = sub(spec, "selector");
  const size_t before = errors.count();
  validate_label_selector(&selector, at.child("selector"), errors);
  const bool valid = errors.count() == before;
  const Value& pod_template = sub(spec, "template");
  const Path template_at = at.child("template");
  const Value* labels = pod_template.get("metadata", "labels");
  if (valid && !selects(&selector, labels)) {
    errors.invalid(template_at.child("metadata.labels"), shown_sorted(labels),
                   "`selector` does not match template `labels`");
  }
  if (selector.is_map() && is_empty(selector, "matchLabels") && is_empty(selector, "matchExpressions")) {
    errors.invalid(at.child("selector"), shown_selector(&selector), "empty selector is invalid for daemonset");
  }
  PodOptions options;
  options.allow_privileged = context.allow_privileged;
  validate_pod_template(pod_template, options, template_at, errors);
  validate_long_running(pod_template, "DaemonSet", template_at, errors);
  validate_non_negative(spec, "minReadySeconds", at, errors);
  const Value& strategy = sub(spec, "updateStrategy");
  const Path strategy_at = at.child("updateStrategy"), rolling_at = strategy_at.child("rollingUpdate");
  const std::string_view type = strategy.text_at("type");
  if (type == "RollingUpdate") {
    const Value& rolling = sub(strategy, "rollingUpdate");
    const Value &unavailable = sub(rolling, "maxUnavailable"), &surge = sub(rolling, "maxSurge");
    validate_int_or_percent(unavailable, rolling_at.child("maxUnavailable"), errors);
    validate_int_or_percent(surge, rolling_at.child("maxSurge"), errors);
    validate_at_most_100_percent(unavailable, rolling_at.child("maxUnavailable"), errors);
    validate_at_most_100_percent(surge, rolling_at.child("maxSurge"), errors);
    const bool has_unavailable = int_or_percent(unavailable) != 0, has_surge = int_or_percent(surge) != 0;
    if (has_unavailable && has_surge) {
      errors.invalid(rolling_at.child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero");
    } else if (!has_unavailable && !has_surge) {
      errors.required(rolling_at.child("maxUnavailable"), "cannot be 0 when maxSurge is 0");
    }
  } else if (type != "OnDelete") {
    errors.not_supported(strategy_at,
                         shown_internal(type_named("apps/v1.DaemonSetUpdateStrategy"), spec.find("updateStrategy")),
                         {"RollingUpdate", "OnDelete"});
  }
  validate_non_negative(spec, "revisionHistoryLimit", at, errors);
}

void validate_daemon_set_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_selector_unchanged(next, old, errors);
  validate_daemon_set(context, next, errors);
}

void validate_daemon_set_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_counters(
      sub(next, "status"),
      {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
       "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"},
      Path("status"), errors);
  validate_collisions(next, old, errors);
}

// --- ControllerRevision ---

void validate_revision(const Value& object, FieldErrors& errors) {
  if (object.int_at_or(0, "revision") < 0) {
    errors.invalid(Path("revision"), object.int_at_or(0, "revision"), kNegative);
  }
}

void validate_controller_revision(Context&, const Value& object, FieldErrors& errors) {
  validate_revision(object, errors);
  const Value& data = sub(object, "data");
  const bool raw = data.is_raw();
  const std::string_view text = raw ? data.raw_json() : std::string_view();
  if (data.is_null() || text == "null") {
    errors.required(Path("data"), "data is mandatory");
  } else if (raw ? !text.starts_with('{') : !data.is_map()) {
    errors.required(Path("data"), "data must be a valid JSON object");
  }
}

void validate_controller_revision_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_revision(next, errors);
  if (!equal(sub(next, "data"), sub(old, "data"))) errors.invalid(Path("data"), next.find("data"), kImmutable);
}

}  // namespace

const Hooks kStatefulSetHooks = {.name = name_is_dns_label,
                                 .generation = Generation::Spec,
                                 .defaults = default_stateful_set,
                                 .create = create_stateful_set,
                                 .update = update_stateful_set,
                                 .validate = validate_stateful_set,
                                 .validate_update = validate_stateful_set_update,
                                 .validate_status = validate_stateful_set_status,
                                 .warn = warn_set};

const Hooks kDaemonSetHooks = {.generation = Generation::Spec,
                               .defaults = default_daemon_set,
                               .create = create_daemon_set,
                               .update = update_daemon_set,
                               .update_status = update_daemon_set_status,
                               .validate = validate_daemon_set,
                               .validate_update = validate_daemon_set_update,
                               .validate_status = validate_daemon_set_status,
                               .warn = warn_set};

const Hooks kControllerRevisionHooks = {.update_checks = {.whole = 1, .compares_first = true},
                                        .validate = validate_controller_revision,
                                        .validate_update = validate_controller_revision_update};

}  // namespace holdfast::kinds
