// Metadata of any object: apimachinery's api/validation/objectmeta.go and apis/meta/v1/validation.

#include <algorithm>

#include "base/api_error.h"
#include "base/api_version.h"
#include "base/ascii.h"
#include "base/limits.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/hooks.h"
#include "kinds/names.h"

namespace holdfast::kinds {
namespace {

constexpr size_t kMaxAnnotationBytes = 256 * 1024;

void validate_owners(const Value* owners, const Path& at, FieldErrors& errors) {
  if (owners == nullptr || !owners->is_list()) return;
  std::string controller;
  constexpr int kMostShown = 10;  // Each error shows all references.
  int shown = 0;
  for (const Value& owner : owners->items()) {
    const std::string_view api_version = owner.text_at("apiVersion"), kind = owner.text_at("kind");
    // "apps/v1" has a version, "v1" is one, "apps/" and "" have none; more than one slash is invalid.
    const std::string_view version = split_api_version(api_version).version;
    const bool more_slashes = version.find('/') != std::string_view::npos;
    if (version.empty() || more_slashes)
      errors.invalid(at.child("apiVersion"), api_version, "version must not be empty");
    if (kind.empty()) errors.invalid(at.child("kind"), kind, "must not be empty");
    if (owner.text_at("name").empty()) errors.invalid(at.child("name"), "", "must not be empty");
    if (owner.text_at("uid").empty()) errors.invalid(at.child("uid"), "", "must not be empty");
    if (api_version == "v1" && kind == "Event") {
      errors.invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner");
    }
    if (!is_true(owner, "controller")) continue;
    const std::string name = std::string(kind) + "/" + std::string(owner.text_at("name"));
    if (controller.empty()) {
      controller = name;
    } else if (++shown <= kMostShown) {
      errors.invalid(at, *owners,
                     "Only one reference can have Controller set to true. Found \"true\" in references for " +
                         controller + " and " + name);
    }
  }
}

void validate_finalizers(const Value* finalizers, const Path& at, FieldErrors& errors) {
  if (finalizers == nullptr || !finalizers->is_list()) return;
  for (const Value& finalizer : finalizers->items()) {
    if (!finalizer.is_string()) continue;
    errors.invalid_each(at, finalizer, qualified_name_errors(finalizer.as_string()));
  }
  if (contains_text(finalizers->items(), "orphan") && contains_text(finalizers->items(), "foregroundDeletion")) {
    errors.invalid(at, *finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

void validate_managed_fields(const Value* entries, const Path& at, FieldErrors& errors) {
  if (entries == nullptr || !entries->is_list()) return;
  size_t shown_bytes = 0;  // Each invalid character is an error that shows the whole name.
  for (size_t i = 0; i < entries->items().size() && shown_bytes < limits::kReportedBytes; ++i) {
    const Value& entry = entries->items()[i];
    const Path entry_at = at.index(i);
    const std::string_view operation = entry.text_at("operation");
    if (operation != "Apply" && operation != "Update") {
      errors.invalid(entry_at.child("operation"), operation, "must be `Apply` or `Update`");
    }
    const std::string_view type = entry.text_at("fieldsType");
    if (!type.empty() && type != "FieldsV1") {
      errors.invalid(entry_at.child("fieldsType"), type, "must be `FieldsV1`");
    }
    const std::string_view manager = entry.text_at("manager");
    // Kubernetes counts bytes. A declared manager may have this many characters, and a stored object must be accepted
    // when it is written back.
    if (count_characters(manager) > 128) errors.too_long(entry_at.child("manager"), 128);
    for (size_t at = 0; at < manager.size() && shown_bytes < limits::kReportedBytes;) {
      const Rune rune = decode_rune(manager, at);
      if (!is_print(rune.value)) {
        shown_bytes += manager.size();
        errors.invalid(entry_at.child("manager"), manager,
                       "invalid character " + go_code_point(rune.value) + " (at position " + std::to_string(at) + ")");
      }
      at += rune.length;
    }
    if (entry.text_at("subresource").size() > 256) errors.too_long(entry_at.child("subresource"), 256);
  }
}

// Whether both are the same instant, or both absent.
bool same_instant(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto x = parse_rfc3339(a), y = parse_rfc3339(b);
  return x && y && *x == *y;
}

}  // namespace

void validate_labels(const Value* labels, const Path& at, FieldErrors& errors) {
  if (labels == nullptr || !labels->is_map()) return;
  for (const Member& label : labels->members()) {
    errors.invalid_each(at, label.key, qualified_name_errors(label.key));
    if (!label.value.is_string()) continue;
    errors.invalid_each(at, label.value, label_value_errors(label.value.as_string()));
  }
}

void validate_annotations(const Value* annotations, const Path& at, FieldErrors& errors) {
  if (annotations == nullptr || !annotations->is_map()) return;
  size_t bytes = 0;
  for (const Member& annotation : annotations->members()) {
    errors.invalid_each(at, annotation.key, qualified_name_errors(to_lower(annotation.key)));
    bytes += annotation.key.size() + annotation.value.count();
  }
  if (bytes > kMaxAnnotationBytes) errors.too_long(at, kMaxAnnotationBytes);
}

void validate_metadata(const Value& metadata, bool namespaced,
                       const std::function<std::vector<std::string>(std::string_view name, bool prefix)>& rule,
                       const Path& at, FieldErrors& errors) {
  const std::string_view prefix = metadata.text_at("generateName"), name = metadata.text_at("name");
  if (!prefix.empty()) errors.invalid_each(at.child("generateName"), prefix, rule(prefix, true));
  if (name.empty()) {
    errors.required(at.child("name"), "name or generateName is required");
  } else {
    errors.invalid_each(at.child("name"), name, rule(name, false));
  }
  const std::string_view space = metadata.text_at("namespace");
  if (!namespaced) {
    if (!space.empty()) errors.forbidden(at.child("namespace"), "not allowed on this type");
  } else {
    errors.require_valid(at.child("namespace"), space, dns_label_errors);
  }
  validate_non_negative(metadata, "generation", at, errors);
  validate_labels(metadata.find("labels"), at.child("labels"), errors);
  validate_annotations(metadata.find("annotations"), at.child("annotations"), errors);
  validate_owners(metadata.find("ownerReferences"), at.child("ownerReferences"), errors);
  validate_finalizers(metadata.find("finalizers"), at.child("finalizers"), errors);
  validate_managed_fields(metadata.find("managedFields"), at.child("managedFields"), errors);
}

void validate_finalizer_is_known(std::string_view finalizer, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kKnown[] = {"kubernetes", "orphan", "foregroundDeletion"};
  if (finalizer.find('/') != std::string_view::npos || contains(kKnown, finalizer)) return;
  errors.invalid(at, finalizer, "name is neither a standard finalizer name nor is it fully qualified");
}

void validate_finalizers_are_known(const Value& metadata, const Path& at, FieldErrors& errors) {
  const std::span<const Value> finalizers = metadata.items_at("finalizers");
  for (size_t i = 0; i < finalizers.size(); ++i) {
    validate_finalizer_is_known(finalizers[i].as_string(), at.item("finalizers", i), errors);
  }
}

void validate_metadata_update(const Value& next, const Value& old, const Path& at, FieldErrors& errors) {
  if (old.has("deletionTimestamp")) {
    std::vector<std::string> added;
    Names before;
    for (const Value& finalizer : old.items_at("finalizers")) {
      if (finalizer.is_string()) before.push_back(finalizer.as_string());
    }
    for (const Value& finalizer : next.items_at("finalizers")) {
      if (finalizer.is_string() && !before.contains(finalizer.as_string())) {
        added.push_back(go_quote(finalizer.as_string()));
      }
    }
    if (!added.empty()) {
      std::sort(added.begin(), added.end());
      added.erase(std::unique(added.begin(), added.end()), added.end());
      errors.forbidden(at.child("finalizers"),
                       "no new finalizers can be added if the object is being deleted, found new finalizers []string{" +
                           join(added, ", ") + "}");
    }
  }
  if (next.text_at("resourceVersion").empty()) {
    errors.invalid(at.child("resourceVersion"), "", "must be specified for an update");
  }
  if (next.int_at_or(0, "generation") < old.int_at_or(0, "generation")) {
    errors.invalid(at.child("generation"), next.int_at_or(0, "generation"), "must not be decremented");
  }
  for (const std::string_view key : {"name", "namespace", "uid"}) {
    if (next.text_at(key) != old.text_at(key)) errors.invalid(at.child(key), next.text_at(key), kImmutable);
  }
  for (const std::string_view key : {"creationTimestamp", "deletionTimestamp"}) {
    if (!same_instant(next.text_at(key), old.text_at(key))) {
      errors.invalid(at.child(key), next.find(key), kImmutable);
    }
  }
  const Value &grace = sub(next, "deletionGracePeriodSeconds"), &old_grace = sub(old, "deletionGracePeriodSeconds");
  if (!equal(grace, old_grace)) errors.invalid(at.child("deletionGracePeriodSeconds"), grace, kImmutable);
  validate_labels(next.find("labels"), at.child("labels"), errors);
  validate_annotations(next.find("annotations"), at.child("annotations"), errors);
  validate_owners(next.find("ownerReferences"), at.child("ownerReferences"), errors);
  validate_managed_fields(next.find("managedFields"), at.child("managedFields"), errors);
}

void validate_conditions(std::span<const Value> conditions, const Path& at, FieldErrors& errors) {
  Names seen;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const Value& condition = conditions[i];
    const Path here = at.index(i);
    const std::string_view type = condition.text_at("type");
    if (contains(seen, type)) {
      errors.duplicate(here.child("type"), type);
    } else {
      seen.push_back(type);
    }
    errors.invalid_each(here.child("type"), type, qualified_name_errors(type));
    validate_enum(condition, "status", {"False", "True", "Unknown"}, here, errors);
    if (condition.int_at_or(0, "observedGeneration") < 0) {
      errors.invalid(here.child("observedGeneration"), condition.find("observedGeneration"),
                     "must be greater than or equal to zero");
    }
    if (!is_set(condition, "lastTransitionTime")) errors.required(here.child("lastTransitionTime"));
    const std::string_view reason = condition.text_at("reason");
    const auto is_word = [](char c) { return is_alnum(c) || c == '_'; };
    if (reason.empty()) {
      errors.required(here.child("reason"));
    } else {
      if (!is_letter(reason.front()) || !is_word(reason.back()) ||
          !std::all_of(reason.begin(), reason.end(), [&](char c) { return is_word(c) || c == ',' || c == ':'; })) {
        errors.invalid(here.child("reason"), reason,
                       pattern_message("a condition reason must start with alphabetic character, optionally followed "
                                       "by a string of alphanumeric characters or '_,:', and must end with an "
                                       "alphanumeric character or '_'",
                                       "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
                                       {"my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"}));
      }
      if (reason.size() > 1024) errors.too_long(here.child("reason"), 1024);
    }
    if (condition.text_at("message").size() > 32 * 1024) errors.too_long(here.child("message"), 32 * 1024);
  }
}

}  // namespace holdfast::kinds
