// Event, in the form of core/v1, whichever group the request used.

#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

bool is_new_api(const Context& context) { return context.resource.group == "events.k8s.io"; }

void validate_size(const Value& event, std::string_view key, size_t limit, FieldErrors& errors) {
  if (event.text_at(key).size() > limit) {
    errors.invalid(Path(key), "", "can have at most " + std::to_string(limit) + " characters");
  }
}

void validate_common(const Context& context, const Value& event, FieldErrors& errors) {
  const std::string_view space = event.text_at("metadata", "namespace");
  const std::string_view about = event.text_at("involvedObject", "namespace");
  const Path about_at("involvedObject.namespace");
  constexpr std::string_view kMismatch = "does not match event.namespace";
  if (!is_set(event, "eventTime")) {
    const bool mismatch = about.empty() ? !space.empty() && space != "default" : space != about;
    if (mismatch) errors.invalid(about_at, about, kMismatch);
  } else {
    if (about.empty() && space != "default" && space != "kube-system") errors.invalid(about_at, about, kMismatch);
    const std::string_view controller = event.text_at("reportingComponent");
    const Path controller_at(is_new_api(context) ? "reportingController" : "reportingComponent");
    if (controller.empty()) errors.required(controller_at);
    errors.invalid_each(controller_at, controller, qualified_name_errors(controller));
    for (const std::string_view key : {"reportingInstance", "action", "reason"}) {
      if (event.text_at(key).empty()) errors.required(Path(key));
      validate_size(event, key, 128, errors);
    }
    validate_size(event, "message", 1024, errors);
  }
  errors.invalid_each(Path("namespace"), space, dns_subdomain_errors(space));
}

void validate_series(const Value& event, FieldErrors& errors) {
  if (!is_set(event, "series")) return;
  if (event.int_at_or(0, "series", "count") < 2) errors.invalid(Path("series.count"), "", "should be at least 2");
  if (!is_set(sub(event, "series"), "lastObservedTime")) errors.required(Path("series.lastObservedTime"));
}

void validate_event(Context& context, const Value& event, FieldErrors& errors) {
  validate_common(context, event, errors);
  if (!is_new_api(context)) return;
  validate_metadata(sub(event, "metadata"), true, name_is_dns_subdomain, Path("metadata"), errors);
  validate_finalizers_are_known(sub(event, "metadata"), Path("metadata"), errors);
  validate_series(event, errors);
  if (!is_set(event, "eventTime")) errors.required(Path("eventTime"));
  const std::string_view type = event.text_at("type");
  if (type != "Normal" && type != "Warning") {
    errors.invalid(Path("type"), "", "has invalid value: " + std::string(type));
  }
  for (const std::string_view key : {"firstTimestamp", "lastTimestamp"}) {
    if (is_set(event, key)) errors.invalid(Path(key), "", "needs to be unset");
  }
  if (event.int_at_or(0, "count") != 0) errors.invalid(Path("count"), "", "needs to be unset");
  if (!event.text_at("source", "component").empty() || !event.text_at("source", "host").empty()) {
    errors.invalid(Path("source"), "", "needs to be unset");
  }
}

void validate_event_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_common(context, next, errors);
  if (!is_new_api(context)) return;
  validate_metadata_update(sub(next, "metadata"), sub(old, "metadata"), Path("metadata"), errors);
  validate_finalizers_are_known(sub(next, "metadata"), Path("metadata"), errors);
  if (!equal(sub(next, "series"), sub(old, "series"))) validate_series(next, errors);
  const types::Type& type = type_named("core/v1.Event");
  for (const std::string_view key : {"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp",
                                     "count", "reason", "type", "eventTime", "action", "related"}) {
    if (!unchanged(type, next, old, key)) errors.invalid(Path(key), shown_internal(type, next, key), kImmutable);
  }
  if (!unchanged(type, next, old, "reportingComponent")) {
    errors.invalid(Path("reportingController"), next.find("reportingComponent"), kImmutable);
  }
  if (!unchanged(type, next, old, "reportingInstance")) {
    errors.invalid(Path("reportingInstance"), next.find("reportingInstance"), kImmutable);
  }
}

}  // namespace

const Hooks kEventHooks = {
    .checks_metadata_last = true, .validate = validate_event, .validate_update = validate_event_update};

}  // namespace holdfast::kinds
