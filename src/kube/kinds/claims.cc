// PersistentVolume and PersistentVolumeClaim.

#include <algorithm>

#include "base/strings.h"
#include "codec/json.h"
#include "kinds/all.h"
#include "kinds/difference.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kClassAnnotation = "volume.beta.kubernetes.io/storage-class";

void validate_access_modes(const Value& spec, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kModes[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"};
  bool once = false, other = false;
  for (const Value& mode : spec.items_at("accessModes")) {
    const std::string_view text = mode.as_string();
    if (!contains(kModes, text)) errors.not_supported(at.child("accessModes"), text, kModes);
    if (text == "ReadWriteOncePod") {
      once = true;
    } else if (contains(kModes, text)) {
      other = true;
    }
  }
  if (once && other) {
    errors.forbidden(at.child("accessModes"), "may not use ReadWriteOncePod with other access modes");
  }
}

void validate_class(const Value& spec, std::string_view key, const Path& at, FieldErrors& errors) {
  const std::string_view name = spec.text_at(key);
  if (!name.empty()) errors.invalid_each(at.child(key), name, dns_subdomain_errors(name));
}

// --- PersistentVolumeClaim ---

void default_claim(Arena& arena, const types::Resource&, Draft::Node object) {
  object.child("status").set_if_zero("phase", Value::string("Pending"));
  Draft::Node spec = object.child("spec");
  spec.set_default("volumeMode", Value::string("Filesystem"));
  default_resources(arena, spec);
  Draft::Node status = object.child("status");
  default_resource_list(arena, status, "capacity");
  default_resource_list(arena, status, "allocatedResources");
}

bool same_source(const Value& a, const Value& b) {
  for (const std::string_view key : {"apiGroup", "kind", "name"}) {
    if (!equal(sub(a, key), sub(b, key))) return false;
  }
  return true;
}

// dataSource and dataSourceRef mirror each other unless the latter refers to another namespace. `before` is the old
// spec on update; fields already used there are kept.
void normalize_sources(Draft::Node spec, const Value& before) {
  const bool referred = is_set(before, "dataSourceRef");
  // The gate for references to other namespaces is off.
  if (!referred && !spec.value().text_at("dataSourceRef", "namespace").empty()) spec.remove("dataSourceRef");
  if (!referred && !is_set(before, "dataSource") && is_set(spec.value(), "dataSource") &&
      !is_set(spec.value(), "dataSourceRef")) {
    const Value& source = sub(spec.value(), "dataSource");
    const std::string_view group = source.text_at("apiGroup"), kind = source.text_at("kind");
    const bool known = (group.empty() && kind == "PersistentVolumeClaim") ||
                       (group == "snapshot.storage.k8s.io" && kind == "VolumeSnapshot");
    if (!known) spec.remove("dataSource");
  }
  const bool source = is_set(spec.value(), "dataSource"), reference = is_set(spec.value(), "dataSourceRef");
  if (source && !reference) {
    spec.set("dataSourceRef", *spec.find("dataSource"));
  } else if (!source && reference && spec.value().text_at("dataSourceRef", "namespace").empty()) {
    spec.set("dataSource", *spec.find("dataSourceRef"));
    spec.child("dataSource").remove("namespace");
  }
}

void create_claim(Context&, Draft::Node object) { normalize_sources(object.child("spec"), Value::null()); }

void update_claim(Context&, Draft::Node next, const Value& old) {
  normalize_sources(next.child("spec"), sub(old, "spec"));
}

void validate_source(const Value& spec, std::string_view key, bool any_group, const Path& at, FieldErrors& errors) {
  if (!is_set(spec, key)) return;
  const Value& source = sub(spec, key);
  const Path here = at.child(key);
  const std::string_view group = source.text_at("apiGroup"), kind = source.text_at("kind");
  const std::string_view space = source.text_at("namespace");
  if (source.text_at("name").empty()) errors.required(here.child("name"));
  if (kind.empty()) errors.required(here.child("kind"));
  if (group.empty() && kind != "PersistentVolumeClaim") {
    errors.invalid(here, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  if (!group.empty() && !any_group) errors.invalid_each(here.child("apiGroup"), group, dns_subdomain_errors(group));
  if (!space.empty()) errors.invalid_each(here.child("namespace"), space, dns_label_errors(space));
}

void validate_claim(Context&, const Value& object, FieldErrors& errors) {
  validate_claim_spec(sub(object, "spec"), Path("spec"), errors);
}

void validate_claim_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  validate_claim_spec(spec, Path("spec"), errors, &before);
  Draft now_draft(context.arena, spec), old_draft(context.arena, before);
  Draft::Node now = now_draft.root(), was = old_draft.root();
  if (before.text_at("volumeName").empty()) restore(was, spec, "volumeName");

  const std::string_view note = next.text_at("metadata", "annotations", kClassAnnotation);
  const std::string_view old_note = old.text_at("metadata", "annotations", kClassAnnotation);
  const bool had_note = old.get("metadata", "annotations", kClassAnnotation) != nullptr;
  const bool has_note = next.get("metadata", "annotations", kClassAnnotation) != nullptr;
  const bool had_class = is_set(before, "storageClassName"), has_class = is_set(spec, "storageClassName");
  const std::string_view wanted = spec.text_at("storageClassName");
  if (had_note && !had_class && has_class && wanted == old_note && (!has_note || note == old_note)) {
    now.remove("storageClassName");
  } else {
    if (note != old_note) {
      const Path metadata("metadata"), notes = metadata.child("annotations");
      errors.invalid(notes.child(kClassAnnotation), note, kImmutable);
    }
    if (has_class && !had_class && (!had_note || wanted == old_note)) restore(now, before, "storageClassName");
  }
  const bool bound = next.text_at("status", "phase") == "Bound";
  if (bound) {
    if (is_set(sub(spec, "resources"), "requests")) {
      Draft::Node requests = now.child("resources").child("requests");
      restore(requests, sub(before, "resources", "requests"), "storage");
    }
    restore(now, before, "volumeAttributesClassName");
  }
  const Value now_value = now_draft.value(), was_value = old_draft.value();
  if (!semantic_equal(type_named("core/v1.PersistentVolumeClaimSpec"), &now_value, &was_value)) {
    errors.forbidden(Path("spec"),
                     "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
                     "bound claims\n" +
                         difference(type_named("core/v1.PersistentVolumeClaimSpec"), was_value, now_value));
  }
  const Quantity new_size = quantity_of(spec.get("resources", "requests", "storage"));
  const Quantity old_size = quantity_of(before.get("resources", "requests", "storage"));
  if (new_size < old_size && new_size <= quantity_of(old.get("status", "capacity", "storage"))) {
    errors.forbidden(Path("spec.resources.requests.storage"), "field can not be less than status.capacity");
  }
  if (spec.text_at("volumeMode") != before.text_at("volumeMode")) {
    errors.invalid(Path("volumeMode"), spec.find("volumeMode"), kImmutable);
  }
  const Value &attributes = sub(spec, "volumeAttributesClassName"),
              &old_attributes = sub(before, "volumeAttributesClassName");
  if (!equal(attributes, old_attributes) && is_set(sub(old, "status"), "currentVolumeAttributesClassName")) {
    const Path at("spec.volumeAttributesClassName");
    if (attributes.is_null()) {
      errors.forbidden(at, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil");
    } else if (attributes.count() == 0) {
      errors.forbidden(at,
                       "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil");
    }
  }
}

void validate_amount(const Value& amount, const Path& at, FieldErrors& errors) {
  const int64_t value = quantity_of(&amount).value();
  if (value < 0) errors.invalid(at, value, "must be a valid resource quantity");
}

// Allowed are storage, and resources that are not Kubernetes' own.
void validate_claim_resource(std::string_view name, const Path& at, FieldErrors& errors) {
  const Messages messages = qualified_name_errors(name);
  if (!messages.empty()) return errors.invalid_each(at, name, messages);
  const bool native = name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
  if (native && name != "storage") errors.not_supported(at, name, {"storage"});
}

void validate_claim_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  if (is_empty(sub(next, "spec"), "accessModes")) errors.required(Path("Spec.accessModes"));
  const Path at("status"), capacity = at.child("capacity"), resizes = at.child("allocatedResourceStatuses"),
                           allocated = at.child("allocatedResources");
  for (const Member& amount : next.members_at("status", "capacity")) {
    validate_amount(amount.value, capacity.key(amount.key), errors);
  }
  for (const Member& resize : next.members_at("status", "allocatedResourceStatuses")) {
    constexpr std::string_view kStates[] = {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                                            "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"};
    validate_claim_resource(resize.key, resizes, errors);
    if (!contains(kStates, resize.value.as_string())) errors.not_supported(resizes, resize.key, kStates);
  }
  for (const Member& amount : next.members_at("status", "allocatedResources")) {
    const size_t before = errors.count();
    validate_claim_resource(amount.key, allocated, errors);
    if (errors.count() == before) validate_amount(amount.value, allocated.key(amount.key), errors);
  }
}

// --- PersistentVolume ---

void default_volume(Arena& arena, const types::Resource&, Draft::Node object) {
  object.child("status").set_if_zero("phase", Value::string("Pending"));
  Draft::Node spec = object.child("spec");
  spec.set_if_zero("persistentVolumeReclaimPolicy", Value::string("Retain"));
  spec.set_default("volumeMode", Value::string("Filesystem"));
  default_volume_spec(arena, spec);
}

void create_volume(Context& context, Draft::Node object) {
  Draft::Node status = object.child("status");
  status.set("phase", Value::string("Pending"));
  status.set("lastPhaseTransitionTime", time_value(context.arena, context.now));
}

void update_volume_status(Context& context, Draft::Node next, const Value& old) {
  Draft::Node status = next.child("status");
  const Value& before = sub(old, "status");
  const bool moved = status.value().text_at("phase") != before.text_at("phase");
  const Value& time = sub(status.value(), "lastPhaseTransitionTime");
  const bool told = !time.is_null() && !equal(time, sub(before, "lastPhaseTransitionTime"));
  if (moved && !told) {
    status.set("lastPhaseTransitionTime", time_value(context.arena, context.now));
  } else if (!moved && !is_set(status.value(), "lastPhaseTransitionTime")) {
    restore(status, before, "lastPhaseTransitionTime");
  }
}

constexpr std::string_view kSources[] = {"hostPath",
                                         "gcePersistentDisk",
                                         "awsElasticBlockStore",
                                         "glusterfs",
                                         "flocker",
                                         "nfs",
                                         "rbd",
                                         "quobyte",
                                         "cephfs",
                                         "iscsi",
                                         "cinder",
                                         "fc",
                                         "flexVolume",
                                         "azureFile",
                                         "vsphereVolume",
                                         "photonPersistentDisk",
                                         "portworxVolume",
                                         "azureDisk",
                                         "scaleIO",
                                         "local",
                                         "storageos",
                                         "csi"};

// A secret passed to the driver of a volume.
void validate_secret(const Value& source, std::string_view key, const Path& at, FieldErrors& errors) {
  if (!is_set(source, key)) return;
  const Path here = at.child(key);
  const std::string_view name = source.text_at(key, "name"), space = source.text_at(key, "namespace");
  errors.require_valid(here.child("name"), name, dns_subdomain_errors);
  errors.require_valid(here.child("namespace"), space, dns_label_errors);
}

void validate_source_of_volume(const Value& spec, std::string_view key, std::string_view volume, const Path& at,
                               FieldErrors& errors) {
  const Value& source = sub(spec, key);
  if (key == "local") {
    const std::string_view path = source.text_at("path");
    if (path.empty()) {
      errors.required(at.child("path"));
    } else if (has_parent_segment(path)) {
      errors.invalid(at.child("path"), path, "must not contain '..'");
    }
  } else if (key == "csi") {
    validate_driver_name(source.text_at("driver"), at.child("driver"), errors);
    if (is_empty(source, "volumeHandle")) errors.required(at.child("volumeHandle"));
    for (const std::string_view secret :
         {"controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"}) {
      validate_secret(source, secret, at, errors);
    }
  } else {
    validate_volume_source(source, key, SourceUse::PersistentVolume, volume, at, errors);
  }
}

// "/", and paths that lead back to it: "//", "/a/..".
bool is_root(std::string_view path) {
  if (!path.starts_with('/')) return false;
  size_t depth = 0;
  for (const std::string_view step : split(path, '/')) {
    if (step.empty() || step == ".") continue;
    if (step != "..") {
      ++depth;
    } else if (depth > 0) {
      --depth;
    }
  }
  return depth == 0;
}

void validate_capacity(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path capacity = at.child("capacity");
  const std::span<const Member> amounts = spec.members_at("capacity");
  if (amounts.empty()) errors.required(capacity);
  if (spec.get("capacity", "storage") == nullptr || amounts.size() > 1) {
    errors.not_supported(capacity, shown_sorted(spec.find("capacity")), {"storage"});
  }
  for (const Member& amount : amounts) {
    validate_amount(amount.value, capacity.key(amount.key), errors);
    if (quantity_of(&amount.value).sign() <= 0) {
      errors.invalid(capacity.key(amount.key), amount.value, kNotPositive);
    }
  }
}

void validate_volume_affinity(const Value& spec, const Path& at, FieldErrors& errors) {
  const Path affinity = at.child("nodeAffinity");
  if (const Value* required = spec.get("nodeAffinity", "required"); required != nullptr) {
    validate_node_selector(*required, affinity.child("required"), errors);
  } else {
    errors.required(affinity.child("required"), "must specify required node constraints");
  }
}

void validate_attributes_class_name(const Value& spec, const Path& at, FieldErrors& errors) {
  if (!is_set(spec, "volumeAttributesClassName")) return;
  if (spec.text_at("volumeAttributesClassName").empty()) {
    errors.required(at.child("volumeAttributesClassName"), "an empty string is disallowed");
  } else {
    validate_class(spec, "volumeAttributesClassName", at, errors);
  }
  if (!is_set(spec, "csi")) {
    errors.required(at.child("csi"), "has to be specified when using volumeAttributesClassName");
  }
}

// Sources that honour the older mount options.
constexpr std::string_view kMountable[] = {"gcePersistentDisk",
                                           "awsElasticBlockStore",
                                           "glusterfs",
                                           "nfs",
                                           "rbd",
                                           "quobyte",
                                           "iscsi",
                                           "cinder",
                                           "cephfs",
                                           "azureFile",
                                           "vsphereVolume",
                                           "azureDisk",
                                           "photonPersistentDisk"};

void validate_volume(Context&, const Value& object, FieldErrors& errors) {
  const Value& spec = sub(object, "spec");
  validate_volume_spec(spec, SpecUse::Own, object.text_at("metadata", "name"), Path("spec"), errors);
  const bool mountable = std::any_of(std::begin(kMountable), std::end(kMountable),
                                     [&](std::string_view source) { return is_set(spec, source); });
  constexpr std::string_view kMountOptions = "volume.beta.kubernetes.io/mount-options";
  if (!mountable && sub(object, "metadata", "annotations").has(kMountOptions)) {
    errors.forbidden(Path("metadata").child("annotations").child(kMountOptions),
                     "may not specify mount options for this volume type");
  }
}

// The affinity is immutable, except that node labels may change to their current names.
bool is_same_affinity(Arena& arena, const Value& spec, const Value& before) {
  Draft draft(arena, before);
  const std::span<const Value> now = spec.items_at("nodeAffinity", "required", "nodeSelectorTerms");
  const std::span<const Value> was = before.items_at("nodeAffinity", "required", "nodeSelectorTerms");
  for (size_t i = 0; i < std::min(now.size(), was.size()); ++i) {
    for (const std::string_view list : {"matchExpressions", "matchFields"}) {
      const std::span<const Value> next = now[i].items_at(list), earlier = was[i].items_at(list);
      for (size_t j = 0; j < std::min(next.size(), earlier.size()); ++j) {
        const std::string_view label = current_label(earlier[j].text_at("key"));
        if (label.empty() || next[j].text_at("key") != label) continue;
        draft.root()
            .child("nodeAffinity")
            .child("required")
            .list("nodeSelectorTerms")[i]
            .list(list)[j]
            .set("key", next[j].get("key") == nullptr ? Value::null() : *next[j].get("key"));
      }
    }
  }
  const types::Type& type = type_named("core/v1.VolumeNodeAffinity");
  const Value renamed = draft.value();
  return semantic_equal(type, spec.find("nodeAffinity"), renamed.find("nodeAffinity"));
}

void validate_volume_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  validate_volume(context, next, errors);
  // kube-apiserver validates twice, and reports every error twice.
  validate_volume_spec(spec, SpecUse::Own, next.text_at("metadata", "name"), Path("spec"), errors);
  MapBuilder now(context.arena), was(context.arena);
  for (const std::string_view key : kSources) {
    Value source = sub(spec, key);
    const Value& earlier = sub(before, key);
    // A secret for expanding the volume may be added later.
    if (key == "csi" && earlier.is_map() && !is_set(earlier, "controllerExpandSecretRef") && source.is_map()) {
      source = without_member(context.arena, source, "controllerExpandSecretRef");
    }
    if (!source.is_null()) now.add(key, source);
    if (!earlier.is_null()) was.add(key, earlier);
  }
  const Value now_sources = now.build(), old_sources = was.build();
  if (!equal(now_sources, old_sources)) {
    errors.forbidden(Path("spec.persistentvolumesource"),
                     "spec.persistentvolumesource is immutable after creation\n" +
                         difference(type_named("core/v1.PersistentVolumeSource"), old_sources, now_sources));
  }
  if (spec.text_at("volumeMode") != before.text_at("volumeMode")) {
    errors.invalid(Path("volumeMode"), spec.find("volumeMode"), kImmutable);
  }
  if (is_set(before, "nodeAffinity") && !is_same_affinity(context.arena, spec, before)) {
    errors.invalid(Path("nodeAffinity"),
                   shown_internal(type_named("core/v1.PersistentVolumeSpec"), spec, "nodeAffinity"),
                   "field is immutable, except for updating from beta label to GA");
  }
  if (is_set(before, "volumeAttributesClassName") && !is_set(spec, "volumeAttributesClassName")) {
    errors.forbidden(Path("spec.volumeAttributesClassName"), "update from non-nil value to nil is forbidden");
  }
}

void warn_claim(Context&, const Value& object, const Value*, Warnings& texts) {
  if (object.get("metadata", "annotations", kClassAnnotation) != nullptr) {
    texts.add("metadata.annotations[" + std::string(kClassAnnotation) +
              "]: deprecated since v1.8; use \"storageClassName\" attribute instead");
  }
  warn_about_claim(sub(object, "spec"), Path("spec"), texts);
}

void warn_volume(Context&, const Value& object, const Value*, Warnings& texts) {
  if (object.get("metadata", "annotations", kClassAnnotation) != nullptr) {
    texts.add("metadata.annotations[" + std::string(kClassAnnotation) +
              "]: deprecated since v1.8; use \"storageClassName\" attribute instead");
  }
  if (object.get("metadata", "annotations", "volume.beta.kubernetes.io/mount-options") != nullptr) {
    texts.add(
        "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use \"mountOptions\" "
        "attribute instead");
  }
  const Value& spec = sub(object, "spec");
  const std::span<const Value> terms = spec.items_at("nodeAffinity", "required", "nodeSelectorTerms");
  const Path required("spec.nodeAffinity.required");
  for (size_t i = 0; i < terms.size(); ++i) {
    warn_about_node_term(terms[i], LabelValues::Ignored, required.item("nodeSelectorTerms", i), texts);
  }
  if (spec.text_at("persistentVolumeReclaimPolicy") == "Recycle") {
    texts.add(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
        "approach "
        "is to use dynamic provisioning.");
  }
  struct Old {
    std::string_view source, text;
  };
  static constexpr Old kOld[] = {
      {"cephfs", "spec.cephfs: deprecated in v1.28, non-functional in v1.31+"},
      {"photonPersistentDisk", "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"},
      {"scaleIO", "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+"},
      {"storageos", "spec.storageOS: deprecated in v1.22, non-functional in v1.25+"},
      {"glusterfs", "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+"},
      {"rbd", "spec.rbd: deprecated in v1.28, non-functional in v1.31+"},
  };
  for (const Old& old : kOld) {
    if (is_set(spec, old.source)) texts.add(old.text);
  }
}

}  // namespace

std::string_view storage_class_of(const Value& object) {
  const Value* annotated = object.get("metadata", "annotations", kClassAnnotation);
  return annotated != nullptr && annotated->is_string() ? annotated->as_string()
                                                        : object.text_at("spec", "storageClassName");
}

void default_volume_spec(Arena& arena, Draft::Node spec) {
  default_resource_list(arena, spec, "capacity");
  default_volume_sources(spec);
}

void validate_volume_spec(const Value& spec, SpecUse use, std::string_view volume, const Path& at,
                          FieldErrors& errors) {
  const bool own = use == SpecUse::Own;
  constexpr std::string_view kNotInline = "may not be specified in the context of inline volumes";
  if (!own) {
    if (is_set(spec, "claimRef")) errors.forbidden(at.child("claimRef"), kNotInline);
    if (!is_empty(spec, "capacity")) errors.forbidden(at.child("capacity"), kNotInline);
    if (!is_set(spec, "csi")) {
      errors.required(at.child("csi"), "has to be specified in the context of inline volumes");
    }
  }
  if (is_empty(spec, "accessModes")) errors.required(at.child("accessModes"));
  validate_access_modes(spec, at, errors);
  if (own) validate_capacity(spec, at, errors);
  const std::string_view reclaim = spec.text_at("persistentVolumeReclaimPolicy");
  if (own && !reclaim.empty()) {
    validate_enum(spec, "persistentVolumeReclaimPolicy", {"Delete", "Recycle", "Retain"}, at, errors);
  } else if (!reclaim.empty() && reclaim != "Retain") {
    errors.forbidden(at.child("persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes");
  }
  if (is_set(spec, "nodeAffinity")) {
    if (own) {
      validate_volume_affinity(spec, at, errors);
    } else {
      errors.forbidden(at.child("nodeAffinity"), kNotInline);
    }
  }
  size_t count = 0;
  for (const std::string_view key : kSources) {
    if (!is_set(spec, key)) continue;
    // kube-apiserver allows a Flex volume in addition to another source.
    if (count > 0 && key != "flexVolume") {
      errors.forbidden(at.child(key == "cephfs" ? "cephFS" : key), "may not specify more than 1 volume type");
      continue;
    }
    ++count;
    validate_source_of_volume(spec, key, volume, at.child(key == "gcePersistentDisk" ? "persistentDisk" : key), errors);
    if (key == "local" && !(own && is_set(spec, "nodeAffinity"))) {
      errors.required(at.child("nodeAffinity"), "Local volume requires node affinity");
    }
  }
  if (count == 0) errors.required(at, "must specify a volume type");
  if (is_root(spec.text_at("hostPath", "path")) && reclaim == "Recycle") {
    errors.forbidden(at.child("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'");
  }
  if (own) {
    validate_class(spec, "storageClassName", at, errors);
    if (is_set(spec, "volumeMode")) validate_enum(spec, "volumeMode", {"Block", "Filesystem"}, at, errors);
    validate_attributes_class_name(spec, at, errors);
    return;
  }
  if (!is_empty(spec, "storageClassName")) errors.forbidden(at.child("storageClassName"), kNotInline);
  if (is_set(spec, "volumeMode") && spec.text_at("volumeMode") != "Filesystem") {
    errors.forbidden(at.child("volumeMode"),
                     "may not specify volumeMode other than Filesystem in the context of inline volumes");
  }
}

void validate_claim_spec(const Value& spec, const Path& at, FieldErrors& errors, const Value* old) {
  if (is_empty(spec, "accessModes")) errors.required(at.child("accessModes"), "at least 1 access mode is required");
  validate_label_selector(spec.find("selector"), at.child("selector"), errors);
  validate_access_modes(spec, at, errors);
  const Path resources = at.child("resources");
  const Value* size = spec.get("resources", "requests", "storage");
  if (size == nullptr) {
    errors.required(resources.key("storage"));
  } else if (quantity_of(size).sign() <= 0) {
    errors.invalid(resources.key("storage"), *size, kNotPositive);
  }
  validate_class(spec, "storageClassName", at, errors);
  if (is_set(spec, "volumeMode")) validate_enum(spec, "volumeMode", {"Block", "Filesystem"}, at, errors);
  // An API group that was accepted before is not validated again.
  const bool any_group =
      old != nullptr && (is_set(sub(*old, "dataSource"), "apiGroup") || is_set(sub(*old, "dataSourceRef"), "apiGroup"));
  validate_source(spec, "dataSource", any_group, at, errors);
  validate_source(spec, "dataSourceRef", any_group, at, errors);
  if (is_set(spec, "dataSource") && is_set(spec, "dataSourceRef")) {
    const Value& reference = sub(spec, "dataSourceRef");
    if (!reference.text_at("namespace").empty()) {
      errors.invalid(at, Shown::verbatim("{}"), "may not be specified when dataSourceRef.namespace is specified");
    } else if (!same_source(sub(spec, "dataSource"), reference)) {
      errors.invalid(at, Shown::verbatim("{}"), "must match dataSourceRef");
    }
  }
  validate_class(spec, "volumeAttributesClassName", at, errors);
}

const Hooks kPersistentVolumeClaimHooks = {.update_checks = {.whole = 1, .compares_first = true},
                                           .defaults = default_claim,
                                           .create = create_claim,
                                           .update = update_claim,
                                           .validate = validate_claim,
                                           .validate_update = validate_claim_update,
                                           .validate_status = validate_claim_status,
                                           .warn = warn_claim};

const Hooks kPersistentVolumeHooks = {.update_checks = {.whole = 2, .compared = 0},
                                      .defaults = default_volume,
                                      .create = create_volume,
                                      .update_status = update_volume_status,
                                      .validate = validate_volume,
                                      .validate_update = validate_volume_update,
                                      .warn = warn_volume};

}  // namespace holdfast::kinds
