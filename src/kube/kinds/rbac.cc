// rbac.authorization.k8s.io.

#include "codec/json.h"
#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

Messages name_is_segment(std::string_view name, bool) { return path_segment_errors(name); }

void validate_rules(const Value& role, bool namespaced, FieldErrors& errors) {
  const std::span<const Value> rules = role.items_at("rules");
  const Path list("rules");
  for (size_t i = 0; i < rules.size(); ++i) {
    const Value& rule = rules[i];
    const Path at = list.index(i);
    if (is_empty(rule, "verbs")) errors.required(at.child("verbs"), "verbs must contain at least one value");
    if (!is_empty(rule, "nonResourceURLs")) {
      if (namespaced) {
        errors.invalid(at.child("nonResourceURLs"), rule.find("nonResourceURLs"),
                       "namespaced rules cannot apply to non-resource URLs");
      }
      if (!is_empty(rule, "apiGroups") || !is_empty(rule, "resources") || !is_empty(rule, "resourceNames")) {
        errors.invalid(at.child("nonResourceURLs"), rule.find("nonResourceURLs"),
                       "rules cannot apply to both regular resources and non-resource URLs");
      }
      continue;
    }
    if (is_empty(rule, "apiGroups")) {
      errors.required(at.child("apiGroups"), "resource rules must supply at least one api group");
    }
    if (is_empty(rule, "resources")) {
      errors.required(at.child("resources"), "resource rules must supply at least one resource");
    }
  }
}

void validate_role(Context&, const Value& object, FieldErrors& errors) { validate_rules(object, true, errors); }

void validate_cluster_role(Context&, const Value& object, FieldErrors& errors) {
  validate_rules(object, false, errors);
  if (!is_set(object, "aggregationRule")) return;
  const Path at("aggregationRule");
  const std::span<const Value> selectors = object.items_at("aggregationRule", "clusterRoleSelectors");
  if (selectors.empty()) {
    errors.required(at.child("clusterRoleSelectors"),
                    "at least one clusterRoleSelector required if aggregationRule is non-nil");
  }
  for (size_t i = 0; i < selectors.size(); ++i) {
    const Path here = at.item("clusterRoleSelectors", i);
    const size_t before = errors.count();
    validate_label_selector(&selectors[i], here, errors);
    if (errors.count() != before) errors.invalid(here, Value::null(), "invalid label selector.");
  }
}

void default_binding(Arena&, const types::Resource&, Draft::Node object) {
  object.child("roleRef").set_if_zero("apiGroup", Value::string(kGroup));
  for (Draft::Node subject : object.list("subjects")) {
    const std::string_view kind = subject.value().text_at("kind");
    if (kind == "User" || kind == "Group") subject.set_if_zero("apiGroup", Value::string(kGroup));
  }
}

void validate_subject(const Value& subject, bool namespaced, const Path& at, FieldErrors& errors) {
  const std::string_view name = subject.text_at("name"), kind = subject.text_at("kind");
  const std::string_view group = subject.text_at("apiGroup");
  if (name.empty()) errors.required(at.child("name"));
  if (kind == "ServiceAccount") {
    if (!name.empty()) errors.invalid_each(at.child("name"), name, dns_subdomain_errors(name));
    if (!group.empty()) errors.not_supported(at.child("apiGroup"), group, {""});
    if (!namespaced && subject.text_at("namespace").empty()) errors.required(at.child("namespace"));
  } else if (kind == "User" || kind == "Group") {
    if (group != kGroup) errors.not_supported(at.child("apiGroup"), group, {kGroup});
  } else {
    errors.not_supported(at.child("kind"), kind, {"ServiceAccount", "User", "Group"});
  }
}

void validate_binding(const Value& object, bool namespaced, FieldErrors& errors) {
  const Path at("roleRef");
  const Value& reference = sub(object, "roleRef");
  if (reference.text_at("apiGroup") != kGroup) {
    errors.not_supported(at.child("apiGroup"), reference.text_at("apiGroup"), {kGroup});
  }
  if (namespaced) {
    validate_enum(reference, "kind", {"Role", "ClusterRole"}, at, errors);
  } else {
    validate_enum(reference, "kind", {"ClusterRole"}, at, errors);
  }
  const std::string_view name = reference.text_at("name");
  errors.require_valid(at.child("name"), name, path_segment_errors);
  const std::span<const Value> subjects = object.items_at("subjects");
  const Path list("subjects");
  for (size_t i = 0; i < subjects.size(); ++i) validate_subject(subjects[i], namespaced, list.index(i), errors);
}

void validate_role_ref_kept(const Value& next, const Value& old, FieldErrors& errors) {
  const Value &now = sub(next, "roleRef"), &was = sub(old, "roleRef");
  bool same = true;
  for (const std::string_view key : {"apiGroup", "kind", "name"}) same = same && now.text_at(key) == was.text_at(key);
  if (same) return;
  // The internal struct as printed by Go.
  errors.invalid(Path("roleRef"),
                 Shown::verbatim("{\"APIGroup\":" + codec::encode_json_string(now.text_at("apiGroup")) +
                                 ",\"Kind\":" + codec::encode_json_string(now.text_at("kind")) +
                                 ",\"Name\":" + codec::encode_json_string(now.text_at("name")) + "}"),
                 "cannot change roleRef");
}

void validate_role_binding(Context&, const Value& object, FieldErrors& errors) {
  validate_binding(object, true, errors);
}
void validate_cluster_role_binding(Context&, const Value& object, FieldErrors& errors) {
  validate_binding(object, false, errors);
}
void validate_role_binding_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_binding(next, true, errors);
  validate_role_ref_kept(next, old, errors);
}
void validate_cluster_role_binding_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_binding(next, false, errors);
  validate_role_ref_kept(next, old, errors);
}

}  // namespace

const Hooks kRoleHooks = {.name = name_is_segment, .update_checks = {.whole = 1}, .validate = validate_role};
const Hooks kClusterRoleHooks = {
    .name = name_is_segment, .update_checks = {.whole = 1}, .validate = validate_cluster_role};
const Hooks kRoleBindingHooks = {.name = name_is_segment,
                                 .update_checks = {.whole = 1},
                                 .defaults = default_binding,
                                 .validate = validate_role_binding,
                                 .validate_update = validate_role_binding_update};
const Hooks kClusterRoleBindingHooks = {.name = name_is_segment,
                                        .update_checks = {.whole = 1},
                                        .defaults = default_binding,
                                        .validate = validate_cluster_role_binding,
                                        .validate_update = validate_cluster_role_binding_update};

}  // namespace holdfast::kinds
