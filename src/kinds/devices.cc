// resource.k8s.io: claims for devices and what drivers publish.

#include "kinds/all.h"

namespace holdfast::kinds {
namespace {

void default_request(Draft::Node request) {
  request.set_if_zero("allocationMode", Value::string("ExactCount"));
  if (request.value().text_at("allocationMode") == "ExactCount") request.set_if_zero("count", Value::integer(1));
  for (Draft::Node toleration : request.list("tolerations")) {
    toleration.set_if_zero("operator", Value::string("Equal"));
  }
}

void default_claim_spec(Draft::Node spec) {
  Draft::Node devices = spec.existing("devices");
  if (!devices) return;
  for (Draft::Node request : devices.list("requests")) {
    if (Draft::Node exactly = request.existing("exactly")) default_request(exactly);
    for (Draft::Node alternative : request.list("firstAvailable")) default_request(alternative);
  }
}

void default_claim(Arena&, const types::Resource&, Draft::Node object) { default_claim_spec(object.child("spec")); }
void default_claim_template(Arena&, const types::Resource&, Draft::Node object) {
  default_claim_spec(object.child("spec").child("spec"));
}

void default_slice(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  for (Draft::Node device : spec.list("devices")) {
    for (Draft::Node taint : device.list("taints")) {
      if (!is_set(taint.value(), "timeAdded")) taint.set("timeAdded", time_value(arena, system_clock().now()));
    }
  }
}

void validate_request(const Value& request, const Path& at, FieldErrors& errors) {
  const std::string_view mode = request.text_at("allocationMode"), name = request.text_at("deviceClassName");
  if (name.empty()) {
    errors.required(at.child("deviceClassName"));
  } else {
    errors.invalid_each(at.child("deviceClassName"), name, dns_subdomain_errors(name));
  }
  const int64_t count = request.int_at_or(0, "count");
  if (mode == "ExactCount") {
    if (count <= 0) errors.invalid(at.child("count"), count, kNotPositive);
  } else if (mode == "All") {
    if (count != 0) errors.invalid(at.child("count"), count, "must not be specified when allocationMode is 'All'");
  } else {
    errors.not_supported(at.child("allocationMode"), mode, {"All", "ExactCount"});
  }
}

void validate_driver(const Value& holder, const Path& at, FieldErrors& errors) {
  const std::string_view driver = holder.text_at("driver");
  if (driver.empty()) return errors.required(at.child("driver"));
  if (driver.size() > 63) errors.too_long(at.child("driver"), 63);
  errors.invalid_each(at.child("driver"), driver, dns_subdomain_errors(driver));
}

void validate_configuration(const Value& config, const Path& at, FieldErrors& errors) {
  if (!is_set(config, "opaque")) return errors.required(at.child("opaque"));
  validate_driver(sub(config, "opaque"), at.child("opaque"), errors);
}

void validate_device_class(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const std::span<const Value> selectors = object.items_at("spec", "selectors");
  for (size_t i = 0; i < selectors.size(); ++i) {
    if (!is_set(selectors[i], "cel")) errors.required(at.item("selectors", i).child("cel"));
  }
  const std::span<const Value> configs = object.items_at("spec", "config");
  for (size_t i = 0; i < configs.size(); ++i) validate_configuration(configs[i], at.item("config", i), errors);
}

void validate_claim_spec(const Value& spec, const Path& at, FieldErrors& errors) {
  const std::span<const Value> requests = spec.items_at("devices", "requests");
  const Path devices = at.child("devices");
  if (requests.size() > 32) errors.too_many(devices.child("requests"), static_cast<int64_t>(requests.size()), 32);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Path here = devices.item("requests", i);
    const std::string_view name = requests[i].text_at("name");
    errors.invalid_each(here.child("name"), name, dns_label_errors(name));
    if (!name.empty()) {
      for (const Value& other : requests.first(i)) {
        if (other.text_at("name") == name) errors.duplicate(here, name);
      }
    }
    const bool exactly = is_set(requests[i], "exactly"), first = !is_empty(requests[i], "firstAvailable");
    if (exactly == first) {
      if (exactly) {
        errors.invalid(here, Shown::nothing(),
                       "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set");
      } else {
        errors.required(here, "exactly one of `exactly` or `firstAvailable` is required");
      }
    }
    if (exactly) validate_request(sub(requests[i], "exactly"), here.child("exactly"), errors);
    const std::span<const Value> alternatives = requests[i].items_at("firstAvailable");
    for (size_t j = 0; j < alternatives.size(); ++j) {
      const Path alternative = here.item("firstAvailable", j);
      const std::string_view own = alternatives[j].text_at("name");
      errors.invalid_each(alternative.child("name"), own, dns_label_errors(own));
      validate_request(alternatives[j], alternative, errors);
    }
  }
}

void validate_claim(Context&, const Value& object, FieldErrors& errors) {
  validate_claim_spec(sub(object, "spec"), Path("spec"), errors);
}

void validate_claim_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  if (!semantic_equal(type_named("resource/v1.ResourceClaimSpec"), next.find("spec"), old.find("spec"))) {
    errors.invalid(Path("spec"), shown_internal(type_named("resource/v1.ResourceClaimSpec"), next.find("spec")),
                   kImmutable);
  }
}

void validate_claim_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status");
  const Value &allocation = sub(next, "status", "allocation"), &before = sub(old, "status", "allocation");
  const std::span<const Value> reserved = next.items_at("status", "reservedFor");
  if (reserved.size() > 256) errors.too_many(at.child("reservedFor"), static_cast<int64_t>(reserved.size()), 256);
  if (allocation.is_null() && !reserved.empty()) {
    errors.forbidden(at.child("reservedFor"), "may not be specified when `allocated` is not set");
  }
  if (!before.is_null() && !allocation.is_null() && !equal(allocation, before)) {
    errors.invalid(at.child("allocation"), allocation, kImmutable);
  }
}

// Devices that are no longer allocated have nothing to report.
void update_claim_status(Context&, Draft::Node next, const Value& old) {
  if (is_set(sub(next.value(), "status"), "allocation") || !is_set(sub(old, "status"), "allocation")) return;
  const Value devices = sub(next.value(), "status", "devices");
  if (!devices.is_list()) return;
  next.child("status").remove("devices");
}

void validate_claim_template(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  // Of the metadata that claims get, labels and annotations can be chosen.
  const Value& metadata = sub(object, "spec", "metadata");
  validate_annotations(metadata.find("annotations"), at.child("metadata.annotations"), errors);
  validate_labels(metadata.find("labels"), at.child("metadata.labels"), errors);
  if (metadata.is_map()) {
    for (const Member& member : metadata.members()) {
      if (member.key == "annotations" || member.key == "labels" || is_empty(&member.value)) continue;
      errors.forbidden(at.child("metadata").child(member.key), "cannot be set");
    }
  }
  validate_claim_spec(sub(object, "spec", "spec"), at.child("spec"), errors);
}
void validate_claim_template_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_claim_template(context, next, errors);
  if (!equal(sub(next, "spec"), sub(old, "spec"))) {
    const types::Type& type = type_named("resource/v1.ResourceClaimTemplateSpec");
    errors.invalid(Path("spec"), shown_internal(type, next.find("spec")), kImmutable);
  }
}

void validate_slice(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const std::string_view pool = spec.text_at("pool", "name");
  validate_driver(spec, at, errors);
  if (pool.empty()) errors.required(at.child("pool.name"));
  if (spec.int_at_or(0, "pool", "resourceSliceCount") <= 0) {
    errors.invalid(at.child("pool.resourceSliceCount"), spec.int_at_or(0, "pool", "resourceSliceCount"), kNotPositive);
  }
  if (spec.int_at_or(0, "pool", "generation") < 0) {
    errors.invalid(at.child("pool.generation"), spec.int_at_or(0, "pool", "generation"), kNegative);
  }
  size_t places = 0;
  for (const std::string_view key : {"nodeName", "nodeSelector"}) places += is_set(spec, key);
  places += is_true(spec, "allNodes");
  places += is_true(spec, "perDeviceNodeSelection");
  if (places == 0) {
    errors.required(at, "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required");
  } else if (places > 1) {
    errors.invalid(at, Shown::nothing(),
                   "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required");
  }
  const std::span<const Value> devices = spec.items_at("devices");
  if (devices.size() > 128) errors.too_many(at.child("devices"), static_cast<int64_t>(devices.size()), 128);
  for (size_t i = 0; i < devices.size(); ++i) {
    const Path here = at.item("devices", i);
    const std::string_view name = devices[i].text_at("name");
    errors.invalid_each(here.child("name"), name, dns_label_errors(name));
    for (const Value& other : devices.first(i)) {
      if (other.text_at("name") == name) {
        errors.duplicate(here, name);
        break;
      }
    }
  }
}

void validate_slice_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_slice(context, next, errors);
  const Path at("spec");
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  if (spec.text_at("pool", "name") != before.text_at("pool", "name")) {
    errors.invalid(at.child("pool.name"), spec.text_at("pool", "name"), kImmutable);
  }
  for (const std::string_view key : {"driver", "nodeName"}) {
    if (!equal(sub(spec, key), sub(before, key))) errors.invalid(at.child(key), spec.find(key), kImmutable);
  }
}

}  // namespace

const Hooks kDeviceClassHooks = {
    .generation = Generation::Spec, .update_checks = {.whole = 1}, .validate = validate_device_class};
const Hooks kResourceClaimHooks = {.status_metadata = StatusMetadata::KeepObject,
                                   .update_checks = {.whole = 1},
                                   .defaults = default_claim,
                                   .update_status = update_claim_status,
                                   .validate = validate_claim,
                                   .validate_update = validate_claim_update,
                                   .validate_status = validate_claim_status};
const Hooks kResourceClaimTemplateHooks = {.update_checks = {.whole = 1},
                                           .defaults = default_claim_template,
                                           .validate = validate_claim_template,
                                           .validate_update = validate_claim_template_update};
const Hooks kResourceSliceHooks = {.generation = Generation::Spec,
                                   .defaults = default_slice,
                                   .validate = validate_slice,
                                   .validate_update = validate_slice_update};

}  // namespace holdfast::kinds
