// storage.k8s.io: StorageClass, VolumeAttachment, VolumeAttributesClass and the kinds written by CSI drivers.

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error_budget.h"
#include "base/strings.h"
#include "kinds/all.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

constexpr int64_t kMaxParameterBytes = 256 * 1024;

void validate_provisioner(std::string_view name, const Path& at, FieldErrors& errors) {
  if (name.empty()) return errors.required(at);
  const std::string lower = to_lower(name);
  errors.invalid_each(at, lower, qualified_name_errors(lower));
}

void validate_parameters(const Value& object, bool may_be_empty, FieldErrors& errors) {
  const Path at("parameters");
  const std::span<const Member> parameters = object.members_at("parameters");
  if (parameters.size() > 512) return errors.too_long(at, 512);
  int64_t bytes = 0;
  for (const Member& parameter : parameters) {
    if (parameter.key.empty()) errors.invalid(at, "", "field can not be empty.");
    bytes += static_cast<int64_t>(parameter.key.size()) + parameter.value.count();
  }
  if (bytes > kMaxParameterBytes) errors.too_long(at, kMaxParameterBytes);
  if (!may_be_empty && parameters.empty()) errors.required(at, "must contain at least one key/value pair");
}

void validate_fixed(const Value& next, const Value& old, std::string_view key, FieldErrors& errors) {
  const Value &now = sub(next, key), &was = sub(old, key);
  if (is_empty(&now) && is_empty(&was)) return;
  if (!equal(now, was)) {
    errors.invalid(Path(key), now.is_map() ? shown_sorted(&now) : Shown(now), kImmutable);
  }
}

// --- StorageClass ---

void default_storage_class(Arena&, const types::Resource&, Draft::Node object) {
  object.set_default("reclaimPolicy", Value::string("Delete"));
  object.set_default("volumeBindingMode", Value::string("Immediate"));
}

// What a term selects, independent of the order it is written in.
using Topology = std::map<std::string_view, std::set<std::string_view>>;
Topology topology_of(const Value& term) {
  Topology topology;
  for (const Value& expression : term.items_at("matchLabelExpressions")) {
    std::set<std::string_view>& values = topology[expression.text_at("key")];
    values.clear();  // Of several with the same key the last one counts.
    for (const Value& value : expression.items_at("values")) values.insert(value.as_string());
  }
  return topology;
}

void validate_topologies(const Value& object, FieldErrors& errors) {
  const Path list("allowedTopologies");
  const std::span<const Value> terms = object.items_at("allowedTopologies");
  // There is an error for each pair of equal terms.
  ErrorBudget budget;
  const auto add_duplicates = [&](const Path& term, size_t count) {
    for (; count > 0; --count) {
      if (!budget.admits()) return budget.set_left_out(budget.left_out() + count - 1);
      const Path here = term.child("matchLabelExpressions");
      errors.duplicate(here, "");
      budget.took(errors.all().back());
    }
  };
  std::map<Topology, size_t> earlier;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Path at = list.index(i);
    const std::span<const Value> expressions = terms[i].items_at("matchLabelExpressions");
    Names keys;
    for (size_t j = 0; j < expressions.size(); ++j) {
      const Path here = at.item("matchLabelExpressions", j);
      const std::span<const Value> values = expressions[j].items_at("values");
      const std::string_view key = expressions[j].text_at("key");
      if (values.empty()) errors.required(here.child("values"));
      Names texts;
      for (size_t k = 0; k < values.size(); ++k) {
        if (!texts.add(values[k].as_string())) errors.duplicate(here.item("values", k), values[k]);
      }
      errors.invalid_each(here.child("key"), key, qualified_name_errors(key));
      if (!keys.add(key)) errors.duplicate(here.child("key"), key);
    }
    // kube-apiserver compares an empty term with as many empty ones as the list is long.
    if (expressions.empty()) add_duplicates(at, terms.size());
    add_duplicates(at, earlier[topology_of(terms[i])]++);
  }
  if (budget.left_out() > 0) errors.invalid(list, Shown::nothing(), left_out_text(budget.left_out()));
}

void validate_storage_class(Context&, const Value& object, FieldErrors& errors) {
  validate_provisioner(object.text_at("provisioner"), Path("provisioner"), errors);
  validate_parameters(object, true, errors);
  const std::string_view reclaim = object.text_at("reclaimPolicy"), mode = object.text_at("volumeBindingMode");
  if (!reclaim.empty() && reclaim != "Delete" && reclaim != "Retain") {
    errors.not_supported(Path("reclaimPolicy"), reclaim, {"Delete", "Retain"});
  }
  if (!is_set(object, "volumeBindingMode")) {
    errors.required(Path("volumeBindingMode"));
  } else if (mode != "Immediate" && mode != "WaitForFirstConsumer") {
    errors.not_supported(Path("volumeBindingMode"), mode, {"Immediate", "WaitForFirstConsumer"});
  }
  validate_topologies(object, errors);
}

void validate_storage_class_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_storage_class(context, next, errors);
  for (const std::string_view key : {"parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"}) {
    validate_fixed(next, old, key, errors);
  }
}

void warn_storage_class(Context&, const Value& object, const Value*, Warnings& texts) {
  const Path list("allowedTopologies");
  const std::span<const Value> topologies = object.items_at("allowedTopologies");
  for (size_t i = 0; i < topologies.size(); ++i) {
    const Path at = list.index(i);
    const std::span<const Value> expressions = topologies[i].items_at("matchLabelExpressions");
    for (size_t j = 0; j < expressions.size(); ++j) {
      const std::string_view message = deprecated_label(expressions[j].text_at("key"));
      const Path here = at.item("matchLabelExpressions", j);
      if (!message.empty()) texts.add(here.child("key").text() + ": " + std::string(message));
    }
  }
}

// --- VolumeAttachment ---

void default_attachment(Arena& arena, const types::Resource&, Draft::Node object) {
  if (object.value().get("spec", "source", "inlineVolumeSpec") == nullptr) return;
  default_volume_spec(arena, object.child("spec").child("source").child("inlineVolumeSpec"));
}

void validate_attachment_status(const Value& status, const Path& at, FieldErrors& errors) {
  constexpr int64_t kMaxMetadataBytes = 256 * 1024, kMaxMessageBytes = 1024;
  int64_t bytes = 0;
  for (const Member& member : status.members_at("attachmentMetadata")) {
    bytes += static_cast<int64_t>(member.key.size()) + member.value.count();
  }
  if (bytes > kMaxMetadataBytes) errors.too_long(at.child("attachmentMetadata"), kMaxMetadataBytes);
  for (const std::string_view key : {"attachError", "detachError"}) {
    const Path here = at.child(key);
    // As in kube-apiserver, the reported limit is not the one that is enforced.
    if (status.text_at(key, "message").size() > kMaxMessageBytes) {
      errors.too_long(here.child("message"), kMaxMetadataBytes);
    }
    const int64_t code = status.int_at_or(0, key, "errorCode");
    if (code < 0) {
      errors.invalid(here.child("errorCode"), code, range_message(0, std::numeric_limits<int32_t>::max()));
    }
  }
}

void validate_attachment(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec"), source_at = at.child("source");
  const Value& spec = sub(object, "spec");
  const std::string_view node = spec.text_at("nodeName");
  validate_driver_name(spec.text_at("attacher"), at.child("attacher"), errors);
  const Value& source = sub(spec, "source");
  const bool by_name = is_set(source, "persistentVolumeName"), inline_spec = is_set(source, "inlineVolumeSpec");
  constexpr std::string_view kOne = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (!by_name && !inline_spec) {
    errors.required(source_at, kOne);
  } else if (by_name && inline_spec) {
    errors.forbidden(source_at, kOne);
  } else if (by_name && source.text_at("persistentVolumeName").empty()) {
    errors.required(source_at.child("persistentVolumeName"), "must specify non empty persistentVolumeName");
  } else if (inline_spec) {
    validate_volume_spec(sub(source, "inlineVolumeSpec"), SpecUse::Inline, "", source_at.child("inlineVolumeSpec"),
                         errors);
  }
  errors.invalid_each(at.child("nodeName"), node, dns_subdomain_errors(node));
  validate_attachment_status(sub(object, "status"), Path("status"), errors);
  const std::string_view volume = source.text_at("persistentVolumeName");
  if (by_name) errors.invalid_each(source_at.child("persistentVolumeName"), volume, dns_subdomain_errors(volume));
}

void validate_attachment_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_attachment(context, next, errors);
  if (!semantic_equal(type_named("storage/v1.VolumeAttachmentSpec"), next.find("spec"), old.find("spec"))) {
    errors.invalid(Path("spec"), shown_internal(type_named("storage/v1.VolumeAttachmentSpec"), next.find("spec")),
                   kImmutable);
  }
}

// --- VolumeAttributesClass ---

void validate_attributes_class(Context&, const Value& object, FieldErrors& errors) {
  validate_provisioner(object.text_at("driverName"), Path("driverName"), errors);
  validate_parameters(object, false, errors);
}

void validate_attributes_class_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  for (const std::string_view key : {"driverName", "parameters"}) {
    if (!equal(sub(next, key), sub(old, key))) {
      errors.forbidden(Path(key), "updates to " + std::string(key) + " are forbidden.");
    }
  }
  validate_attributes_class(context, next, errors);
}

// --- CSIDriver ---

void default_csi_driver(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_default("attachRequired", Value::boolean(true));
  for (const std::string_view key : {"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"}) {
    spec.set_default(key, Value::boolean(false));
  }
  spec.set_default("fsGroupPolicy", Value::string("ReadWriteOnceWithFSType"));
  if (is_empty(spec.value(), "volumeLifecycleModes")) {
    ListBuilder modes(arena);
    modes.add(Value::string("Persistent"));
    spec.set("volumeLifecycleModes", modes.build());
  }
}

void validate_csi_driver(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  if (is_set(spec, "fsGroupPolicy")) {
    validate_enum(spec, "fsGroupPolicy", {"File", "None", "ReadWriteOnceWithFSType"}, at, errors);
  }
  Names audiences;
  const std::span<const Value> requests = spec.items_at("tokenRequests");
  for (size_t i = 0; i < requests.size(); ++i) {
    const Path here = at.item("tokenRequests", i);
    const std::string_view audience = requests[i].text_at("audience");
    if (contains(audiences, audience)) {
      errors.duplicate(here.child("audience"), audience);
      continue;
    }
    audiences.push_back(audience);
    if (!is_set(requests[i], "expirationSeconds")) continue;
    const int64_t seconds = requests[i].int_at_or(0, "expirationSeconds");
    if (seconds < 600) {
      errors.invalid(here.child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes");
    }
    if (seconds > int64_t{1} << 32) {
      errors.invalid(here.child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds");
    }
  }
  for (const Value& mode : spec.items_at("volumeLifecycleModes")) {
    if (mode.as_string() != "Persistent" && mode.as_string() != "Ephemeral") {
      errors.not_supported(at.child("volumeLifecycleModes"), mode, {"Persistent", "Ephemeral"});
    }
  }
  if (is_set(spec, "nodeAllocatableUpdatePeriodSeconds") &&
      spec.int_at_or(0, "nodeAllocatableUpdatePeriodSeconds") < 10) {
    errors.invalid(at.child("nodeAllocatableUpdatePeriodSeconds"), spec.find("nodeAllocatableUpdatePeriodSeconds"),
                   "must be greater than or equal to 10 seconds");
  }
  if (is_set(spec, "serviceAccountTokenInSecrets") && requests.empty()) {
    errors.invalid(at.child("serviceAccountTokenInSecrets"), spec.find("serviceAccountTokenInSecrets"),
                   "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
  }
}

void validate_csi_driver_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_csi_driver(context, next, errors);
  const Path at("spec");
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  if (!equal(sub(spec, "attachRequired"), sub(before, "attachRequired"))) {
    errors.invalid(at.child("attachedRequired"), spec.find("attachRequired"), kImmutable);
  }
  if (!equal(sub(spec, "volumeLifecycleModes"), sub(before, "volumeLifecycleModes"))) {
    errors.invalid(at.child("volumeLifecycleModes"), spec.find("volumeLifecycleModes"), kImmutable);
  }
}

void warn_csi_driver(Context&, const Value& object, const Value* old, Warnings& texts) {
  const Value& spec = sub(object, "spec");
  if (is_empty(spec, "tokenRequests") || is_set(spec, "serviceAccountTokenInSecrets")) return;
  if (old != nullptr && equal(sub(*old, "spec", "tokenRequests"), sub(spec, "tokenRequests"))) return;
  texts.add(
      "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
      "logging of tokens in volume attributes");
}

// The gate is off.
void create_csi_driver(Context&, Draft::Node object) { object.child("spec").remove("preventPodSchedulingIfMissing"); }
void update_csi_driver(Context&, Draft::Node next, const Value& old) {
  if (old.get("spec", "preventPodSchedulingIfMissing") == nullptr) {
    next.child("spec").remove("preventPodSchedulingIfMissing");
  }
}

// --- CSINode ---

void validate_csi_node(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  Names names;
  const std::span<const Value> drivers = object.items_at("spec", "drivers");
  for (size_t i = 0; i < drivers.size(); ++i) {
    const Path here = at.item("drivers", i);
    const std::string_view name = drivers[i].text_at("name"), id = drivers[i].text_at("nodeID");
    validate_driver_name(name, here.child("name"), errors);
    if (id.empty()) errors.required(here.child("nodeID"));
    if (id.size() > 256) errors.invalid(here.child("nodeID"), id, "must be 256 characters or less");
    if (drivers[i].int_at_or(0, "allocatable", "count") < 0) {
      errors.invalid(here.child("allocatable.count"), drivers[i].int_at_or(0, "allocatable", "count"), kNegative);
    }
    if (contains(names, name)) errors.duplicate(here.child("name"), name);
    names.push_back(name);
    Names keys;
    for (const Value& item : drivers[i].items_at("topologyKeys")) {
      const std::string_view key = item.as_string();
      if (key.empty()) errors.required(here);
      if (!keys.add(key)) errors.duplicate(here, key);
      errors.invalid_each(here, key, qualified_name_errors(key));
    }
  }
}

void validate_csi_node_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_csi_node(context, next, errors);
  std::multimap<std::string_view, const Value*> drivers;
  for (const Value& now : next.items_at("spec", "drivers")) drivers.emplace(now.text_at("name"), &now);
  for (const Value& before : old.items_at("spec", "drivers")) {
    const auto [first, last] = drivers.equal_range(before.text_at("name"));
    for (auto now = first; now != last; ++now) {
      const Value rest = without_member(context.arena, *now->second, "allocatable");
      if (!equal(rest, without_member(context.arena, before, "allocatable"))) {
        errors.invalid(Path("spec.drivers"), shown_internal(type_named("storage/v1.CSINodeDriver"), &rest), kImmutable);
      }
    }
  }
}

// --- CSIStorageCapacity ---

void validate_capacity(Context&, const Value& object, FieldErrors& errors) {
  validate_label_selector(object.find("nodeTopology"), Path("nodeTopology"), errors);
  const std::string_view name = object.text_at("storageClassName");
  errors.invalid_each(Path("storageClassName"), name, dns_subdomain_errors(name));
  if (quantity_of(object.find("capacity")).sign() < 0) {
    errors.invalid(Path("capacity"), object.find("capacity"), kNegative);
  }
}

void validate_capacity_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_capacity(context, next, errors);
  if (!semantic_equal(type_named("meta/v1.LabelSelector"), next.find("nodeTopology"), old.find("nodeTopology"))) {
    errors.invalid(Path("nodeTopology"), shown_selector(next.find("nodeTopology")), kImmutable);
  }
  if (next.text_at("storageClassName") != old.text_at("storageClassName")) {
    errors.invalid(Path("storageClassName"), next.text_at("storageClassName"), kImmutable);
  }
}

void warn_capacity(Context&, const Value& object, const Value*, Warnings& texts) {
  const Path at("nodeTopology"), labels = at.child("matchLabels");
  const Value& topology = sub(object, "nodeTopology");
  warn_about_node_term(topology, LabelValues::Ignored, at, texts);
  for (const Member& label : topology.members_at("matchLabels")) {
    const std::string_view message = deprecated_label(label.key);
    if (!message.empty()) texts.add(labels.child(label.key).text() + ": " + std::string(message));
  }
}

}  // namespace

const Hooks kStorageClassHooks = {.update_checks = {.whole = 1},
                                  .defaults = default_storage_class,
                                  .validate = validate_storage_class,
                                  .validate_update = validate_storage_class_update,
                                  .warn = warn_storage_class};
const Hooks kVolumeAttachmentHooks = {.status_metadata = StatusMetadata::KeepObjectAndDeletion,
                                      .update_checks = {.whole = 1, .compared = 0},
                                      .status_checks = {.whole = 1, .compared = 0},
                                      .defaults = default_attachment,
                                      .validate = validate_attachment,
                                      .validate_update = validate_attachment_update,
                                      .validate_status = validate_attachment_update};
const Hooks kVolumeAttributesClassHooks = {.update_checks = {.whole = 1, .compares_first = true},
                                           .validate = validate_attributes_class,
                                           .validate_update = validate_attributes_class_update};
const Hooks kCsiDriverHooks = {.generation = Generation::SpecFromZero,
                               .defaults = default_csi_driver,
                               .create = create_csi_driver,
                               .update = update_csi_driver,
                               .validate = validate_csi_driver,
                               .validate_update = validate_csi_driver_update,
                               .warn = warn_csi_driver};
const Hooks kCsiNodeHooks = {.update_checks = {.whole = 1, .compared = 0},
                             .validate = validate_csi_node,
                             .validate_update = validate_csi_node_update};
const Hooks kCsiStorageCapacityHooks = {.update_checks = {.whole = 1},
                                        .validate = validate_capacity,
                                        .validate_update = validate_capacity_update,
                                        .warn = warn_capacity};

}  // namespace holdfast::kinds
