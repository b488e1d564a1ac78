// Pod and PodTemplate: what a write may change.

#include <algorithm>
#include <unordered_map>

#include "base/api_error.h"
#include "base/hash.h"
#include "base/text.h"
#include "codec/json.h"
#include "kinds/all.h"
#include "kinds/difference.h"
#include "kinds/internal.h"
#include "kinds/ip.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"

namespace holdfast::kinds {
namespace {

const types::Type& spec_type() {
  static const types::Type& type = type_named("core/v1.PodSpec");
  return type;
}

// --- Create ---

Value condition(Arena& arena, std::string_view type, std::string_view status, std::string_view reason,
                std::string_view message, UnixTime now) {
  MapBuilder builder(arena);
  builder.add("type", Value::string(type));
  builder.add("status", Value::string(status));
  builder.add("lastProbeTime", Value::null());
  builder.add("lastTransitionTime", time_value(arena, now));
  if (!reason.empty()) builder.add("reason", Value::string(reason));
  if (!message.empty()) builder.add("message", Value::string(message));
  return builder.build();
}

// Adds the condition, or replaces the one of its type; keeps the transition time if the status is unchanged.
void set_condition(Context& context, Draft::Node status, std::string_view type, std::string_view value,
                   std::string_view reason, std::string_view message) {
  Value next = condition(context.arena, type, value, reason, message, context.now);
  std::vector<Draft::Node> conditions = status.list("conditions");
  for (Draft::Node& existing : conditions) {
    if (existing.value().text_at("type") != type) continue;
    if (existing.value().text_at("status") == value && is_set(existing.value(), "lastTransitionTime")) {
      next = with_member(context.arena, next, "lastTransitionTime", *existing.find("lastTransitionTime"));
    }
    existing.assign(next);
    return;
  }
  status.append("conditions", next);
}

// matchLabelKeys of a term: adds an expression to the term's selector for each of these labels that the pod has.
void merge_label_keys(Arena& arena, Draft::Node term, const Value* labels) {
  if (labels == nullptr || !is_set(term.value(), "labelSelector")) return;
  for (const auto& [list, op] :
       {std::pair<std::string_view, std::string_view>{"matchLabelKeys", "In"}, {"mismatchLabelKeys", "NotIn"}}) {
    for (const Value& key : term.value().items_at(list)) {
      const Value* value = labels->find(key.as_string());
      if (value == nullptr) continue;
      ListBuilder values(arena);
      values.add(*value);
      MapBuilder expression(arena);
      expression.add("key", key);
      expression.add("operator", Value::string(op));
      expression.add("values", values.build());
      term.child("labelSelector").append("matchExpressions", expression.build());
    }
  }
}

void merge_all_label_keys(Arena& arena, Draft::Node spec, const Value* labels) {
  if (Draft::Node affinity = spec.existing("affinity")) {
    for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
      Draft::Node terms = affinity.existing(kind);
      if (!terms) continue;
      for (Draft::Node weighted : terms.list("preferredDuringSchedulingIgnoredDuringExecution")) {
        merge_label_keys(arena, weighted.child("podAffinityTerm"), labels);
      }
      for (Draft::Node term : terms.list("requiredDuringSchedulingIgnoredDuringExecution")) {
        merge_label_keys(arena, term, labels);
      }
    }
  }
  for (Draft::Node constraint : spec.list("topologySpreadConstraints")) merge_label_keys(arena, constraint, labels);
}

// Copies the annotations for AppArmor to the containers' fields, and warns about those that do not match a field.
void copy_app_armor(Context& context, Draft::Node pod) {
  const std::span<const Member> annotations = pod.value().members_at("metadata", "annotations");
  if (std::none_of(annotations.begin(), annotations.end(),
                   [](const Member& annotation) { return annotation.key.starts_with(kAppArmorPrefix); })) {
    return;
  }
  if (pod.value().text_at("spec", "os", "name") == "windows") return;
  const Value pod_profile = sub(pod.value(), "spec", "securityContext", "appArmorProfile");
  const Value notes = sub(pod.value(), "metadata", "annotations");
  Draft::Node spec = pod.child("spec");
  for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (Draft::Node container : spec.list(list)) {
      if (is_set(sub(container.value(), "securityContext"), "appArmorProfile")) continue;
      const std::string key = std::string(kAppArmorPrefix) + std::string(container.value().text_at("name"));
      const Value* text = notes.find(key);
      if (text == nullptr) continue;
      const Value profile = app_armor_of_annotation(context.arena, text->as_string());
      if (!profile.is_null() && equal(profile, pod_profile)) continue;
      if (!profile.is_null()) container.child("securityContext").set("appArmorProfile", profile);
      context.early_warnings.push_back("metadata.annotations[" + key +
                                       "]: deprecated since v1.30; use the \"appArmorProfile\" field instead");
    }
  }
}

void create_pod(Context& context, Draft::Node pod) {
  MapBuilder status(context.arena);
  status.add("phase", Value::string("Pending"));
  // The only part of a sent status that is used (GetPodQOS in PrepareForCreate).
  const std::string_view sent = pod.value().text_at("status", "qosClass");
  status.add("qosClass", Value::string(sent.empty() ? qos_class(sub(pod.value(), "spec")) : sent));
  pod.set("status", status.build());
  drop_disabled_pod_fields(pod.child("spec"), nullptr);
  if (!is_empty(sub(pod.value(), "spec"), "schedulingGates")) {
    set_condition(context, pod.child("status"), "PodScheduled", "False", "SchedulingGated",
                  "Scheduling is blocked due to non-empty scheduling gates");
  }
  const Value labels = sub(pod.value(), "metadata", "labels");
  merge_all_label_keys(context.arena, pod.child("spec"), labels.is_null() ? nullptr : &labels);
  copy_app_armor(context, pod);
}

// --- Update ---

void update_pod(Context&, Draft::Node next, const Value& old) {
  drop_disabled_pod_fields(next.child("spec"), old.find("spec"));
}

// Drops fields whose feature gates are off in v1.36; those already in use are kept.
void drop_disabled_status_fields(Draft::Node status, const Value& before) {
  constexpr std::string_view kClaims = "nodeAllocatableResourceClaimStatuses";
  if (is_empty(before, kClaims)) status.remove(kClaims);
  constexpr std::string_view kLists[] = {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"};
  const auto has_images = [&](const Value& one) {
    for (const std::string_view list : kLists) {
      for (const Value& container : one.items_at(list)) {
        for (const Value& mount : container.items_at("volumeMounts")) {
          if (is_set(mount, "volumeStatus")) return true;
        }
      }
    }
    return false;
  };
  if (!has_images(status.value()) || has_images(before)) return;
  for (const std::string_view list : kLists) {
    for (Draft::Node container : status.list(list)) {
      for (Draft::Node mount : container.list("volumeMounts")) mount.remove("volumeStatus");
    }
  }
}

void update_pod_status(Context&, Draft::Node next, const Value& old) {
  Draft::Node status = next.child("status");
  const Value& before = sub(old, "status");
  drop_disabled_status_fields(status, before);
  if (status.value().text_at("qosClass").empty()) restore(status, before, "qosClass");
  if (status.value().int_at_or(0, "observedGeneration") == 0) restore(status, before, "observedGeneration");
  for (Draft::Node condition : status.list("conditions")) {
    if (condition.value().int_at_or(0, "observedGeneration") != 0) continue;
    for (const Value& known : before.items_at("conditions")) {
      if (known.text_at("type") != condition.value().text_at("type")) continue;
      restore(condition, known, "observedGeneration");
      break;
    }
  }
}

void keep_object_metadata(Draft::Node next, const Value& old) {
  Draft::Node metadata = next.child("metadata");
  for (const std::string_view key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    restore(metadata, sub(old, "metadata"), key);
  }
}

// The old containers with the resources of the new ones; the containers as sent if they are not the same ones, for the
// validation to reject.
Value take_resources(Arena& arena, const Value& next, const Value& old, std::string_view list) {
  const std::span<const Value> wanted = next.items_at(list), before = old.items_at(list);
  ListBuilder containers(arena);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].text_at("name") != before[i].text_at("name")) return sub(next, list);
    Value container = before[i];
    for (const std::string_view key : {"resources", "resizePolicy"}) {
      container = is_set(wanted[i], key) ? with_member(arena, container, key, *wanted[i].find(key))
                                         : without_member(arena, container, key);
    }
    containers.add(container);
  }
  return containers.build();
}

void update_pod_part(Context& context, Endpoint endpoint, Draft::Node next, const Value& old) {
  const Value sent = sub(next.value(), "spec");
  if (endpoint == Endpoint::EphemeralContainers) {
    restore(next, old, "spec");
    restore(next, old, "status");
    keep_object_metadata(next, old);
    Draft::Node spec = next.child("spec");
    spec.remove("ephemeralContainers");
    if (is_set(sent, "ephemeralContainers")) spec.set("ephemeralContainers", *sent.find("ephemeralContainers"));
    drop_disabled_pod_fields(spec, old.find("spec"));
    return;
  }
  // Resize. Added or removed containers are left for the validation to reject.
  const Value& before = sub(old, "spec");
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (sent.items_at(list).size() != before.items_at(list).size()) return;
  }
  const Value containers = take_resources(context.arena, sent, before, "containers");
  const Value init = take_resources(context.arena, sent, before, "initContainers");
  restore(next, old, "spec");
  restore(next, old, "status");
  keep_object_metadata(next, old);
  Draft::Node spec = next.child("spec");
  if (containers.count() > 0) spec.set("containers", containers);
  if (init.count() > 0) spec.set("initContainers", init);
  spec.remove("resources");
  if (is_set(sent, "resources")) spec.set("resources", *sent.find("resources"));
}

// --- Validation ---

// `old` is the previous pod on update, null on create.
void validate_pod_parts(Context& context, const Value& pod, const Value* old, FieldErrors& errors) {
  const Path at("spec"), metadata("metadata");
  const Value& spec = sub(pod, "spec");
  PodOptions options;
  options.is_pod = true;
  options.allow_privileged = context.allow_privileged;
  options.metadata = pod.find("metadata");
  validate_pod_annotations(sub(pod, "metadata"), spec, old == nullptr ? nullptr : old->find("metadata"),
                           metadata.child("annotations"), errors);
  validate_pod_spec(spec, options, at, errors);
  if (spec.text_at("serviceAccountName").empty()) {
    const std::span<const Value> volumes = spec.items_at("volumes");
    for (size_t i = 0; i < volumes.size(); ++i) {
      const Path volume = at.item("volumes", i), projected = volume.child("projected");
      const std::span<const Value> sources = volumes[i].items_at("projected", "sources");
      for (size_t j = 0; j < sources.size(); ++j) {
        if (!is_set(sources[j], "serviceAccountToken")) continue;
        const Path source = projected.item("sources", j);
        errors.forbidden(source.child("serviceAccountToken"),
                         "must not be specified when serviceAccountName is not set");
      }
    }
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    const std::span<const Value> containers = spec.items_at(list);
    for (size_t i = 0; i < containers.size(); ++i) validate_image_text(containers[i], at.item(list, i), errors);
  }
}

void validate_pod(Context& context, const Value& pod, FieldErrors& errors) {
  validate_pod_parts(context, pod, nullptr, errors);
  const Path at("spec");
  const Value& spec = sub(pod, "spec");
  if (!is_empty(spec, "ephemeralContainers")) {
    errors.forbidden(at.child("ephemeralContainers"), "cannot be set on create");
  }
  if (!spec.text_at("nodeName").empty() && !is_empty(spec, "schedulingGates")) {
    errors.forbidden(at.child("nodeName"), "cannot be set until all schedulingGates have been cleared");
  }
  validate_profile_annotations(sub(pod, "metadata"), spec, at, errors);
}

bool same_containers(const Value& next, const Value& old, std::string_view list, const Path& at, FieldErrors& errors) {
  const std::span<const Value> now = next.items_at(list), before = old.items_at(list);
  if (now.size() != before.size()) {
    errors.forbidden(at.child(list), "pod updates may not add or remove containers");
    return false;
  }
  for (size_t i = 0; i < now.size(); ++i) {
    const Path container = at.item(list, i);
    if (now[i].text_at("image").empty()) errors.required(container.child("image"));
    validate_image_text(now[i], container, errors);
  }
  return true;
}

void validate_added_tolerations(const Value& next, const Value& old, const Path& at, FieldErrors& errors) {
  Arena arena;
  const std::span<const Value> now = next.items_at("tolerations");
  std::unordered_multimap<uint64_t, Value> without_seconds;  // By hash.
  for (const Value& toleration : now) {
    const Value plain = without_member(arena, toleration, "tolerationSeconds");
    without_seconds.emplace(hash(plain), plain);
  }
  for (const Value& before : old.items_at("tolerations")) {
    const Value plain = without_member(arena, before, "tolerationSeconds");
    const auto [first, last] = without_seconds.equal_range(hash(plain));
    if (std::any_of(first, last, [&](const auto& other) { return equal(plain, other.second); })) continue;
    return errors.forbidden(at.child("tolerations"),
                            "existing toleration can not be modified except its tolerationSeconds");
  }
  validate_tolerations(now, at.child("tolerations"), errors);
}

void validate_removed_gates(const Value& next, const Value& old, const Path& at, FieldErrors& errors) {
  const std::span<const Value> now = next.items_at("schedulingGates"), before = old.items_at("schedulingGates");
  Names known;
  for (const Value& gate : before) known.push_back(gate.text_at("name"));
  for (size_t i = now.size(); i-- > 0;) {
    const std::string_view name = now[i].text_at("name");
    if (!known.add(name)) continue;  // Of several new gates with the same name the last is reported.
    const Path gate = at.item("schedulingGates", i);
    errors.forbidden(gate.child("name"),
                     "only deletion is allowed, but found new scheduling gate '" + std::string(name) + "'");
  }
}

// Whether a term keeps all it had, in the same place, and only adds to it. An empty term matches no node, and must stay
// empty.
bool only_adds(const Value& next, const Value& old) {
  bool was_empty = true, is_empty = true;
  for (const std::string_view list : {"matchExpressions", "matchFields"}) {
    const std::span<const Value> was = old.items_at(list), is = next.items_at(list);
    was_empty = was_empty && was.empty();
    is_empty = is_empty && is.empty();
    if (was.size() > is.size()) return false;
    if (!std::equal(was.begin(), was.end(), is.begin(), [](const Value& a, const Value& b) { return equal(a, b); })) {
      return false;
    }
  }
  return !was_empty || is_empty;
}

// While a pod is gated, its node selection may be narrowed.
void validate_narrowing(Draft::Node munged, const Value& old, const Path& at, FieldErrors& errors) {
  const Value &selector = sub(munged.value(), "nodeSelector"), &before = sub(old, "nodeSelector");
  if (before.is_map()) {
    for (const Member& label : before.members()) {
      const Value* now = selector.find(label.key);
      if (now != nullptr && equal(*now, label.value)) continue;
      errors.invalid(at.child("nodeSelector"), shown_sorted(&selector),
                     "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
      break;
    }
  }
  restore(munged, old, "nodeSelector");
  const Value& affinity = sub(munged.value(), "affinity", "nodeAffinity");
  const Value& old_affinity = sub(old, "affinity", "nodeAffinity");
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  const std::span<const Value> old_terms = old_affinity.items_at(kRequired, "nodeSelectorTerms");
  const std::span<const Value> terms = affinity.items_at(kRequired, "nodeSelectorTerms");
  if (!old_terms.empty()) {
    const Path terms_at("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    if (terms.size() != old_terms.size()) {
      const types::Type& type = type_named("core/v1.NodeSelector");
      errors.invalid(terms_at, shown_internal(type, sub(affinity, kRequired), "nodeSelectorTerms"),
                     "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    } else {
      for (size_t i = 0; i < terms.size(); ++i) {
        if (only_adds(terms[i], old_terms[i])) continue;
        errors.invalid(terms_at.index(i), shown_internal(type_named("core/v1.NodeSelectorTerm"), &terms[i]),
                       "only additions are allowed (no mutations or deletions)");
      }
    }
  }
  if (old_affinity.is_null()) {
    if (Draft::Node holder = munged.existing("affinity")) {
      holder.remove("nodeAffinity");
      if (holder.value().count() == 0 && !is_set(old, "affinity")) munged.remove("affinity");
    }
  } else {
    munged.child("affinity").set("nodeAffinity", old_affinity);
  }
}

void validate_pod_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_pod_parts(context, next, &old, errors);
  validate_pod_annotation_updates(next, old, errors);
  const Path at("spec");
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  if (!same_containers(spec, before, "containers", at, errors)) return;
  if (!same_containers(spec, before, "initContainers", at, errors)) return;
  const Path deadline = at.child("activeDeadlineSeconds");
  if (is_set(spec, "activeDeadlineSeconds")) {
    const int64_t seconds = spec.int_at_or(0, "activeDeadlineSeconds");
    if (seconds < 0 || seconds > INT32_MAX) return errors.invalid(deadline, seconds, range_message(0, INT32_MAX));
    if (is_set(before, "activeDeadlineSeconds") && before.int_at_or(0, "activeDeadlineSeconds") < seconds) {
      return errors.invalid(deadline, seconds, "must be less than or equal to previous value");
    }
  } else if (is_set(before, "activeDeadlineSeconds")) {
    errors.invalid(deadline, Value::null(), "must not update from a positive integer to nil value");
  }
  validate_added_tolerations(spec, before, at, errors);
  validate_removed_gates(spec, before, at, errors);
  if (semantic_equal(spec_type(), &spec, &before)) return;

  // Restores what may change; any remaining difference is not allowed.
  Draft draft(context.arena, spec);
  Draft::Node munged = draft.root();
  for (const std::string_view list : {"containers", "initContainers"}) {
    const std::span<const Value> was = before.items_at(list);
    size_t i = 0;
    for (Draft::Node container : munged.list(list)) restore(container, was[i++], "image");
  }
  for (const std::string_view key : {"activeDeadlineSeconds", "schedulingGates", "tolerations"}) {
    restore(munged, before, key);
  }
  if (!is_empty(before, "schedulingGates")) validate_narrowing(munged, before, at, errors);
  const Value result = draft.value();
  if (semantic_equal(spec_type(), &result, &before)) return;
  errors.forbidden(at,
                   "pod updates may not change fields other than `spec.containers[*].image`,"
                   "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
                   "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                   "previously negative)\n" +
                       difference(spec_type(), before, result));
}

bool removed_resources(const Value& next, const Value& old, std::string_view list) {
  for (const Member& amount : old.members_at("resources", list)) {
    if (next.get("resources", list, amount.key) == nullptr) return true;
  }
  return false;
}

// Restores what a resize may change: cpu and memory of `holder`, a container or the spec of a pod.
void mask_resources(Draft::Node holder, const Value& old) {
  if (!is_set(holder.value(), "resources") && is_empty(old, "resources")) return;
  Draft::Node resources = holder.child("resources");
  for (const std::string_view list : {"requests", "limits"}) {
    for (const std::string_view name : {"cpu", "memory"}) {
      if (const Value* earlier = old.get("resources", list, name); earlier != nullptr) {
        resources.child(list).set(name, *earlier);
      } else if (resources.value().get(list, name) != nullptr) {
        resources.child(list).remove(name);
      }
    }
    remove_if_empty(resources, list);
  }
}

// The pod-level resources.
void validate_pod_level_resize(Draft::Node masked, const Value& spec, const Value& before, const Path& at,
                               FieldErrors& errors) {
  const auto has_resources = [](const Value& one) {
    return !is_empty(sub(one, "resources"), "requests") || !is_empty(sub(one, "resources"), "limits");
  };
  if (!has_resources(spec) && !has_resources(before)) return;
  const Path here = at.child("resources");
  if (is_set(before, "resources") && !is_set(spec, "resources")) {
    return errors.forbidden(here, "pod-level resources cannot be removed");
  }
  for (const std::string_view list : {"requests", "limits"}) {
    if (removed_resources(spec, before, list)) {
      errors.forbidden(here.child(list), "pod-level resource " + std::string(list) + " cannot be removed");
    }
  }
  mask_resources(masked, before);
  if (!is_set(before, "resources") && masked.child("resources").value().count() == 0) masked.remove("resources");
  const types::Type& type = member_type(spec_type(), "resources");
  if (!semantic_equal(type, masked.value().find("resources"), before.find("resources"))) {
    errors.forbidden(at, "only cpu and memory resources are mutable at pod-level");
  }
}

bool is_same_order(const Value& spec, const Value& before, const Path& at, FieldErrors& errors) {
  const size_t earlier = errors.count();
  for (const std::string_view list : {"containers", "initContainers"}) {
    const std::span<const Value> now = spec.items_at(list), was = before.items_at(list);
    if (now.size() != was.size()) {
      errors.forbidden(at.child(list), std::string(list) + " may not be added or removed on resize");
      continue;
    }
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i].text_at("name") == was[i].text_at("name")) continue;
      const Path container = at.item(list, i);
      errors.forbidden(container.child("name"), std::string(list) + " may not be renamed or reordered on resize");
    }
  }
  return errors.count() == earlier;
}

void validate_container_resizes(Draft::Node masked, const Value& before, const Path& at, FieldErrors& errors) {
  const types::Type& type = type_named("core/v1.Container");
  for (const std::string_view list : {"containers", "initContainers"}) {
    const std::span<const Value> was = before.items_at(list);
    size_t i = 0;
    for (Draft::Node container : masked.list(list)) {
      const Value& own = was[i];
      const Path here = at.item(list, i++);
      const Value sent = container.value();
      mask_resources(container, own);
      if (Draft::Node resources = container.existing("resources")) resources.remove("claims");
      const bool same = semantic_equal(type, &container.value(), &own);
      if (list == "containers") {
        if (!same) errors.forbidden(at, "only cpu and memory resources are mutable");
        continue;
      }
      if (!same) errors.forbidden(here, "only cpu and memory resources for init or sidecar containers are mutable");
      if (sent.text_at("restartPolicy") == "Always" || semantic_equal(type, &sent, &own)) continue;
      for (const Value& policy : sent.items_at("resizePolicy")) {
        if (policy.text_at("restartPolicy") != "RestartContainer") continue;
        errors.forbidden(here,
                         "non-sidecar init containers with a resize policy of RestartContainer cannot be resized");
      }
    }
  }
}

// A node that supports resizing reports the resources of running containers.
bool node_resizes(const Value& pod) {
  for (const Value& status : pod.items_at("status", "containerStatuses")) {
    if (is_set(sub(status, "state"), "running")) return is_set(status, "resources");
  }
  return true;
}

void validate_resize(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  if (old.get("metadata", "annotations", kMirrorPod) != nullptr) {
    return errors.forbidden(Path("[]"), "static pods cannot be resized");
  }
  if (old.text_at("spec", "os", "name") == "windows") {
    return errors.forbidden(Path("[]"), "windows pods cannot be resized");
  }
  validate_pod_parts(context, next, &old, errors);
  const Path at("spec");
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  const std::string_view known = old.text_at("status", "qosClass");
  if ((known.empty() ? qos_class(before) : known) != qos_class(spec)) {
    errors.invalid(at, next.text_at("status", "qosClass"), "Pod QOS Class may not change as a result of resizing");
  }
  if (!node_resizes(old)) errors.forbidden(at, "Pod running on node without support for resize");
  Draft draft(context.arena, spec);
  validate_pod_level_resize(draft.root(), spec, before, at, errors);
  if (!old.items_at("status", "nodeAllocatableResourceClaimStatuses").empty()) {
    errors.forbidden(at, "pods with node allocatable resource claims cannot be resized");
  }
  if (!is_same_order(spec, before, at, errors)) return;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const std::span<const Value> now = spec.items_at(list), was = before.items_at(list);
    for (size_t i = 0; i < now.size(); ++i) {
      const Path container = at.item(list, i), resources = container.child("resources");
      for (const std::string_view amounts : {"requests", "limits"}) {
        if (!removed_resources(now[i], was[i], amounts)) continue;
        errors.forbidden(resources.child(amounts), "resource " + std::string(amounts) + " cannot be removed");
      }
    }
  }
  validate_container_resizes(draft.root(), before, at, errors);
  if (!errors.empty()) return;
  const Value result = draft.value();
  if (!semantic_equal(spec_type(), &result, &before)) {
    errors.forbidden(at, "only cpu and memory resources are mutable");
  }
}

void validate_pod_part(Context& context, Endpoint endpoint, const Value& next, const Value& old, FieldErrors& errors) {
  if (endpoint == Endpoint::Resize) return validate_resize(context, next, old, errors);
  if (old.get("metadata", "annotations", kMirrorPod) != nullptr) {
    return errors.forbidden(Path("[]"), "static pods do not support ephemeral containers");
  }
  validate_pod_parts(context, next, &old, errors);
  validate_pod_annotation_updates(next, old, errors);
  const Path at("spec.ephemeralContainers");
  const types::Type& type = type_named("core/v1.EphemeralContainer");
  std::unordered_map<std::string_view, const Value*, KeyHash> now;  // The last one of each name.
  for (const Value& container : next.items_at("spec", "ephemeralContainers")) {
    now.insert_or_assign(container.text_at("name"), &container);
  }
  for (const Value& before : old.items_at("spec", "ephemeralContainers")) {
    const std::string name = go_quote(before.text_at("name"));
    const auto found = now.find(before.text_at("name"));
    if (found == now.end()) {
      errors.forbidden(at, "existing ephemeral containers " + name + " may not be removed\n");
    } else if (!semantic_equal(type, &before, found->second)) {
      errors.forbidden(at, "existing ephemeral containers " + name + " may not be changed\n" +
                               difference(type, before, *found->second));
    }
  }
}

void warn_pod_status(const Value& pod, Warnings& texts) {
  const Path at("status");
  for (const std::string_view list : {"podIPs", "hostIPs"}) {
    const std::span<const Value> addresses = pod.items_at("status", list);
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Path here = at.item(list, i);
      warn_about_ip(addresses[i].text_at("ip"), here.child("ip"), texts);
    }
  }
}

void warn_pod(Context&, const Value& pod, const Value* old, Warnings& texts) {
  if (old != nullptr) return;
  warn_about_name(pod, old, "this is used in the Pod's hostname", texts);
  const Path spec("spec"), metadata("metadata");
  warn_about_pod(sub(pod, "spec"), pod.find("metadata"), spec, metadata, texts);
}

// --- PodTemplate ---

void default_pod_template_kind(Arena& arena, const types::Resource&, Draft::Node object) {
  default_pod_template(arena, object, "template");
}
void create_pod_template(Context&, Draft::Node object) { drop_disabled_template_fields(object, "template", nullptr); }
void update_pod_template(Context&, Draft::Node next, const Value& old) {
  drop_disabled_template_fields(next, "template", old.find("template"));
}
void validate_pod_template_kind(Context& context, const Value& object, FieldErrors& errors) {
  PodOptions options;
  options.allow_privileged = context.allow_privileged;
  validate_pod_template(sub(object, "template"), options, Path("template"), errors);
}
void warn_pod_template(Context&, const Value& object, const Value* old, Warnings& texts) {
  const auto generation = [](const Value& one) { return one.int_at_or(0, "metadata", "generation"); };
  if (old != nullptr && generation(object) == generation(*old)) return;
  warn_about_pod_template(sub(object, "template"), Path("template"), texts);
}

}  // namespace

std::string_view qos_class(const Value& spec) {
  bool any = false, guaranteed = true;
  Quantity requests[2], limits[2];
  constexpr std::string_view kNames[] = {"cpu", "memory"};
  const auto add = [&](const Value& holder) {
    size_t limited = 0;
    for (size_t i = 0; i < 2; ++i) {
      const Quantity request = quantity_of(holder.get("resources", "requests", kNames[i]));
      const Quantity limit = quantity_of(holder.get("resources", "limits", kNames[i]));
      if (request.sign() > 0) {
        any = true;
        requests[i] = requests[i] + request;
      }
      if (limit.sign() > 0) {
        any = true;
        ++limited;
        limits[i] = limits[i] + limit;
      }
    }
    guaranteed = guaranteed && limited == 2;
  };
  if (is_set(spec, "resources")) {
    add(spec);
  } else {
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Value& container : spec.items_at(list)) add(container);
    }
  }
  if (!any) return "BestEffort";
  for (size_t i = 0; i < 2; ++i) guaranteed = guaranteed && requests[i] == limits[i];
  return guaranteed ? "Guaranteed" : "Burstable";
}

void drop_disabled_pod_fields(Draft::Node spec, const Value* old_spec) {
  const Value nothing;
  const Value& old = old_spec == nullptr ? nothing : *old_spec;
  if (is_set(spec.value(), "schedulingGroup") && !is_set(old, "schedulingGroup")) spec.remove("schedulingGroup");
  const auto any = [](const Value& holder, std::string_view list, auto matches) {
    const std::span<const Value> items = holder.items_at(list);
    return std::any_of(items.begin(), items.end(), matches);
  };
  const auto stops = [](const Value& container) { return is_set(sub(container, "lifecycle"), "stopSignal"); };
  bool used = false, wanted = false;
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    used = used || any(old, list, stops);
    wanted = wanted || any(spec.value(), list, stops);
  }
  if (wanted && !used) {
    for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
      for (Draft::Node container : spec.list(list)) {
        Draft::Node lifecycle = container.existing("lifecycle");
        if (!lifecycle || !lifecycle.has("stopSignal")) continue;
        lifecycle.remove("stopSignal");
        // A lifecycle without other members counts as absent.
        if (lifecycle.value().count() == 0) container.remove("lifecycle");
      }
    }
  }
  for (const std::string_view source : {"clusterTrustBundle", "podCertificate"}) {
    const auto projects = [&](const Value& volume) {
      for (const Value& one : volume.items_at("projected", "sources")) {
        if (is_set(one, source)) return true;
      }
      return false;
    };
    if (!any(spec.value(), "volumes", projects) || any(old, "volumes", projects)) continue;
    for (Draft::Node volume : spec.list("volumes")) {
      if (!projects(volume.value())) continue;
      for (Draft::Node one : volume.child("projected").list("sources")) one.remove(source);
    }
  }
}

void drop_disabled_template_fields(Draft::Node parent, std::string_view key, const Value* old_template) {
  Draft::Node pod_template = parent.existing(key);
  if (!pod_template) return;
  drop_disabled_pod_fields(pod_template.child("spec"), old_template == nullptr ? nullptr : old_template->find("spec"));
}

Result<Unit> bind_pod(Context& context, Draft::Node pod, const Value& binding) {
  FieldErrors wrong;
  const std::string_view kind = binding.text_at("target", "kind"), node = binding.text_at("target", "name");
  if (!kind.empty() && kind != "Node") wrong.not_supported(Path("target.kind"), kind, {"Node", "<empty>"});
  if (node.empty()) wrong.required(Path("target.name"));
  if (!wrong.empty()) return untyped(aggregate_text(wrong.all()));
  const std::string name(pod.value().text_at("metadata", "name"));
  const auto refuse = [&](std::string_view why) {
    return conflict(GroupResource{"", "pods/binding"}, name, "pod " + name + std::string(why));
  };
  if (pod.value().get("metadata", "deletionTimestamp") != nullptr) {
    return refuse(" is being deleted, cannot be assigned to a host");
  }
  const std::string_view assigned = pod.value().text_at("spec", "nodeName");
  if (!assigned.empty()) return refuse(" is already assigned to node " + go_quote(assigned));
  if (!is_empty(sub(pod.value(), "spec"), "schedulingGates")) return refuse(" has non-empty .spec.schedulingGates");
  pod.child("spec").set("nodeName", Value::string(context.arena, node));
  for (const std::string_view key : {"annotations", "labels"}) {
    for (const Member& entry : binding.members_at("metadata", key)) {
      pod.child("metadata").child(key).set(entry.key, entry.value);
    }
  }
  Draft::Node status = pod.child("status");
  status.remove("nominatedNodeName");
  set_condition(context, status, "PodScheduled", "True", {}, {});
  return Unit{};
}

const Hooks kPodHooks = {.generation = Generation::Spec,
                         .status_metadata = StatusMetadata::KeepOwners,
                         .update_checks = {.whole = 1, .compares_first = true},
                         .defaults = default_pod,
                         .create = create_pod,
                         .update = update_pod,
                         .update_status = update_pod_status,
                         .update_other = update_pod_part,
                         .validate = validate_pod,
                         .validate_update = validate_pod_update,
                         .validate_status = validate_pod_status,
                         .validate_other = validate_pod_part,
                         .warn = warn_pod,
                         .warn_status = warn_pod_status};

const Hooks kPodTemplateHooks = {.generation = Generation::Template,
                                 .defaults = default_pod_template_kind,
                                 .create = create_pod_template,
                                 .update = update_pod_template,
                                 .validate = validate_pod_template_kind,
                                 .warn = warn_pod_template};

}  // namespace holdfast::kinds
