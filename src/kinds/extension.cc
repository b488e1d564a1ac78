// CustomResourceDefinition and APIService: the objects; what schemas say is checked by the module that compiles them.

#include <algorithm>

#include "base/strings.h"
#include "base/text.h"
#include "kinds/all.h"
#include "kinds/names.h"

namespace holdfast::kinds {
namespace {

Messages name_is_anything(std::string_view, bool) { return {}; }

// --- CustomResourceDefinition ---

void add_stored_version(Draft::Node object) {
  for (const Value& version : object.value().items_at("spec", "versions")) {
    if (!is_true(version, "storage")) continue;
    const Value name = sub(version, "name");
    if (name.is_string() && !contains_text(object.value().items_at("status", "storedVersions"), name.as_string())) {
      Draft::Node status = object.child("status");
      if (!is_set(status.value(), "storedVersions")) status.remove("storedVersions");
      status.append("storedVersions", name);
    }
    return;
  }
}

void default_definition(Arena& arena, const types::Resource&, Draft::Node object) {
  {
    Draft::Node spec = object.child("spec");
    {
      Draft::Node names = spec.child("names");
      const std::string_view kind = names.value().text_at("kind");
      if (names.value().text_at("singular").empty() && !kind.empty()) {
        names.set("singular", Value::string(arena, to_lower(kind)));
      }
      if (names.value().text_at("listKind").empty() && !kind.empty()) {
        names.set("listKind", Value::string(arena, std::string(kind) + "List"));
      }
    }
    if (!is_set(spec.value(), "conversion")) spec.child("conversion").set("strategy", Value::string("None"));
    Draft::Node conversion = spec.child("conversion");
    if (Draft::Node webhook = conversion.existing("webhook")) {
      if (Draft::Node config = webhook.existing("clientConfig")) {
        if (Draft::Node service = config.existing("service")) service.set_default("port", Value::integer(443));
      }
    }
  }
  if (object.value().items_at("status", "storedVersions").empty()) add_stored_version(object);
}

void create_definition(Context&, Draft::Node object) { add_stored_version(object); }
void update_definition(Context&, Draft::Node next, const Value&) { add_stored_version(next); }

void validate_label(std::string_view text, const Path& at, FieldErrors& errors) {
  std::string joined;
  for (const std::string& message : dns1035_label_errors(text)) joined += (joined.empty() ? "" : ",") + message;
  if (!joined.empty()) errors.invalid(at, text, joined);
}

void validate_kind_name(std::string_view text, const Path& at, FieldErrors& errors) {
  std::string joined;
  for (const std::string& message : dns1035_label_errors(to_lower(text)))
    joined += (joined.empty() ? "" : ",") + message;
  if (!joined.empty()) {
    errors.invalid(at, text, "may have mixed case, but should otherwise match: " + joined);
  }
}

void validate_names(const Value& names, const Path& at, FieldErrors& errors) {
  const std::string_view plural = names.text_at("plural"), singular = names.text_at("singular");
  const std::string_view kind = names.text_at("kind"), list = names.text_at("listKind");
  if (plural.empty()) {
    errors.required(at.child("plural"));
  } else {
    validate_label(plural, at.child("plural"), errors);
  }
  if (!singular.empty()) validate_label(singular, at.child("singular"), errors);
  if (kind.empty()) {
    errors.required(at.child("kind"));
  } else {
    validate_kind_name(kind, at.child("kind"), errors);
  }
  for (const std::string_view key : {"shortNames", "categories"}) {
    const std::span<const Value> items = names.items_at(key);
    for (size_t i = 0; i < items.size(); ++i) validate_label(items[i].as_string(), at.item(key, i), errors);
  }
  if (list.empty()) {
    errors.required(at.child("listKind"));
  } else {
    validate_kind_name(list, at.child("listKind"), errors);
    if (list == kind) errors.invalid(at.child("listKind"), list, "kind and listKind may not be the same");
  }
}

void validate_versions(const Value& spec, const Path& at, FieldErrors& errors) {
  const std::span<const Value> versions = spec.items_at("versions");
  size_t stored = 0;
  Names names;
  bool unique = true;
  for (size_t i = 0; i < versions.size(); ++i) {
    const std::string_view name = versions[i].text_at("name");
    const Path here = at.item("versions", i);
    stored += is_true(versions[i], "storage");
    unique = unique && !contains(names, name);
    names.push_back(name);
    validate_label(name, here.child("name"), errors);
    const std::string_view warning = versions[i].text_at("deprecationWarning");
    if (is_set(versions[i], "deprecationWarning") && !is_true(versions[i], "deprecated")) {
      errors.invalid(here.child("deprecationWarning"), warning, "can only be set for deprecated versions");
    }
    if (versions[i].get("schema", "openAPIV3Schema") == nullptr) {
      errors.required(here.child("schema.openAPIV3Schema"), "schemas are required");
    }
  }
  if (versions.empty()) {
    errors.required(at.child("versions"), "must have at least one version");
  }
  if (!unique) errors.invalid(at.child("versions"), spec.find("versions"), "must contain unique version names");
  if (stored != 1) {
    errors.invalid(at.child("versions"), Shown::nothing(), "must have exactly one version marked as storage version");
  }
}

void validate_definition_spec(const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const std::string_view group = spec.text_at("group");
  if (group.empty()) {
    errors.required(at.child("group"));
  } else {
    std::string joined;
    for (const std::string& message : dns_subdomain_errors(group)) joined += (joined.empty() ? "" : ",") + message;
    if (!joined.empty()) {
      errors.invalid(at.child("group"), group, joined);
    } else if (group.find('.') == std::string_view::npos) {
      errors.invalid(at.child("group"), group, "should be a domain with at least one dot");
    }
  }
  const std::string_view scope = spec.text_at("scope");
  if (scope.empty()) {
    errors.required(at.child("scope"));
  } else {
    validate_enum(spec, "scope", {"Cluster", "Namespaced"}, at, errors);
  }
  if (is_true(spec, "preserveUnknownFields")) {
    errors.invalid(at.child("preserveUnknownFields"), true,
                   "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                   "spec.versions[*].schema instead");
  }
  validate_versions(spec, at, errors);
  validate_names(sub(spec, "names"), at.child("names"), errors);
  if (is_set(spec, "conversion")) {
    const Path conversion = at.child("conversion");
    const Value& given = sub(spec, "conversion");
    validate_enum(given, "strategy", {"None", "Webhook"}, conversion, errors);
    const bool webhook = given.text_at("strategy") == "Webhook";
    if (webhook && given.get("webhook", "clientConfig") == nullptr) {
      errors.required(conversion.child("webhookClientConfig"), "required when strategy is set to Webhook");
    }
    if (!webhook && is_set(given, "webhook")) {
      errors.forbidden(conversion.child("webhook"), "should not be set when strategy is not set to Webhook");
    }
  }
}

bool is_protected(std::string_view group) {
  for (const std::string_view domain : {"k8s.io", "kubernetes.io"}) {
    if (group == domain || group.ends_with("." + std::string(domain))) return true;
  }
  return false;
}

void validate_approval(const Value& object, FieldErrors& errors) {
  constexpr std::string_view kNote = "api-approved.kubernetes.io";
  if (!is_protected(object.text_at("spec", "group"))) return;
  const Path metadata("metadata"), notes = metadata.child("annotations");
  const std::string_view note = object.text_at("metadata", "annotations", kNote);
  if (note.empty()) {
    errors.required(notes.key(kNote),
                    "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
                    "https://github.com/kubernetes/enhancements/pull/1111");
  } else if (!note.starts_with("unapproved") && note.find("://") == std::string_view::npos) {
    errors.invalid(notes.key(kNote), note,
                   "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL "
                   "or a reason starting with \"unapproved\", see "
                   "https://github.com/kubernetes/enhancements/pull/1111");
  }
}

void validate_definition_name(const Value& object, FieldErrors& errors) {
  const std::string expected =
      std::string(object.text_at("spec", "names", "plural")) + "." + std::string(object.text_at("spec", "group"));
  const std::string_view name = object.text_at("metadata", "name");
  if (name != expected) {
    errors.invalid(Path("metadata.name"), name, "must be spec.names.plural+\".\"+spec.group");
  }
}

void validate_stored_versions(const Value& object, FieldErrors& errors) {
  const Path at("status");
  const std::span<const Value> stored = object.items_at("status", "storedVersions");
  if (stored.empty())
    errors.invalid(at.child("storedVersions"), sub(object, "status", "storedVersions"),
                   "must have at least one stored version");
  const std::span<const Value> versions = object.items_at("spec", "versions");
  for (size_t i = 0; i < stored.size(); ++i) {
    const bool known = std::any_of(versions.begin(), versions.end(), [&](const Value& version) {
      return version.text_at("name") == stored[i].as_string();
    });
    if (!known) {
      errors.invalid(
          at.item("storedVersions", i), stored[i],
          "missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions "
          "until a storage migration ensures no data remains persisted in v1 and removes v1 from "
          "status.storedVersions");
    }
  }
  for (const Value& version : versions) {
    if (is_true(version, "storage") && !contains_text(stored, version.text_at("name"))) {
      errors.invalid(at.child("storedVersions"), sub(object, "status", "storedVersions"),
                     "must have the storage version " + std::string(version.text_at("name")));
    }
  }
}

void validate_definition(Context&, const Value& object, FieldErrors& errors) {
  validate_definition_name(object, errors);
  validate_definition_spec(object, errors);
  validate_stored_versions(object, errors);
  validate_approval(object, errors);
}

void validate_definition_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_definition_spec(next, errors);
  const Path at("spec");
  bool established = false;
  for (const Value& condition : old.items_at("status", "conditions")) {
    established = established || (condition.text_at("type") == "Established" && condition.text_at("status") == "True");
  }
  const auto fixed = [&](std::string_view path, const Value& now, const Value& was) {
    if (!equal(now, was)) errors.invalid(at.child(path), now, kImmutable);
  };
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  if (established) {
    fixed("scope", sub(spec, "scope"), sub(before, "scope"));
    fixed("names.kind", sub(spec, "names", "kind"), sub(before, "names", "kind"));
  }
  fixed("group", sub(spec, "group"), sub(before, "group"));
  fixed("names.plural", sub(spec, "names", "plural"), sub(before, "names", "plural"));
  validate_stored_versions(next, errors);
  if (equal(sub(next, "metadata", "annotations", "api-approved.kubernetes.io"),
            sub(old, "metadata", "annotations", "api-approved.kubernetes.io"))) {
    return;
  }
  validate_approval(next, errors);
}

void validate_definition_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  validate_stored_versions(next, errors);
}

// --- APIService ---

void default_api_service(Arena&, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (Draft::Node service = spec.existing("service")) service.set_default("port", Value::integer(443));
}

void create_api_service(Context& context, Draft::Node object) {
  if (is_set(sub(object.value(), "spec"), "service")) return;
  MapBuilder condition(context.arena);
  condition.add("type", Value::string("Available"));
  condition.add("status", Value::string("True"));
  condition.add("lastTransitionTime", time_value(context.arena, context.now));
  condition.add("reason", Value::string("Local"));
  condition.add("message", Value::string("Local APIServices are always available"));
  object.child("status").append("conditions", condition.build());
}

void validate_api_service(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const std::string_view group = spec.text_at("group"), version = spec.text_at("version");
  const std::string expected = std::string(version) + "." + std::string(group);
  const Path metadata("metadata");
  for (const std::string_view key : {"generateName", "name"}) {
    const std::string_view text = object.text_at("metadata", key);
    if (const Messages bad = path_segment_errors(text); !bad.empty()) {
      errors.invalid_each(metadata.child(key), text, bad);
    } else if (!text.empty() && text != expected) {
      errors.invalid(metadata.child(key), text, "must be `spec.version+\".\"+spec.group`: " + go_quote(expected));
    }
  }
  if (group.empty() && version != "v1") {
    errors.required(at.child("group"), "only v1 may have an empty group and it better be legacy kube");
  }
  if (!group.empty()) errors.invalid_each(at.child("group"), group, dns_subdomain_errors(group));
  errors.invalid_each(at.child("version"), version, dns1035_label_errors(version));
  const int64_t minimum = spec.int_at_or(0, "groupPriorityMinimum"), priority = spec.int_at_or(0, "versionPriority");
  if (minimum <= 0 || minimum > 20000) {
    errors.invalid(at.child("groupPriorityMinimum"), minimum, "must be positive and less than 20000");
  }
  if (priority <= 0 || priority > 1000) {
    errors.invalid(at.child("versionPriority"), priority, "must be positive and less than 1000");
  }
  const bool insecure = is_true(spec, "insecureSkipTLSVerify");
  const std::string_view bundle = spec.text_at("caBundle");
  if (!is_set(spec, "service")) {
    if (!bundle.empty()) {
      errors.invalid(at.child("caBundle"), std::to_string(bundle.size() / 4 * 3) + " bytes",
                     "local APIServices may not have a caBundle");
    }
    if (insecure) {
      errors.invalid(at.child("insecureSkipTLSVerify"), true, "local APIServices may not have insecureSkipTLSVerify");
    }
    return;
  }
  const Path service = at.child("service");
  for (const std::string_view key : {"namespace", "name"}) {
    if (spec.text_at("service", key).empty()) errors.required(service.child(key));
  }
  const int64_t port = spec.int_at_or(443, "service", "port");
  if (port < 1 || port > 65535) {
    errors.invalid(service.child("port"), port, "port is not valid: " + range_message(1, 65535));
  }
  if (insecure && !bundle.empty()) {
    errors.invalid(at.child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present");
  }
}

void validate_api_service_status(Context&, const Value& next, const Value&, FieldErrors& errors) {
  const Path at("status");
  const std::span<const Value> conditions = next.items_at("status", "conditions");
  for (size_t i = 0; i < conditions.size(); ++i) {
    validate_enum(conditions[i], "status", {"True", "False", "Unknown"}, at.item("conditions", i), errors);
  }
}

}  // namespace

const Hooks kCustomResourceDefinitionHooks = {.name = name_is_anything,
                                              .generation = Generation::Spec,
                                              .defaults = default_definition,
                                              .create = create_definition,
                                              .update = update_definition,
                                              .validate = validate_definition,
                                              .validate_update = validate_definition_update,
                                              .validate_status = validate_definition_status};

const Hooks kApiServiceHooks = {.name = name_is_anything,
                                .status_metadata = StatusMetadata::KeepObject,
                                .update_checks = {.whole = 1},
                                .defaults = default_api_service,
                                .create = create_api_service,
                                .validate = validate_api_service,
                                .validate_status = validate_api_service_status};

}  // namespace holdfast::kinds
