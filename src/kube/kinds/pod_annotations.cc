// Annotations of pods and templates with a meaning, most of them older than the corresponding fields.

#include "base/strings.h"
#include "base/text.h"
#include "kinds/pod.h"
#include "kinds/references.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kRuntimeDefault = "runtime/default", kUnconfined = "unconfined", kLocalhost = "localhost/";

bool has_container(const Value& spec, std::string_view name) {
  bool found = false;
  each_container(spec, Path("spec"),
                 [&](const Value& container, const Path&) { found = found || container.text_at("name") == name; });
  return found;
}

// A 32-bit integer without a plus sign and leading zeros.
bool is_deletion_cost(std::string_view text) {
  if (text.empty()) return false;
  if (text[0] != '-' && (text[0] < '1' || text[0] > '9') && text != "0") return false;
  return parse_number<int32_t>(text).has_value();
}

void validate_deletion_cost(const Value& annotations, const Value* old_metadata, const Path& at, FieldErrors& errors) {
  const Value* cost = annotations.find(kDeletionCost);
  if (cost == nullptr || is_deletion_cost(cost->as_string())) return;
  // What was accepted before is not rejected now.
  const Value* before = old_metadata == nullptr ? nullptr : old_metadata->get("annotations", kDeletionCost);
  if (before != nullptr && !is_deletion_cost(before->as_string())) return;
  errors.invalid(at.key(kDeletionCost), *cost, "must be a 32bit integer");
}

void validate_seccomp_text(std::string_view text, const Path& at, FieldErrors& errors) {
  if (text == kRuntimeDefault || text == "docker/default" || text == kUnconfined) return;
  if (text.starts_with(kLocalhost)) return validate_descending_path(text.substr(kLocalhost.size()), at, errors);
  errors.invalid(at, text, "must be a valid seccomp profile");
}

void validate_app_armor_text(const Member& annotation, const Value& spec, const Path& at, FieldErrors& errors) {
  const std::string_view name = annotation.key.substr(kAppArmorPrefix.size()), text = annotation.value.as_string();
  if (!has_container(spec, name)) errors.invalid(at, name, "container not found");
  if (text.empty() || text == kRuntimeDefault || text == kUnconfined || text.starts_with(kLocalhost)) return;
  errors.invalid(at, text, "invalid AppArmor profile name: " + go_quote(text));
}

// The annotation and the field must match. `what` is "seccomp" or "apparmor".
void validate_match(std::string_view text, const Value& profile, std::string_view what, const Path& at,
                    FieldErrors& errors) {
  const std::string_view type = profile.text_at("type");
  bool same = true;
  if (type == "Unconfined") {
    same = text == kUnconfined;
  } else if (type == "RuntimeDefault") {
    same = text == kRuntimeDefault || (what == "seccomp" && text == "docker/default");
  } else if (type == "Localhost") {
    same = text.starts_with(kLocalhost);
    if (same && (!is_set(profile, "localhostProfile") ||
                 text.substr(kLocalhost.size()) != profile.text_at("localhostProfile"))) {
      errors.forbidden(at.child("localhostProfile"), std::string(what) + " profile in annotation and field must match");
    }
  }
  if (!same) errors.forbidden(at.child("type"), std::string(what) + " type in annotation and field must match");
}

}  // namespace

void validate_pod_annotations(const Value& metadata, const Value& spec, const Value* old_metadata, const Path& at,
                              FieldErrors& errors) {
  const Value& annotations = sub(metadata, "annotations");
  if (!annotations.is_map() || annotations.count() == 0) return;
  if (const Value* mirror = annotations.find(kMirrorPod); mirror != nullptr && is_empty(spec, "nodeName")) {
    errors.invalid(at.key(kMirrorPod), *mirror, "must set spec.nodeName if mirror pod annotation is set");
  }
  validate_deletion_cost(annotations, old_metadata, at, errors);
  if (const Value* profile = annotations.find(kSeccompPod); profile != nullptr) {
    validate_seccomp_text(profile->as_string(), at.child(kSeccompPod), errors);
  }
  for (const Member& annotation : annotations.members()) {
    if (!annotation.key.starts_with(kSeccompContainer)) continue;
    validate_seccomp_text(annotation.value.as_string(), at.child(annotation.key), errors);
  }
  for (const Member& annotation : annotations.members()) {
    if (!annotation.key.starts_with(kAppArmorPrefix)) continue;
    validate_app_armor_text(annotation, spec, at.key(annotation.key), errors);
  }
}

void validate_pod_annotation_updates(const Value& next, const Value& old, FieldErrors& errors) {
  const Path metadata("metadata"), at = metadata.child("annotations");
  const Value &now = sub(next, "metadata", "annotations"), &before = sub(old, "metadata", "annotations");
  for (const Member& annotation : old.members_at("metadata", "annotations")) {
    const Value* kept = now.find(annotation.key);
    if (kept != nullptr && equal(*kept, annotation.value)) continue;
    if (annotation.key.starts_with(kAppArmorPrefix)) {
      errors.forbidden(at.key(annotation.key), "may not remove or update AppArmor annotations");
    }
    if (annotation.key == kMirrorPod) {
      errors.forbidden(at.key(annotation.key), "may not remove or update mirror pod annotation");
    }
  }
  for (const Member& annotation : next.members_at("metadata", "annotations")) {
    if (before.find(annotation.key) != nullptr) continue;
    if (annotation.key.starts_with(kAppArmorPrefix)) {
      errors.forbidden(at.key(annotation.key), "may not add AppArmor annotations");
    }
    if (annotation.key == kMirrorPod) {
      errors.forbidden(at.key(annotation.key), "may not add mirror pod annotation");
    }
  }
  validate_pod_annotations(sub(next, "metadata"), sub(next, "spec"), old.find("metadata"), at, errors);
}

void validate_profile_annotations(const Value& metadata, const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& annotations = sub(metadata, "annotations");
  if (!annotations.is_map() || annotations.count() == 0) return;
  const Value& own = sub(spec, "securityContext");
  if (const Value* text = annotations.find(kSeccompPod); text != nullptr && is_set(own, "seccompProfile")) {
    validate_match(text->as_string(), sub(own, "seccompProfile"), "seccomp", at.child("securityContext.seccompProfile"),
                   errors);
  }
  each_container(spec, at, [&](const Value& container, const Path& here) {
    const Value& profile = sub(container, "securityContext", "seccompProfile");
    const std::string key = std::string(kSeccompContainer) + std::string(container.text_at("name"));
    const Value* text = annotations.find(key);
    if (profile.is_null() || text == nullptr) return;
    validate_match(text->as_string(), profile, "seccomp", here.child("securityContext.seccompProfile"), errors);
  });
  if (spec.text_at("os", "name") == "windows") return;
  each_container(spec, at, [&](const Value& container, const Path& here) {
    const Value& of_container = sub(container, "securityContext", "appArmorProfile");
    const Value& profile = of_container.is_null() ? sub(own, "appArmorProfile") : of_container;
    const std::string key = std::string(kAppArmorPrefix) + std::string(container.text_at("name"));
    const Value* text = annotations.find(key);
    if (profile.is_null() || text == nullptr) return;
    validate_match(text->as_string(), profile, "apparmor", here.child("securityContext.appArmorProfile"), errors);
  });
}

Value app_armor_of_annotation(Arena& arena, std::string_view text) {
  MapBuilder profile(arena);
  if (text == kUnconfined) {
    profile.add("type", Value::string("Unconfined"));
  } else if (text == kRuntimeDefault) {
    profile.add("type", Value::string("RuntimeDefault"));
  } else if (text.starts_with(kLocalhost)) {
    const std::string_view file = text.substr(kLocalhost.size());
    if (file.empty() || file.size() > kMaxAppArmorBytes || is_padded(file)) return Value::null();
    profile.add("type", Value::string("Localhost"));
    profile.add("localhostProfile", Value::string(file));
  } else {
    return Value::null();
  }
  return profile.build();
}

}  // namespace holdfast::kinds
