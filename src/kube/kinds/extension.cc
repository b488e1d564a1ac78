// CustomResourceDefinition and APIService. Definitions are validated by the crd module, which knows schemas.

#include "base/base64.h"
#include "base/strings.h"
#include "base/text.h"
#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

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

Messages api_service_name_errors(const Value& object, std::string_view name) {
  Messages bad = path_segment_errors(name);
  if (!bad.empty()) return bad;
  const std::string expected =
      std::string(object.text_at("spec", "version")) + "." + std::string(object.text_at("spec", "group"));
  if (name == expected) return {};
  return {"must be `spec.version+\".\"+spec.group`: " + go_quote(expected)};
}

void validate_api_service(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const std::string_view group = spec.text_at("group"), version = spec.text_at("version");
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
      errors.invalid(at.child("caBundle"), std::to_string(base64_decode(bundle).value_or("").size()) + " bytes",
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
                                              .update = update_definition};

const Hooks kApiServiceHooks = {.name_in = api_service_name_errors,
                                .status_metadata = StatusMetadata::KeepObject,
                                .update_checks = {.whole = 1},
                                .defaults = default_api_service,
                                .create = create_api_service,
                                .validate = validate_api_service,
                                .validate_status = validate_api_service_status};

}  // namespace holdfast::kinds
