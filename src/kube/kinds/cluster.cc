// Namespace, Node and ServiceAccount.

#include <algorithm>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/all.h"
#include "kinds/ip.h"
#include "kinds/pod.h"

namespace holdfast::kinds {
namespace {

// --- Namespace ---

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

void force_name_label(Draft::Node object) {
  const Value name = sub(object.value(), "metadata", "name");
  if (!name.is_string() || name.count() == 0) return;
  object.child("metadata").child("labels").set(kNameLabel, name);
}

void default_namespace(Arena&, const types::Resource&, Draft::Node object) {
  force_name_label(object);
  object.child("status").set_if_zero("phase", Value::string("Active"));
}

void create_namespace(Context&, Draft::Node object) {
  force_name_label(object);  // The name may have been generated in the meantime.
  object.child("status").set("phase", Value::string("Active"));
  Draft::Node spec = object.child("spec");
  if (!contains_text(spec.value().items_at("finalizers"), "kubernetes")) {
    spec.append("finalizers", Value::string("kubernetes"));
  }
}

void update_namespace(Context&, Draft::Node next, const Value& old) {
  restore(next.child("spec"), sub(old, "spec"), "finalizers");
}

void finalize_namespace(Context&, Endpoint, Draft::Node next, const Value& old) { restore(next, old, "status"); }

void validate_finalizer(const Value& finalizer, const Path& at, FieldErrors& errors) {
  const std::string_view text = finalizer.as_string();
  errors.invalid_each(at, text, qualified_name_errors(text));
  validate_finalizer_is_known(text, at, errors);
}

void validate_namespace(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec.finalizers");
  for (const Value& finalizer : object.items_at("spec", "finalizers")) validate_finalizer(finalizer, at, errors);
}

void validate_namespace_update(Context&, const Value&, const Value&, FieldErrors&) {}

void validate_namespace_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  const std::string_view phase = next.text_at("status", "phase");
  const Path at("status.Phase");
  const bool deleting = is_set(sub(next, "metadata"), "deletionTimestamp");
  if (!deleting && phase != "Active") {
    errors.invalid(at, phase, "may only be 'Active' if `deletionTimestamp` is empty");
  } else if (deleting && phase != "Terminating") {
    errors.invalid(at, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
  }
}

void validate_namespace_finalize(Context&, Endpoint, const Value& next, const Value&, FieldErrors& errors) {
  const Path at("spec");
  const std::span<const Value> finalizers = next.items_at("spec", "finalizers");
  for (size_t i = 0; i < finalizers.size(); ++i) validate_finalizer(finalizers[i], at.item("finalizers", i), errors);
}

// --- Node ---

void default_node(Arena& arena, const types::Resource&, Draft::Node object) {
  mirror_pod_cidrs(object.child("spec"));
  Draft::Node status = object.child("status");
  default_resource_list(arena, status, "capacity");
  if (!is_set(status.value(), "allocatable") && is_set(status.value(), "capacity")) {
    status.set("allocatable", *status.find("capacity"));
  }
  default_resource_list(arena, status, "allocatable");
}

void create_node(Context&, Draft::Node object) {
  object.child("spec").remove("configSource");
  object.child("status").remove("config");
}

void update_node(Context&, Draft::Node next, const Value& old) {
  if (!is_set(sub(old, "spec"), "configSource")) next.child("spec").remove("configSource");
}

void update_node_status(Context&, Draft::Node next, const Value& old) {
  if (!is_set(sub(old, "status"), "config")) next.child("status").remove("config");
}

void validate_taints(const Value& node, FieldErrors& errors) {
  const Path at("metadata");  // The path used by kube-apiserver.
  const std::span<const Value> taints = node.items_at("spec", "taints");
  std::set<std::pair<std::string_view, std::string_view>> known;  // By key and effect.
  for (size_t i = 0; i < taints.size(); ++i) {
    const Value& taint = taints[i];
    const Path here = at.item("taints", i);
    const std::string_view key = taint.text_at("key"), value = taint.text_at("value"), effect = taint.text_at("effect");
    errors.invalid_each(here.child("key"), key, qualified_name_errors(key));
    const std::string joined = join(label_value_errors(value), ";");
    if (!joined.empty()) errors.invalid(here.child("value"), value, joined);
    if (effect.empty()) {
      errors.required(here.child("effect"));
    } else {
      validate_enum(taint, "effect", {"NoSchedule", "PreferNoSchedule", "NoExecute"}, here, errors);
    }
    if (known.emplace(key, effect).second) continue;
    const auto text = [&](std::string_view name) { return Shown(taint.text_at(name)).text(); };
    const std::string time = is_set(taint, "timeAdded") ? text("timeAdded") : "null";
    errors.duplicate(here,
                     Shown::verbatim("{\"Key\":" + text("key") + ",\"Value\":" + text("value") +
                                     ",\"Effect\":" + text("effect") + ",\"TimeAdded\":" + time + "}"),
                     "taints must be unique by key and effect pair");
  }
}

void validate_node_resources(const Value& node, FieldErrors& errors) {
  const Path at("status");
  for (const std::string_view list : {"capacity", "allocatable"}) {
    const Path list_at = at.child(list);
    for (const Member& amount : node.members_at("status", list)) {
      validate_resource_quantity(amount.key, amount.value, list_at.child(amount.key), errors);
    }
  }
}

// "MyFeature", "MyFeature/part": segments of letters and digits, the first one beginning with a capital letter.
bool is_feature_name(std::string_view name) {
  bool first = true;
  for (const std::string_view segment : split(name, '/')) {
    if (segment.empty() || !(first ? is_upper(segment[0]) : is_letter(segment[0]))) return false;
    if (!std::ranges::all_of(segment, is_alnum)) return false;
    first = false;
  }
  return true;
}

// Features supported by the kubelet, sorted.
void validate_declared_features(const Value& node, FieldErrors& errors) {
  const Path at("status");
  const std::span<const Value> features = node.items_at("status", "declaredFeatures");
  for (size_t i = 0; i < features.size(); ++i) {
    const std::string_view name = features[i].as_string();
    const std::string start = "invalid feature name " + go_quote(name) + ": must ";
    if (name.size() > 253) {
      errors.invalid(at.item("declaredFeatures", i), name, start + "be no more than 253 characters");
    } else if (!is_feature_name(name)) {
      errors.invalid(at.item("declaredFeatures", i), name,
                     start +
                         "start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., "
                         "MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes");
    }
    if (i + 1 == features.size()) continue;
    const std::string_view next = features[i + 1].as_string();
    if (name == next) errors.duplicate(at.item("declaredFeatures", i + 1), next);
    if (name > next) errors.invalid(at.item("declaredFeatures", i + 1), next, "list must be sorted alphabetically");
  }
}

void validate_node(Context&, const Value& node, FieldErrors& errors) {
  validate_taints(node, errors);
  validate_node_resources(node, errors);
  if (const Value* swap = node.get("status", "nodeInfo", "swap", "capacity"); swap != nullptr && swap->as_int() <= 0) {
    errors.invalid(Path("metadata.nodeSwapStatus.capacity"), *swap, kNotPositive);  // The path used by kube-apiserver.
  }
  validate_declared_features(node, errors);
  const Path at("spec");
  const std::span<const Value> networks = node.items_at("spec", "podCIDRs");
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < networks.size(); ++i) {
    texts.push_back(networks[i].as_string());
    validate_cidr(texts.back(), at.item("podCIDRs", i), errors);
  }
  validate_cidr_families(texts, at.child("podCIDRs"), sub(node, "spec", "podCIDRs"), errors);
}

void validate_node_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_node_resources(next, errors);
  validate_declared_features(next, errors);
  const Path status("status"), at("spec");
  const std::span<const Value> addresses = next.items_at("status", "addresses");
  std::set<std::pair<std::string_view, std::string_view>> known;  // By type and address.
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::string_view type = addresses[i].text_at("type"), address = addresses[i].text_at("address");
    if (known.emplace(type, address).second) continue;
    errors.duplicate(status.item("addresses", i), Shown::verbatim("{\"Type\":" + Shown(type).text() +
                                                                  ",\"Address\":" + Shown(address).text() + "}"));
  }
  const std::span<const Value> was = old.items_at("spec", "podCIDRs"), now = next.items_at("spec", "podCIDRs");
  if (!was.empty()) {
    constexpr std::string_view kText = "node updates may not change podCIDR except from \"\" to valid";
    if (was.size() != now.size()) {
      errors.forbidden(at.child("podCIDRs"), kText);
    } else {
      for (size_t i = 0; i < was.size(); ++i) {
        if (!equal(was[i], now[i])) errors.forbidden(at.child("podCIDRs"), kText);
      }
    }
  }
  const std::string_view provider = old.text_at("spec", "providerID");
  if (!provider.empty() && provider != next.text_at("spec", "providerID")) {
    errors.forbidden(at.child("providerID"), "node updates may not change providerID except from \"\" to valid");
  }
  validate_taints(next, errors);
  if (next.text_at("spec", "externalID") != old.text_at("spec", "externalID")) {
    errors.forbidden(at.child("externalID"), "may not be updated");
  }
}

// Everything is validated again, so that errors in taints are reported twice.
void validate_node_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_node(context, next, errors);
  validate_node_status(context, next, old, errors);
}

void warn_node(Context&, const Value& node, const Value*, Warnings& texts) {
  if (is_set(sub(node, "spec"), "configSource")) texts.add("spec.configSource: the feature is removed");
  if (!node.text_at("spec", "externalID").empty()) {
    texts.add("spec.externalID: this field is deprecated, and is unused by Kubernetes");
  }
  const Path at("spec");
  const std::span<const Value> networks = node.items_at("spec", "podCIDRs");
  for (size_t i = 0; i < networks.size(); ++i) warn_about_cidr(networks[i].as_string(), at.item("podCIDRs", i), texts);
}

// --- ServiceAccount ---

constexpr std::string_view kMountable = "kubernetes.io/enforce-mountable-secrets";

void warn_service_account(Context&, const Value& object, const Value* old, Warnings& texts) {
  if (old != nullptr && old->get("metadata", "annotations", kMountable) != nullptr) return;
  if (object.get("metadata", "annotations", kMountable) == nullptr) return;
  texts.add("metadata.annotations[" + std::string(kMountable) +
            "]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets");
}

// Only the names of the secrets are kept.
void clean_secrets(Draft::Node object) {
  for (Draft::Node secret : object.list("secrets")) {
    const Value name = sub(secret.value(), "name");
    secret.assign(Value::empty_map());
    if (!name.is_null()) secret.set("name", name);
  }
}
void create_service_account(Context&, Draft::Node object) { clean_secrets(object); }
void update_service_account(Context&, Draft::Node next, const Value&) { clean_secrets(next); }

}  // namespace

const Hooks kNamespaceHooks = {.name = name_is_dns_label,
                               .update_checks = {.whole = 1},
                               .defaults = default_namespace,
                               .create = create_namespace,
                               .update = update_namespace,
                               .update_other = finalize_namespace,
                               .validate = validate_namespace,
                               .validate_update = validate_namespace_update,
                               .validate_status = validate_namespace_status,
                               .validate_other = validate_namespace_finalize};

const Hooks kNodeHooks = {.update_checks = {.whole = 1},
                          .defaults = default_node,
                          .create = create_node,
                          .update = update_node,
                          .update_status = update_node_status,
                          .validate = validate_node,
                          .validate_update = validate_node_update,
                          .validate_status = validate_node_status,
                          .warn = warn_node};

const Hooks kServiceAccountHooks = {.update_checks = {.whole = 1, .compares_first = true},
                                    .create = create_service_account,
                                    .update = update_service_account,
                                    .warn = warn_service_account};

}  // namespace holdfast::kinds
