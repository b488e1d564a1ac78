// Accepted names and conditions of definitions.
#include <algorithm>
#include <functional>
#include <set>

#include "base/api_error.h"
#include "base/base64.h"
#include "base/strings.h"
#include "base/text.h"
#include "crd/crd.h"
#include "crd/rules.h"

namespace holdfast::crd {
namespace {

constexpr std::string_view kInvalidBundle = "InvalidCABundle";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Value* condition(const Value& definition, std::string_view type) {
  for (const Value& item : definition.items_at("status", "conditions")) {
    if (item.text_at("type") == type) return &item;
  }
  return nullptr;
}

// KubernetesAPIApprovalPolicyConformant: whether a definition in one of Kubernetes' own groups was approved. Like
// calculateCondition in apiapproval_controller.go.
Value with_approval(Arena& arena, const Value& definition, UnixTime now) {
  if (!is_protected_group(definition.text_at("spec", "group"))) return definition;
  const std::string value(definition.text_at("metadata", "annotations", kApprovedAnnotation));
  constexpr std::string_view kType = "KubernetesAPIApprovalPolicyConformant";
  switch (approval_of(value)) {
    case Approval::Missing:
      return with_condition(arena, definition, kType, "False", "MissingAnnotation", kApprovalMissing, now);
    case Approval::Bypassed:
      return with_condition(arena, definition, kType, "False", "UnapprovedAnnotation",
                            "not approved: " + go_quote(value), now);
    case Approval::Invalid:
      return with_condition(arena, definition, kType, "False", "InvalidAnnotation", kApprovalInvalid, now);
    case Approval::Approved:
      break;
  }
  return with_condition(arena, definition, kType, "True", "ApprovedAnnotation", "approved in " + value, now);
}

Value without_condition(Arena& arena, const Value& definition, std::string_view type) {
  if (condition(definition, type) == nullptr) return definition;
  ListBuilder conditions(arena);
  for (const Value& item : definition.items_at("status", "conditions")) {
    if (item.text_at("type") != type) conditions.add(item);
  }
  const std::string_view path[] = {"status", "conditions"};
  return with_path(arena, definition, path, conditions.build());
}

// NonStructuralSchema: definitions stored by older versions of Kubernetes need not be structural. Like
// calculateCondition in nonstructuralschema_controller.go.
Value with_structural_condition(Arena& arena, const Value& definition, UnixTime now) {
  std::vector<std::string> violations;
  if (flag_at(*definition.find("spec"), "preserveUnknownFields"))
    violations.emplace_back("spec.preserveUnknownFields: Invalid value: true: must be false");
  const auto versions = definition.items_at("spec", "versions");
  const Path spec("spec");
  for (size_t i = 0; i < versions.size(); ++i) {
    const Value* schema = versions[i].get("schema", "openAPIV3Schema");
    if (schema == nullptr || !schema->is_map()) continue;
    const Path version = spec.item("versions", i);
    FieldErrors found;
    validate_structural(*schema, version.child("schema.openAPIV3Schema"), found);
    std::set<std::string> texts;
    for (const Cause& cause : found.all()) texts.insert(cause.field + ": " + cause.message);
    violations.insert(violations.end(), texts.begin(), texts.end());
  }
  constexpr std::string_view kType = "NonStructuralSchema";
  if (violations.empty()) return without_condition(arena, definition, kType);
  return with_condition(arena, definition, kType, "True", "Violations", aggregate_text(violations), now);
}

}  // namespace

bool holds_certificate(std::string_view encoded) {
  const std::optional<std::string> pem = base64_decode(encoded);
  if (!pem) return false;
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----", kEnd = "-----END CERTIFICATE-----";
  for (size_t at = pem->find(kBegin); at != std::string::npos; at = pem->find(kBegin, at + 1)) {
    const size_t start = at + kBegin.size(), end = pem->find(kEnd, start);
    if (end == std::string::npos) return false;
    std::string body = pem->substr(start, end - start);
    std::erase_if(body, [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; });
    const std::optional<std::string> der = base64_decode(body);
    if (der && der->starts_with('\x30')) return true;  // DER is a sequence.
  }
  return false;
}

TakenNames taken_names(std::span<const Value> others_of_group) {
  TakenNames taken;
  for (const Value& other : others_of_group) {
    const Value* names = other.get("status", "acceptedNames");
    if (names == nullptr) continue;
    for (std::string_view key : {"plural", "singular"}) {
      if (!names->text_at(key).empty()) taken.resources.emplace_back(names->text_at(key));
    }
    for (const Value& short_name : names->items_at("shortNames")) {
      if (short_name.is_string()) taken.resources.emplace_back(short_name.as_string());
    }
    for (std::string_view key : {"kind", "listKind"}) {
      if (!names->text_at(key).empty()) taken.kinds.emplace_back(names->text_at(key));
    }
  }
  return taken;
}

bool has_condition(const Value& definition, std::string_view type, std::string_view status) {
  const Value* found = condition(definition, type);
  return found != nullptr && found->text_at("status") == status;
}

Value with_condition(Arena& arena, const Value& definition, std::string_view type, std::string_view status,
                     std::string_view reason, std::string_view message, UnixTime now) {
  const Value* before = condition(definition, type);
  const bool same_status = before != nullptr && before->text_at("status") == status;
  if (same_status && before->text_at("reason") == reason && before->text_at("message") == message) return definition;
  MapBuilder next(arena);
  next.add("type", Value::string(arena, type));
  next.add("status", Value::string(arena, status));
  next.add("lastTransitionTime", same_status && before->has("lastTransitionTime")
                                     ? *before->find("lastTransitionTime")
                                     : Value::string(arena, format_rfc3339(now)));
  next.add("reason", Value::string(arena, reason));
  next.add("message", Value::string(arena, message));
  const Value made = next.build();
  ListBuilder conditions(arena);
  bool replaced = false;
  for (const Value& item : definition.items_at("status", "conditions")) {
    const bool here = item.text_at("type") == type;
    conditions.add(here ? made : item);
    replaced |= here;
  }
  if (!replaced) conditions.add(made);
  const std::string_view path[] = {"status", "conditions"};
  return with_path(arena, definition, path, conditions.build());
}

Value accept_names(Arena& arena, const Value& definition, const TakenNames& taken, UnixTime now) {
  const Value empty = Value::empty_map();
  const Value* wanted_names = definition.get("spec", "names");
  const Value* accepted_names = definition.get("status", "acceptedNames");
  const Value& wanted = wanted_names == nullptr ? empty : *wanted_names;
  const Value& accepted = accepted_names == nullptr ? empty : *accepted_names;
  MapBuilder names(arena);
  std::string reason, message;
  // The last conflict found is reported.
  auto text = [&](std::string_view key, const std::vector<std::string>& held, std::string_view why) {
    const std::string_view name = wanted.text_at(key), before = accepted.text_at(key);
    if (name == before || !contains(held, name)) {
      if (!name.empty() || key == "plural" || key == "kind") names.add(key, Value::string(name));
      return;
    }
    reason = why;
    message = "\"" + std::string(name) + "\" is already in use";
    if (!before.empty() || key == "plural" || key == "kind") names.add(key, Value::string(before));
  };
  text("plural", taken.resources, "PluralConflict");
  text("singular", taken.resources, "SingularConflict");
  std::string short_conflicts;
  for (const Value& name : wanted.items_at("shortNames")) {
    if (!name.is_string() || !contains(taken.resources, name.as_string())) continue;
    const auto before = accepted.items_at("shortNames");
    if (std::any_of(before.begin(), before.end(), [&](const Value& old) { return equal(old, name); })) continue;
    short_conflicts = "\"" + std::string(name.as_string()) + "\" is already in use";
  }
  if (!short_conflicts.empty()) {
    reason = "ShortNamesConflict";
    message = short_conflicts;
    if (const Value* before = accepted.find("shortNames")) names.add("shortNames", *before);
  } else if (const Value* short_names = wanted.find("shortNames")) {
    names.add("shortNames", *short_names);
  }
  text("kind", taken.kinds, "KindConflict");
  text("listKind", taken.kinds, "ListKindConflict");
  if (const Value* categories = wanted.find("categories")) names.add("categories", *categories);

  const std::string_view names_path[] = {"status", "acceptedNames"};
  const Value accepted_now = names.build();
  Value next = definition;
  if (!equal(accepted_now, accepted)) next = with_path(arena, next, names_path, accepted_now);
  const bool conflict = !reason.empty();
  next = with_condition(arena, next, "NamesAccepted", conflict ? "False" : "True", conflict ? reason : "NoConflicts",
                        conflict ? message : "no conflicts found", now);
  if (!has_condition(next, "Established", "True")) {
    if (conflict) {
      next = with_condition(arena, next, "Established", "False", "NotAccepted", "not all names are accepted", now);
    } else if (const Value* before = condition(next, "Established");
               before == nullptr || before->text_at("reason") != kInvalidBundle) {
      // Only establish() may clear an invalid bundle; setting "Installing" again would loop forever.
      next = with_condition(arena, next, "Established", "False", "Installing", "the initial names have been accepted",
                            now);
    }
  }
  return with_structural_condition(arena, with_approval(arena, next, now), now);
}

Value establish(Arena& arena, const Value& definition, UnixTime now) {
  if (!has_condition(definition, "NamesAccepted", "True") || has_condition(definition, "Established", "True"))
    return definition;
  const std::string_view bundle = definition.text_at("spec", "conversion", "webhook", "clientConfig", "caBundle");
  if (!bundle.empty() && !holds_certificate(bundle)) {
    return with_condition(arena, definition, "Established", "False", kInvalidBundle,
                          "The conversion webhook CABundle is invalid", now);
  }
  return with_condition(arena, definition, "Established", "True", "InitialNamesAccepted",
                        "the initial names have been accepted", now);
}

}  // namespace holdfast::crd
