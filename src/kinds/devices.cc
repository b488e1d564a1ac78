// resource.k8s.io: claims for devices and what drivers publish.

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "base/strings.h"
#include "cel/cel.h"
#include "kinds/all.h"
#include "kinds/pod.h"

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

using Items = std::span<const Value>;

std::string_view text_of(const Value& value) { return value.is_string() ? value.as_string() : std::string_view{}; }

// Each item, or the error of a list that is too long as a whole.
template <class Check>
void validate_list(Items items, int64_t most, const Path& at, FieldErrors& errors, Check check) {
  if (static_cast<int64_t>(items.size()) > most) return errors.too_many(at, static_cast<int64_t>(items.size()), most);
  for (size_t i = 0; i < items.size(); ++i) check(items[i], at.index(i));
}

void refuse_duplicates(Items items, std::string_view key, const Path& at, FieldErrors& errors) {
  const auto name_of = [&](const Value& item) { return key.empty() ? text_of(item) : item.text_at(key); };
  for (size_t i = 1; i < items.size(); ++i) {
    for (const Value& other : items.first(i)) {
      if (name_of(other) != name_of(items[i])) continue;
      errors.duplicate(at.index(i), name_of(items[i]));
      break;
    }
  }
}

// Drivers are compared without regard to case.
void validate_driver_name(std::string_view driver, const Path& at, FieldErrors& errors) {
  if (driver.empty()) return errors.required(at);
  if (driver.size() > 63) errors.too_long(at, 63);
  errors.invalid_each(at, driver, dns_subdomain_errors(to_lower(driver)));
}

void validate_pool_name(std::string_view name, const Path& at, FieldErrors& errors) {
  if (name.empty()) return errors.required(at);
  if (name.size() > 253) errors.too_long(at, 253);
  for (size_t from = 0; from <= name.size();) {
    const size_t slash = std::min(name.find('/', from), name.size());
    const std::string_view part = name.substr(from, slash - from);
    errors.invalid_each(at, part, dns_subdomain_errors(part));
    from = slash + 1;
  }
}

// Conditions that a device must have before a pod is bound to its node, and those with which that has failed.
void validate_binding_conditions(const Value& holder, const Path& at, FieldErrors& errors) {
  const Items needed = holder.items_at("bindingConditions"), failures = holder.items_at("bindingFailureConditions");
  const Path at_needed = at.child("bindingConditions"), at_failures = at.child("bindingFailureConditions");
  const auto label_name = [&](const Value& name, const Path& here) {
    errors.invalid_each(here, text_of(name), qualified_name_errors(text_of(name)));
  };
  constexpr int64_t kMost = 4;
  validate_list(needed, kMost, at_needed, errors, label_name);
  validate_list(failures, kMost, at_failures, errors, label_name);
  if (std::max(needed.size(), failures.size()) > kMost) return;
  refuse_duplicates(needed, {}, at_needed, errors);
  refuse_duplicates(failures, {}, at_failures, errors);
  for (size_t i = 0; i < failures.size(); ++i) {
    const auto is_this = [&](const Value& other) { return text_of(other) == text_of(failures[i]); };
    if (std::any_of(needed.begin(), needed.end(), is_this)) {
      errors.invalid(at_failures.index(i), text_of(failures[i]),
                     "bindingFailureConditions must not overlap with bindingConditions");
    }
  }
  if (needed.empty() && !failures.empty()) {
    errors.invalid(at_needed, Value::null(), "bindingConditions are required to use bindingFailureConditions");
  }
  if (failures.empty() && !needed.empty()) {
    errors.invalid(at_failures, Value::null(), "bindingFailureConditions are required to use bindingConditions");
  }
}

void validate_identifier(std::string_view id, const Path& at, FieldErrors& errors) {
  if (id.size() > 32) errors.too_long(at, 32);
  errors.invalid_each(at, id, c_identifier_errors(id));
}

// "model" or "example.com/model".
void validate_attribute_name(std::string_view name, const Path& at, FieldErrors& errors) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return validate_identifier(name, at, errors);
  const std::string_view domain = name.substr(0, slash), rest = name.substr(slash + 1);
  if (rest.find('/') != std::string_view::npos) return;  // Upstream has nothing to say about more than one.
  if (domain.empty()) {
    errors.invalid(at, "", "the domain must not be empty");
  } else {
    validate_driver_name(domain, at, errors);
  }
  if (rest.empty()) {
    errors.invalid(at, "", "the name must not be empty");
  } else {
    validate_identifier(rest, at, errors);
  }
}

void validate_full_attribute_name(std::string_view name, const Path& at, FieldErrors& errors) {
  validate_attribute_name(name, at, errors);
  if (name.find('/') == std::string_view::npos) {
    errors.invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash");
  }
}

void validate_selector_expression(std::string_view expression, const Path& at, FieldErrors& errors) {
  constexpr int64_t kMaxLength = 10 * 1024;
  constexpr uint64_t kMaxCost = 1'000'000;
  if (static_cast<int64_t>(expression.size()) > kMaxLength) return errors.too_long(at, kMaxLength);
  const cel::Environment::Compiled compiled = cel::device_selectors().compile(expression);
  const std::string type =
      compiled.program != nullptr ? cel::go_type_text(compiled.program->result_type()) : compiled.error.type;
  if (type.empty()) return errors.invalid(at, expression, "compilation failed: " + compiled.error.text);
  if (type != "bool" && type != "google.protobuf.Any") {
    return errors.invalid(at, expression, "must evaluate to bool or the unknown type, not " + type);
  }
  if (compiled.program == nullptr) return errors.internal(at, "program instantiation failed: " + compiled.error.text);
  if (compiled.program->estimate().max > kMaxCost) errors.forbidden(at, "too complex, exceeds cost limit");
}

void validate_selectors(const Value& holder, const Path& at, FieldErrors& errors) {
  validate_list(holder.items_at("selectors"), 32, at.child("selectors"), errors,
                [&](const Value& item, const Path& here) {
                  const Path cel = here.child("cel");
                  if (!is_set(item, "cel")) return errors.required(cel);
                  validate_selector_expression(sub(item, "cel").text_at("expression"), cel.child("expression"), errors);
                });
}

void validate_toleration(const Value& toleration, const Path& at, FieldErrors& errors) {
  const std::string_view key = toleration.text_at("key"), op = toleration.text_at("operator");
  const std::string_view value = toleration.text_at("value"), effect = toleration.text_at("effect");
  if (!key.empty()) errors.invalid_each(at.child("key"), key, qualified_name_errors(key));
  if (op == "Exists") {
    if (!value.empty()) errors.invalid(at.child("value"), value, "must be empty for operator `Exists`");
  } else if (op == "Equal") {
    errors.invalid_each(at.child("value"), value, label_value_errors(value));
  } else if (op.empty()) {
    errors.required(at.child("operator"));
  } else {
    errors.not_supported(at.child("operator"), op, {"Equal", "Exists"});
  }
  if (!effect.empty()) validate_enum(toleration, "effect", {"NoExecute", "NoSchedule", "None"}, at, errors);
}

void validate_request(const Value& request, const Path& at, FieldErrors& errors) {
  const std::string_view mode = request.text_at("allocationMode"), name = request.text_at("deviceClassName");
  if (name.empty()) {
    errors.required(at.child("deviceClassName"));
  } else {
    errors.invalid_each(at.child("deviceClassName"), name, dns_subdomain_errors(name));
  }
  validate_selectors(request, at, errors);
  const int64_t count = request.int_at_or(0, "count");
  if (mode == "ExactCount") {
    if (count <= 0) errors.invalid(at.child("count"), count, kNotPositive);
  } else if (mode == "All") {
    if (count != 0) errors.invalid(at.child("count"), count, "must not be specified when allocationMode is 'All'");
  } else {
    errors.not_supported(at.child("allocationMode"), mode, {"All", "ExactCount"});
  }
  const Items tolerations = request.items_at("tolerations");
  for (size_t i = 0; i < tolerations.size(); ++i)
    validate_toleration(tolerations[i], at.item("tolerations", i), errors);
}

void validate_configuration(const Value& config, const Path& at, FieldErrors& errors) {
  if (!is_set(config, "opaque")) return errors.required(at.child("opaque"));
  const Value& opaque = sub(config, "opaque");
  const Path here = at.child("opaque");
  validate_driver_name(opaque.text_at("driver"), here.child("driver"), errors);
  const Value& parameters = sub(opaque, "parameters");
  if (parameters.is_null()) {
    errors.required(here.child("parameters"));
  } else if (!parameters.is_map() && !(parameters.is_raw() && parameters.raw_json().starts_with('{'))) {
    errors.invalid(here.child("parameters"), "<value omitted>", "must be a valid JSON object");
  }
}

void validate_device_class(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  validate_selectors(spec, at, errors);
  validate_list(spec.items_at("config"), 32, at.child("config"), errors,
                [&](const Value& item, const Path& here) { validate_configuration(item, here, errors); });
  if (is_set(spec, "extendedResourceName") && !is_extended_resource(spec.text_at("extendedResourceName"))) {
    errors.invalid(at.child("extendedResourceName"), spec.text_at("extendedResourceName"),
                   "must be a valid extended resource name");
  }
}

// "request" or "request/alternative".
bool names_request(std::string_view name, Items requests) {
  const size_t slash = name.find('/');
  for (const Value& request : requests) {
    if (request.text_at("name") == name) return true;
    if (slash == std::string_view::npos || request.text_at("name") != name.substr(0, slash)) continue;
    for (const Value& alternative : request.items_at("firstAvailable")) {
      if (alternative.text_at("name") == name.substr(slash + 1)) return true;
    }
  }
  return false;
}

void validate_request_reference(std::string_view name, Items requests, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kNoRequest =
      "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
  if (std::count(name.begin(), name.end(), '/') > 1) return errors.invalid(at, name, kNoRequest);
  const size_t slash = name.find('/');
  const std::string_view first = name.substr(0, slash);
  errors.invalid_each(at, first, dns_label_errors(first));
  if (slash != std::string_view::npos) {
    errors.invalid_each(at, name.substr(slash + 1), dns_label_errors(name.substr(slash + 1)));
  }
  if (!names_request(name, requests)) errors.invalid(at, name, kNoRequest);
}

void validate_request_references(const Value& holder, Items requests, const Path& at, FieldErrors& errors) {
  const Items names = holder.items_at("requests");
  const Path list = at.child("requests");
  validate_list(names, 32, list, errors, [&](const Value& item, const Path& here) {
    validate_request_reference(text_of(item), requests, here, errors);
  });
  if (names.size() <= 32) refuse_duplicates(names, {}, list, errors);
}

void validate_device_request(const Value& request, const Path& at, FieldErrors& errors) {
  const std::string_view name = request.text_at("name");
  errors.invalid_each(at.child("name"), name, dns_label_errors(name));
  const bool exactly = is_set(request, "exactly"), first = !is_empty(request, "firstAvailable");
  if (!exactly && !first) return errors.required(at, "exactly one of `exactly` or `firstAvailable` is required");
  if (exactly && first) {
    return errors.invalid(at, Value::null(),
                          "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set");
  }
  if (exactly) return validate_request(sub(request, "exactly"), at.child("exactly"), errors);
  const Items alternatives = request.items_at("firstAvailable");
  const Path list = at.child("firstAvailable");
  validate_list(alternatives, 8, list, errors, [&](const Value& alternative, const Path& here) {
    const std::string_view own = alternative.text_at("name");
    errors.invalid_each(here.child("name"), own, dns_label_errors(own));
    validate_request(alternative, here, errors);
  });
  if (alternatives.size() <= 8) refuse_duplicates(alternatives, "name", list, errors);
}

void validate_device_claim(const Value& spec, const Path& at, FieldErrors& errors) {
  const Value& claim = sub(spec, "devices");
  const Items requests = claim.items_at("requests");
  const Path devices = at.child("devices"), list = devices.child("requests");
  validate_list(requests, 32, list, errors,
                [&](const Value& request, const Path& here) { validate_device_request(request, here, errors); });
  if (requests.size() <= 32) refuse_duplicates(requests, "name", list, errors);
  const auto constraint = [&](const Value& item, const Path& here) {
    validate_request_references(item, requests, here, errors);
    if (is_set(item, "matchAttribute")) {
      validate_full_attribute_name(item.text_at("matchAttribute"), here.child("matchAttribute"), errors);
    } else if (is_set(item, "distinctAttribute")) {
      validate_full_attribute_name(item.text_at("distinctAttribute"), here.child("distinctAttribute"), errors);
    } else {
      errors.required(here,
                      "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are "
                      "set");
    }
  };
  validate_list(claim.items_at("constraints"), 32, devices.child("constraints"), errors, constraint);
  validate_list(claim.items_at("config"), 32, devices.child("config"), errors,
                [&](const Value& item, const Path& here) {
                  validate_request_references(item, requests, here, errors);
                  validate_configuration(item, here, errors);
                });
}

void validate_claim(Context&, const Value& object, FieldErrors& errors) {
  validate_device_claim(sub(object, "spec"), Path("spec"), errors);
}

void validate_claim_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  if (!semantic_equal(type_named("resource/v1.ResourceClaimSpec"), next.find("spec"), old.find("spec"))) {
    errors.invalid(Path("spec"), shown_internal(type_named("resource/v1.ResourceClaimSpec"), next.find("spec")),
                   kImmutable);
  }
}

// driver, pool and device, which the status names too.
void validate_device_id(const Value& holder, const Path& at, FieldErrors& errors) {
  validate_driver_name(holder.text_at("driver"), at.child("driver"), errors);
  validate_pool_name(holder.text_at("pool"), at.child("pool"), errors);
  const std::string_view device = holder.text_at("device");
  errors.invalid_each(at.child("device"), device, dns_label_errors(device));
}

void validate_allocation(const Value& allocation, Items requests, const Path& at, FieldErrors& errors) {
  const Path devices = at.child("devices");
  const Value& allocated = sub(allocation, "devices");
  validate_list(allocated.items_at("results"), 32, devices.child("results"), errors,
                [&](const Value& result, const Path& here) {
                  validate_request_reference(result.text_at("request"), requests, here.child("request"), errors);
                  validate_device_id(result, here, errors);
                  validate_binding_conditions(result, here, errors);
                });
  validate_list(allocated.items_at("config"), 64, devices.child("config"), errors,
                [&](const Value& config, const Path& here) {
                  constexpr std::string_view kSources[] = {"FromClaim", "FromClass"};
                  const std::string_view source = config.text_at("source");
                  if (source.empty()) {
                    errors.required(here.child("source"));
                  } else if (std::find(std::begin(kSources), std::end(kSources), source) == std::end(kSources)) {
                    errors.not_supported(here.child("source"), source, kSources);
                  }
                  validate_request_references(config, requests, here, errors);
                  validate_configuration(config, here, errors);
                });
  if (is_set(allocation, "nodeSelector")) {
    validate_node_selector(sub(allocation, "nodeSelector"), at.child("nodeSelector"), errors);
  }
}

// No name holds a line break.
std::string device_key(const Value& holder) {
  std::string key;
  for (const std::string_view part : {"driver", "pool", "device", "shareID"}) {
    key.append(holder.text_at(part)).append(1, '\n');
  }
  return key;
}

// As Go prints what names a device.
Value shown_device(Arena& arena, const Value& device) {
  MapBuilder shown(arena);
  shown.add("Driver", Value::string(device.text_at("driver")));
  shown.add("Pool", Value::string(device.text_at("pool")));
  shown.add("Device", Value::string(device.text_at("device")));
  shown.add("ShareID", Value::string(device.text_at("shareID")));
  return shown.build();
}

void validate_device_status(Arena& arena, const Value& device,
                            const std::unordered_set<std::string, KeyHash>& allocated, const Path& at,
                            FieldErrors& errors) {
  validate_device_id(device, at, errors);
  if (!allocated.contains(device_key(device))) {
    errors.invalid(at, shown_device(arena, device), "must be an allocated device in the claim");
  }
  const Items conditions = device.items_at("conditions");
  if (conditions.size() > 8) errors.too_many(at.child("conditions"), static_cast<int64_t>(conditions.size()), 8);
  validate_conditions(conditions, at.child("conditions"), errors);
}

void validate_claim_status(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status");
  const Value &allocation = sub(next, "status", "allocation"), &before = sub(old, "status", "allocation");
  const Items reserved = next.items_at("status", "reservedFor"), were_reserved = old.items_at("status", "reservedFor");
  const Path at_reserved = at.child("reservedFor"), at_devices = at.child("devices");
  validate_list(reserved, 256, at_reserved, errors, [&](const Value& consumer, const Path& here) {
    for (const std::string_view key : {"resource", "name", "uid"}) {
      if (consumer.text_at(key).empty()) errors.required(here.child(key));
    }
  });
  if (reserved.size() <= 256) refuse_duplicates(reserved, "uid", at_reserved, errors);
  std::unordered_set<std::string, KeyHash> allocated, known;
  for (const Value& result : sub(allocation, "devices").items_at("results")) allocated.insert(device_key(result));
  const Items devices = next.items_at("status", "devices");
  for (size_t i = 0; i < devices.size(); ++i) {
    validate_device_status(context.arena, devices[i], allocated, at_devices.index(i), errors);
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    if (known.insert(device_key(devices[i])).second) continue;
    errors.duplicate(at_devices.index(i), shown_device(context.arena, devices[i]));
  }
  if (allocation.is_null() && !reserved.empty()) {
    errors.forbidden(at_reserved, "may not be specified when `allocated` is not set");
  } else if (is_set(sub(next, "metadata"), "deletionTimestamp") &&
             !std::all_of(reserved.begin(), reserved.end(), [&](const Value& consumer) {
               return std::any_of(were_reserved.begin(), were_reserved.end(),
                                  [&](const Value& other) { return equal(consumer, other); });
             })) {
    errors.forbidden(at_reserved,
                     "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set");
  }
  if (allocation.is_null()) return;
  if (before.is_null()) {
    validate_allocation(allocation, next.items_at("spec", "devices", "requests"), at.child("allocation"), errors);
  } else if (!equal(allocation, before)) {
    errors.invalid(at.child("allocation"), shown_internal(type_named("resource/v1.AllocationResult"), &allocation),
                   kImmutable);
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
      // Go's UID with its first letter made small.
      errors.forbidden(at.child("metadata").child(member.key == "uid" ? "uID" : member.key), "cannot be set");
    }
  }
  validate_device_claim(sub(object, "spec", "spec"), at.child("spec"), errors);
}
void validate_claim_template_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_claim_template(context, next, errors);
  if (!equal(sub(next, "spec"), sub(old, "spec"))) {
    const types::Type& type = type_named("resource/v1.ResourceClaimTemplateSpec");
    errors.invalid(Path("spec"), shown_internal(type, next.find("spec")), kImmutable);
  }
}

// semver.org, 2.0.0.
bool is_version(std::string_view text) {
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const auto number = [&](std::string_view part) { return digits(part) && (part.size() == 1 || part.front() != '0'); };
  constexpr std::string_view kWord = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";
  const auto words = [&](std::string_view parts, bool release) {
    while (true) {
      const size_t dot = parts.find('.');
      const std::string_view part = parts.substr(0, dot);
      if (part.empty() || part.find_first_not_of(kWord) != std::string_view::npos) return false;
      if (release && digits(part) && !number(part)) return false;
      if (dot == std::string_view::npos) return true;
      parts.remove_prefix(dot + 1);
    }
  };
  if (const size_t plus = text.find('+'); plus != std::string_view::npos) {
    if (!words(text.substr(plus + 1), false)) return false;
    text = text.substr(0, plus);
  }
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    if (!words(text.substr(dash + 1), true)) return false;
    text = text.substr(0, dash);
  }
  const size_t first = text.find('.'), second = text.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return false;
  return number(text.substr(0, first)) && number(text.substr(first + 1, second - first - 1)) &&
         number(text.substr(second + 1));
}

void validate_attribute(const Value& attribute, const Path& at, FieldErrors& errors) {
  size_t values = 0;
  for (const std::string_view key : {"bool", "int", "string", "version"}) values += is_set(attribute, key);
  if (is_set(attribute, "string") && attribute.text_at("string").size() > 64) errors.too_long(at.child("string"), 64);
  if (is_set(attribute, "version")) {
    const std::string_view version = attribute.text_at("version");
    if (!is_version(version)) {
      errors.invalid(at.child("version"), version, "must be a string compatible with semver.org spec 2.0.0");
    }
    if (version.size() > 64) errors.too_long(at.child("version"), 64);
  }
  if (values == 0) errors.invalid(at, "", "exactly one value must be specified");
  if (values > 1) {
    errors.invalid(at, shown_internal(type_named("resource/v1.DeviceAttribute"), &attribute),
                   "exactly one value must be specified");
  }
}

void validate_taint(const Value& taint, const Path& at, FieldErrors& errors) {
  const std::string_view key = taint.text_at("key"), value = taint.text_at("value");
  errors.invalid_each(at.child("key"), key, qualified_name_errors(key));
  if (!value.empty()) errors.invalid_each(at.child("value"), value, label_value_errors(value));
  if (taint.text_at("effect").empty()) {
    errors.required(at.child("effect"));
  } else {
    validate_enum(taint, "effect", {"NoExecute", "NoSchedule", "None"}, at, errors);
  }
}

// The texts of what is set, as upstream lists them: {`nodeName`, `allNodes`}.
std::string set_fields(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "`" : ", `") + std::string(name) + "`";
  return "{" + out + "}";
}

void validate_only_true(const Value& holder, std::string_view key, std::vector<std::string_view>& set, const Path& at,
                        FieldErrors& errors) {
  if (!is_set(holder, key)) return;
  if (is_true(holder, key)) return set.push_back(key);
  errors.invalid(at.child(key), sub(holder, key), "must be either unset or set to true");
}

void validate_device_place(const Value& device, bool by_device, const Path& at, FieldErrors& errors) {
  if (!by_device) {
    if (is_set(device, "nodeName") || is_set(device, "nodeSelector") || is_set(device, "allNodes")) {
      errors.invalid(at, Value::null(),
                     "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to "
                     "true in the ResourceSlice spec");
    }
    return;
  }
  constexpr std::string_view kOne =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
      "true in the ResourceSlice spec";
  std::vector<std::string_view> set;
  if (is_set(device, "nodeName")) {
    const std::string_view node = device.text_at("nodeName");
    if (node.empty()) {
      errors.invalid(at.child("nodeName"), node, "must not be empty");
    } else {
      set.push_back("nodeName");
      errors.invalid_each(at.child("nodeName"), node, dns_subdomain_errors(node));
    }
  }
  if (is_set(device, "nodeSelector")) {
    set.push_back("nodeSelector");
    validate_node_selector(sub(device, "nodeSelector"), at.child("nodeSelector"), errors);
  }
  validate_only_true(device, "allNodes", set, at, errors);
  if (set.empty()) errors.required(at, kOne);
  if (set.size() > 1) errors.invalid(at, set_fields(set), kOne);
}

// Counters of a shared set, or what a device takes of one; `name` is the member that names the set.
void validate_counters(const Value& set, std::string_view name, const Path& at, FieldErrors& errors) {
  const std::string_view own = set.text_at(name);
  if (own.empty()) {
    errors.required(at.child(name));
  } else {
    errors.invalid_each(at.child(name), own, dns_label_errors(own));
  }
  constexpr size_t kMost = 32;
  const Path map = at.child("counters");
  const std::span<const Member> counters = set.members_at("counters");
  if (counters.empty()) return errors.required(map);
  if (counters.size() > kMost) return errors.too_many(map, static_cast<int64_t>(counters.size()), kMost);
  for (const Member& counter : counters) errors.invalid_each(map, counter.key, dns_label_errors(counter.key));
}

void validate_counter_sets(Items sets, int64_t most, std::string_view name, const Path& list, FieldErrors& errors) {
  validate_list(sets, most, list, errors,
                [&](const Value& set, const Path& here) { validate_counters(set, name, here, errors); });
  if (static_cast<int64_t>(sets.size()) <= most) refuse_duplicates(sets, name, list, errors);
}

void validate_device(const Value& device, bool by_device, const Path& at, FieldErrors& errors) {
  const std::string_view name = device.text_at("name");
  errors.invalid_each(at.child("name"), name, dns_label_errors(name));
  const std::span<const Member> attributes = device.members_at("attributes"), capacity = device.members_at("capacity");
  if (const size_t count = attributes.size() + capacity.size(); count > 32) {
    errors.invalid(at, static_cast<int64_t>(count), "the total number of attributes and capacities must not exceed 32");
  }
  for (const Member& attribute : attributes) {
    const Path list = at.child("attributes"), here = list.key(attribute.key);
    validate_attribute_name(attribute.key, here, errors);
    validate_attribute(attribute.value, here, errors);
  }
  for (const Member& amount : capacity) {
    const Path list = at.child("capacity");
    validate_attribute_name(amount.key, list.key(amount.key), errors);
  }
  validate_list(device.items_at("taints"), 16, at.child("taints"), errors,
                [&](const Value& taint, const Path& here) { validate_taint(taint, here, errors); });
  validate_counter_sets(device.items_at("consumesCounters"), 2, "counterSet", at.child("consumesCounters"), errors);
  validate_device_place(device, by_device, at, errors);
  validate_binding_conditions(device, at, errors);
}

void validate_pool(const Value& pool, const Path& at, FieldErrors& errors) {
  validate_pool_name(pool.text_at("name"), at.child("name"), errors);
  if (const int64_t count = pool.int_at_or(0, "resourceSliceCount"); count <= 0) {
    errors.invalid(at.child("resourceSliceCount"), count, kNotPositive);
  }
  if (const int64_t number = pool.int_at_or(0, "generation"); number < 0) {
    errors.invalid(at.child("generation"), number, "must be greater than or equal to zero");
  }
}

void validate_slice_spec(const Value& spec, const Value* before, FieldErrors& errors) {
  const Path at("spec");
  validate_driver_name(spec.text_at("driver"), at.child("driver"), errors);
  validate_pool(sub(spec, "pool"), at.child("pool"), errors);
  if (before != nullptr) {
    if (spec.text_at("pool", "name") != before->text_at("pool", "name")) {
      errors.invalid(at.child("pool.name"), spec.text_at("pool", "name"), kImmutable);
    }
    if (spec.text_at("driver") != before->text_at("driver")) {
      errors.invalid(at.child("driver"), spec.text_at("driver"), kImmutable);
    }
    if (!equal(sub(spec, "nodeName"), sub(*before, "nodeName"))) {
      errors.invalid(at.child("nodeName"), spec.find("nodeName"), kImmutable);
    }
  }
  constexpr std::string_view kOne =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  std::vector<std::string_view> set;
  if (is_set(spec, "nodeName")) {
    const std::string_view node = spec.text_at("nodeName");
    if (node.empty()) {
      errors.invalid(at.child("nodeName"), node, "must be either unset or set to a non-empty string");
    } else {
      set.push_back("nodeName");
      errors.invalid_each(at.child("nodeName"), node, dns_subdomain_errors(node));
    }
  }
  if (is_set(spec, "nodeSelector")) {
    set.push_back("nodeSelector");
    const Value& selector = sub(spec, "nodeSelector");
    validate_node_selector(selector, at.child("nodeSelector"), errors);
    if (selector.items_at("nodeSelectorTerms").size() != 1) {
      errors.invalid(at.child("nodeSelector.nodeSelectorTerms"),
                     shown_internal(type_named("core/v1.NodeSelector"), selector, "nodeSelectorTerms"),
                     "must have exactly one node selector term");
    }
  }
  validate_only_true(spec, "allNodes", set, at, errors);
  validate_only_true(spec, "perDeviceNodeSelection", set, at, errors);
  if (set.empty()) errors.required(at, kOne);
  if (set.size() > 1) {
    errors.invalid(at, set_fields(set), std::string(kOne) + ", but multiple fields are set");
  }
  const Items devices = spec.items_at("devices");
  if (!spec.items_at("sharedCounters").empty() && !devices.empty()) {
    errors.invalid(at, "", "only one of `sharedCounters` or `devices` is allowed");
  }
  const bool advanced = std::any_of(devices.begin(), devices.end(), [](const Value& device) {
    return !is_empty(device, "taints") || !is_empty(device, "consumesCounters");
  });
  const int64_t most = advanced ? 64 : 128;
  const Path list = at.child("devices");
  const bool by_device = is_true(spec, "perDeviceNodeSelection");
  validate_list(devices, most, list, errors,
                [&](const Value& device, const Path& here) { validate_device(device, by_device, here, errors); });
  if (static_cast<int64_t>(devices.size()) <= most) refuse_duplicates(devices, "name", list, errors);
  validate_counter_sets(spec.items_at("sharedCounters"), 8, "name", at.child("sharedCounters"), errors);
}

void validate_slice(Context&, const Value& object, FieldErrors& errors) {
  validate_slice_spec(sub(object, "spec"), nullptr, errors);
}

void validate_slice_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_slice_spec(sub(next, "spec"), &sub(old, "spec"), errors);
}

// Attributes with several values wait for a feature gate (DRAListTypeAttributes).
void drop_list_attributes(Draft::Node object) {
  for (Draft::Node device : object.child("spec").list("devices")) {
    for (const Member& attribute : device.value().members_at("attributes")) {
      for (const std::string_view key : {"bools", "ints", "strings", "versions"}) {
        if (attribute.value.has(key)) device.child("attributes").child(attribute.key).remove(key);
      }
    }
  }
}
// Kubernetes calls this a default. It is one of writes only: what is stored must read the same every time.
void add_taint_times(Context& context, Draft::Node object) {
  for (Draft::Node device : object.child("spec").list("devices")) {
    for (Draft::Node taint : device.list("taints")) {
      if (!is_set(taint.value(), "timeAdded")) taint.set("timeAdded", time_value(context.arena, context.now));
    }
  }
}

void create_slice(Context& context, Draft::Node object) {
  drop_list_attributes(object);
  add_taint_times(context, object);
}
void update_slice(Context& context, Draft::Node next, const Value&) {
  drop_list_attributes(next);
  add_taint_times(context, next);
}

}  // namespace

const Hooks kDeviceClassHooks = {
    .generation = Generation::Spec, .update_checks = {.whole = 1}, .validate = validate_device_class};
const Hooks kResourceClaimHooks = {.status_metadata = StatusMetadata::KeepObjectAndDeletion,
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
                                   .create = create_slice,
                                   .update = update_slice,
                                   .validate = validate_slice,
                                   .validate_update = validate_slice_update};

}  // namespace holdfast::kinds
