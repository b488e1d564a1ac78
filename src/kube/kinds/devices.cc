// resource.k8s.io: claims for devices, and the devices that drivers publish.

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "base/strings.h"
#include "base/text.h"
#include "cel/cel.h"
#include "kinds/all.h"
#include "kinds/ip.h"
#include "kinds/names.h"
#include "kinds/pod.h"
#include "kinds/quantity.h"

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

// Checks each item, or reports only that the list is too long.
template <class Check>
void validate_list(Items items, int64_t most, const Path& at, FieldErrors& errors, Check check) {
  if (static_cast<int64_t>(items.size()) > most) return errors.too_many(at, static_cast<int64_t>(items.size()), most);
  for (size_t i = 0; i < items.size(); ++i) check(items[i], at.index(i));
}

void refuse_duplicates(Items items, std::string_view key, const Path& at, FieldErrors& errors) {
  const auto name_of = [&](const Value& item) { return key.empty() ? text_of(item) : item.text_at(key); };
  Names known;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!known.add(name_of(items[i]))) errors.duplicate(at.index(i), name_of(items[i]));
  }
}

// Driver names are case-insensitive.
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

// Conditions that a device must have before a pod is bound to its node, and those that mean that binding has failed.
void validate_binding_conditions(const Value& holder, const Path& at, FieldErrors& errors) {
  const Items needed = holder.items_at("bindingConditions"), failures = holder.items_at("bindingFailureConditions");
  const Path at_needed = at.child("bindingConditions"), at_failures = at.child("bindingFailureConditions");
  const auto label_name = [&](const Value& name, const Path& here) {
    errors.invalid_each(here, text_of(name), qualified_name_errors(text_of(name)));
  };
  constexpr int64_t kMost = 4;
  validate_list(needed, kMost, at_needed, errors, label_name);
  validate_list(failures, kMost, at_failures, errors, label_name);
  refuse_duplicates(needed, {}, at_needed, errors);
  Names known_needed, known_failures;
  for (const Value& name : needed) known_needed.add(text_of(name));
  for (size_t i = 0; i < failures.size(); ++i) {
    const std::string_view failure = text_of(failures[i]);
    if (!known_failures.add(failure)) errors.duplicate(at_failures.index(i), failure);
    if (contains(known_needed, failure)) {
      errors.invalid(at_failures.index(i), failure, "bindingFailureConditions must not overlap with bindingConditions");
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
  if (rest.find('/') != std::string_view::npos) return;  // kube-apiserver does not report more than one slash.
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
  errors.require_valid(at.child("deviceClassName"), name, dns_subdomain_errors);
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

enum class Stored : bool { No, Yes };  // Whether the validated value is already stored.

// JSON specific to a driver.
void validate_driver_data(const Value& data, Stored stored, const Path& at, FieldErrors& errors) {
  constexpr int64_t kMaxBytes = 10 * 1024;
  if (data.is_null()) return errors.required(at);
  if (stored == Stored::No && data.is_raw() && std::ssize(data.raw_json()) > kMaxBytes) {
    return errors.too_long(at, kMaxBytes);
  }
  if (!data.is_map() && !(data.is_raw() && data.raw_json().starts_with('{'))) {
    errors.invalid(at, "<value omitted>", "must be a valid JSON object");
  }
}

void validate_configuration(const Value& config, Stored stored, const Path& at, FieldErrors& errors) {
  if (!is_set(config, "opaque")) return errors.required(at.child("opaque"));
  const Value& opaque = sub(config, "opaque");
  const Path here = at.child("opaque");
  validate_driver_name(opaque.text_at("driver"), here.child("driver"), errors);
  validate_driver_data(sub(opaque, "parameters"), stored, here.child("parameters"), errors);
}

// A prefix for generated names is not validated.
Messages name_is_whole_subdomain(std::string_view name, bool prefix) {
  return prefix ? Messages() : dns_subdomain_errors(name);
}

void validate_class_spec(const Value& spec, const Value* before, FieldErrors& errors) {
  const Path at("spec");
  validate_selectors(spec, at, errors);
  const bool stored = before != nullptr && equal(sub(spec, "config"), sub(*before, "config"));
  validate_list(spec.items_at("config"), 32, at.child("config"), errors, [&](const Value& item, const Path& here) {
    validate_configuration(item, stored ? Stored::Yes : Stored::No, here, errors);
  });
  if (is_set(spec, "extendedResourceName") && !is_extended_resource(spec.text_at("extendedResourceName"))) {
    errors.invalid(at.child("extendedResourceName"), spec.text_at("extendedResourceName"),
                   "must be a valid extended resource name");
  }
}
void validate_device_class(Context&, const Value& object, FieldErrors& errors) {
  validate_class_spec(sub(object, "spec"), nullptr, errors);
}
void validate_device_class_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_class_spec(sub(next, "spec"), &sub(old, "spec"), errors);
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
                  validate_configuration(item, Stored::No, here, errors);
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

// The error for an invalid UUID, in the words of github.com/google/uuid.
std::string uuid_error(std::string_view text) {
  constexpr size_t kLength = 36;
  constexpr std::string_view kPrefix = "urn:uuid:", kHex = "0123456789abcdefABCDEF";
  if (text.size() == kLength + kPrefix.size()) {
    if (to_lower(text.substr(0, kPrefix.size())) != kPrefix) {
      return "invalid urn prefix: " + go_quote(text.substr(0, kPrefix.size()));
    }
    text.remove_prefix(kPrefix.size());
  } else if (text.size() == kLength + 2) {
    if (!text.starts_with('{') || !text.ends_with('}')) return "invalid bracketed UUID format";
    text = text.substr(1, kLength);
  } else if (text.size() != kLength && text.size() != kLength - 4) {
    return "invalid UUID length: " + std::to_string(text.size());
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = text.size() == kLength && (i == 8 || i == 13 || i == 18 || i == 23);
    if (dash ? text[i] != '-' : kHex.find(text[i]) == std::string_view::npos) return "invalid UUID format";
  }
  return {};
}

void validate_share(const Value& holder, const Path& at, FieldErrors& errors) {
  if (!is_set(holder, "shareID")) return;
  const std::string_view id = holder.text_at("shareID");
  const std::string wrong = uuid_error(id);
  if (!wrong.empty()) {
    errors.invalid(at.child("shareID"), id, "error validating uid: " + wrong);
  } else if (id.size() != 36 || id != to_lower(id)) {
    errors.invalid(at.child("shareID"), id,
                   "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
                   "hexadecimal characters");
  }
}

// driver, pool and device, which the status refers to as well.
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
                  validate_share(result, here, errors);
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
                  validate_configuration(config, Stored::No, here, errors);
                });
  if (is_set(allocation, "nodeSelector")) {
    validate_node_selector(sub(allocation, "nodeSelector"), at.child("nodeSelector"), errors);
  }
}

// Names contain no line breaks.
std::string device_key(const Value& holder) {
  std::string key;
  for (const std::string_view part : {"driver", "pool", "device", "shareID"}) {
    key.append(holder.text_at(part)).append(1, '\n');
  }
  return key;
}

// The identity of a device as printed by Go.
Value shown_device(Arena& arena, const Value& device) {
  MapBuilder shown(arena);
  shown.add("Driver", Value::string(device.text_at("driver")));
  shown.add("Pool", Value::string(device.text_at("pool")));
  shown.add("Device", Value::string(device.text_at("device")));
  shown.add("ShareID", Value::string(device.text_at("shareID")));
  return shown.build();
}

// An address with a prefix length, in canonical form.
void validate_interface_address(std::string_view text, const Path& at, FieldErrors& errors) {
  const std::optional<IpNetwork> network = IpNetwork::parse(text);
  if (!network) {
    return errors.invalid(at, text, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)");
  }
  const int prefix = !network->address.v6 && network->prefix > 32 ? network->prefix - 96 : network->prefix;
  const std::string canonical = network->address.text() + "/" + std::to_string(prefix);
  if (text != canonical) errors.invalid(at, text, "must be in canonical form (" + go_quote(canonical) + ")");
}

void validate_network_data(const Value& data, const Path& at, FieldErrors& errors) {
  constexpr int64_t kMaxInterfaceName = 256, kMaxHardwareAddress = 128, kMaxAddresses = 16;
  if (std::ssize(data.text_at("interfaceName")) > kMaxInterfaceName) {
    errors.too_long(at.child("interfaceName"), kMaxInterfaceName);
  }
  if (std::ssize(data.text_at("hardwareAddress")) > kMaxHardwareAddress) {
    errors.too_long(at.child("hardwareAddress"), kMaxHardwareAddress);
  }
  const Items addresses = data.items_at("ips");
  const Path list = at.child("ips");
  validate_list(addresses, kMaxAddresses, list, errors, [&](const Value& address, const Path& here) {
    validate_interface_address(text_of(address), here, errors);
  });
  if (std::ssize(addresses) <= kMaxAddresses) refuse_duplicates(addresses, {}, list, errors);
}

void validate_device_status(Arena& arena, const Value& device,
                            const std::unordered_set<std::string, KeyHash>& allocated, const Path& at,
                            FieldErrors& errors) {
  validate_device_id(device, at, errors);
  validate_share(device, at, errors);
  if (!allocated.contains(device_key(device))) {
    errors.invalid(at, shown_device(arena, device), "must be an allocated device in the claim");
  }
  const Items conditions = device.items_at("conditions");
  if (conditions.size() > 8) errors.too_many(at.child("conditions"), static_cast<int64_t>(conditions.size()), 8);
  validate_conditions(conditions, at.child("conditions"), errors);
  if (device.has("data")) validate_driver_data(sub(device, "data"), Stored::No, at.child("data"), errors);
  validate_network_data(sub(device, "networkData"), at.child("networkData"), errors);
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

// Drops the status of devices that are no longer allocated.
void update_claim_status(Context& context, Draft::Node next, const Value& old) {
  const Value& status = sub(next.value(), "status");
  std::unordered_set<std::string, KeyHash> gone;
  for (const Value& result : old.items_at("status", "allocation", "devices", "results"))
    gone.insert(device_key(result));
  for (const Value& result : status.items_at("allocation", "devices", "results")) gone.erase(device_key(result));
  const Items devices = status.items_at("devices");
  ListBuilder kept(context.arena);
  for (const Value& device : devices) {
    if (!gone.contains(device_key(device))) kept.add(device);
  }
  const Value list = kept.build();
  if (list.count() == devices.size()) return;
  if (list.count() == 0) {
    next.child("status").remove("devices");
  } else {
    next.child("status").set("devices", list);
  }
}

void validate_claim_template(Context& context, const Value& object, FieldErrors& errors) {
  const Path at("spec"), metadata_at = at.child("metadata");
  // Only labels and annotations may be set in the metadata of a template.
  const Value &metadata = sub(object, "spec", "metadata"), &sent = sub(context.sent, "spec", "metadata");
  validate_annotations(metadata.find("annotations"), metadata_at.child("annotations"), errors);
  validate_labels(metadata.find("labels"), metadata_at.child("labels"), errors);
  for (const types::Field* field : type_named("meta/v1.ObjectMeta").members) {
    if (field->name == "annotations" || field->name == "labels") continue;
    // Unlike elsewhere, a list that was sent empty does not count as absent here.
    if (is_empty(metadata, field->name) && !sub(sent, field->name).is_list()) continue;
    // Go's UID with a lower-case first letter.
    errors.forbidden(metadata_at.child(field->name == "uid" ? "uID" : field->name), "cannot be set");
  }
  validate_device_claim(sub(object, "spec", "spec"), at.child("spec"), errors);
}
void validate_claim_template_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_claim_template(context, next, errors);
  const types::Type& type = type_named("resource/v1.ResourceClaimTemplateSpec");
  if (!semantic_equal(type, next.find("spec"), old.find("spec"))) {
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
    for (const std::string_view part : split(parts, '.')) {
      if (part.empty() || part.find_first_not_of(kWord) != std::string_view::npos) return false;
      if (release && digits(part) && !number(part)) return false;
    }
    return true;
  };
  if (const size_t plus = text.find('+'); plus != std::string_view::npos) {
    if (!words(text.substr(plus + 1), false)) return false;
    text = text.substr(0, plus);
  }
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    if (!words(text.substr(dash + 1), true)) return false;
    text = text.substr(0, dash);
  }
  const std::vector<std::string_view> numbers = split(text, '.');
  return numbers.size() == 3 && std::all_of(numbers.begin(), numbers.end(), number);
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

// A long key is shown truncated.
std::string shown_key(std::string_view key) {
  constexpr size_t kLongest = 63 + 1 + 32, kBesideDots = kLongest - 3;
  if (key.size() <= kLongest) return std::string(key);
  return std::string(key.substr(0, (kBesideDots + 1) / 2)) + "..." +
         std::string(key.substr(key.size() - kBesideDots / 2));
}

// The values that a request may use; the default must be one of them.
void validate_valid_values(const Value& policy, const Quantity& capacity, const Path& at, FieldErrors& errors) {
  constexpr int64_t kMostValues = 10;
  const Items values = policy.items_at("validValues");
  const Quantity usual = quantity_of(policy.find("default"));
  for (size_t i = 1; i < values.size(); ++i) {
    if (quantity_of(&values[i - 1]) > quantity_of(&values[i])) {
      errors.invalid(at.index(i), quantity_of(&values[i]).text(), "values must be sorted in ascending order");
    }
  }
  bool has_default = false;
  validate_list(values, kMostValues, at, errors, [&](const Value& value, const Path& here) {
    const Quantity option = quantity_of(&value);
    if (option > capacity) {
      errors.invalid(here, option.text(), "option is larger than capacity value: " + capacity.text());
    }
    has_default = has_default || option == usual;
  });
  if (std::ssize(values) <= kMostValues) {
    std::unordered_set<int64_t> known;
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t number = quantity_of(&values[i]).value();
      if (!known.insert(number).second) errors.duplicate(at.index(i), std::to_string(number));
    }
  }
  if (!has_default) errors.invalid(at, usual.text(), "default value is not valid according to the requestPolicy");
}

void validate_step(const Quantity& value, const Quantity& least, const Quantity& step, const Path& at,
                   FieldErrors& errors) {
  if (step.value() != 0 && (value.value() - least.value()) % step.value() == 0) return;
  errors.invalid(at, value.text(),
                 "value is not a multiple of a given step (" + step.text() + ") from (" + least.text() + ")");
}

void validate_valid_range(const Value& policy, const Quantity& capacity, const Path& at, FieldErrors& errors) {
  const Value& range = sub(policy, "validRange");
  const Quantity usual = quantity_of(policy.find("default")), least = quantity_of(range.find("min"));
  const Path min = at.child("min"), max = at.child("max"), step = at.child("step");
  if (!is_set(range, "min")) return errors.required(min, "required when validRange is defined");
  if (least > capacity) errors.invalid(min, least.text(), "min is larger than capacity value: " + capacity.text());
  if (usual < least) errors.invalid(min, usual.text(), "default is less than min: " + least.text());
  const Quantity most = quantity_of(range.find("max"));
  if (is_set(range, "max")) {
    if (least > most) errors.invalid(max, least.text(), "min is larger than max: " + most.text());
    if (most > capacity) errors.invalid(max, most.text(), "max is larger than capacity value: " + capacity.text());
    if (usual > most) errors.invalid(max, usual.text(), "default is more than max: " + most.text());
  }
  if (!is_set(range, "step")) return;
  const Quantity one = quantity_of(range.find("step")), first = least + one;
  if (first > capacity) {
    errors.invalid(step, one.text(), "one step " + first.text() + " is larger than capacity value: " + capacity.text());
  }
  validate_step(usual, least, one, step, errors);
  if (is_set(range, "max")) validate_step(most, least, one, step, errors);
}

void validate_capacity(const Value& capacity, bool shared, const Path& at, FieldErrors& errors) {
  if (!is_set(capacity, "requestPolicy")) return;
  const Path here = at.child("requestPolicy");
  if (!shared) return errors.forbidden(here, "allowMultipleAllocations must be true");
  const Value& policy = sub(capacity, "requestPolicy");
  const bool values = !policy.items_at("validValues").empty(), range = is_set(policy, "validRange");
  if (values && range) {
    return errors.forbidden(
        here, R"(exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time)");
  }
  if (!values && !range) return;
  const std::string_view kind = values ? "validValues" : "validRange";
  if (!is_set(policy, "default")) {
    return errors.required(here.child("default"), "required when " + std::string(kind) + " is defined");
  }
  const Quantity whole = quantity_of(capacity.find("value"));
  (values ? validate_valid_values : validate_valid_range)(policy, whole, here.child(kind), errors);
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

// The names of the fields that are set, in kube-apiserver's format: {`nodeName`, `allNodes`}.
std::string set_fields(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "`" : ", `") + std::string(name) + "`";
  return "{" + out + "}";
}

// The node of a slice or device, if it has one: then adds "nodeName" to `set`.
void validate_node_name(const Value& object, std::string_view empty_error, std::vector<std::string_view>& set,
                        const Path& at, FieldErrors& errors) {
  if (!is_set(object, "nodeName")) return;
  const std::string_view node = object.text_at("nodeName");
  if (node.empty()) return errors.invalid(at.child("nodeName"), node, empty_error);
  set.push_back("nodeName");
  errors.invalid_each(at.child("nodeName"), node, dns_subdomain_errors(node));
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
  validate_node_name(device, "must not be empty", set, at, errors);
  if (is_set(device, "nodeSelector")) {
    set.push_back("nodeSelector");
    validate_node_selector(sub(device, "nodeSelector"), at.child("nodeSelector"), errors);
  }
  validate_only_true(device, "allNodes", set, at, errors);
  if (set.empty()) errors.required(at, kOne);
  if (set.size() > 1) errors.invalid(at, set_fields(set), kOne);
}

// Counters of a shared set, or a device's consumption of them; `name` is the member that names the set.
void validate_counters(const Value& set, std::string_view name, const Path& at, FieldErrors& errors) {
  const std::string_view own = set.text_at(name);
  errors.require_valid(at.child(name), own, dns_label_errors);
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
  const Path attributes_at = at.child("attributes"), capacity_at = at.child("capacity");
  for (const Member& attribute : attributes) {
    validate_attribute_name(attribute.key, attributes_at, errors);
    const std::string key = shown_key(attribute.key);
    validate_attribute(attribute.value, attributes_at.key(key), errors);
  }
  for (const Member& amount : capacity) {
    validate_attribute_name(amount.key, capacity_at, errors);
    const std::string key = shown_key(amount.key);
    validate_capacity(amount.value, is_true(device, "allowMultipleAllocations"), capacity_at.key(key), errors);
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
  validate_node_name(spec, "must be either unset or set to a non-empty string", set, at, errors);
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

// Attributes with several values (DRAListTypeAttributes) and mappings to a node's own resources
// (DRANodeAllocatableResources) need feature gates that are off.
void drop_gated_fields(Draft::Node object) {
  for (Draft::Node device : object.child("spec").list("devices")) {
    for (const Member& attribute : device.value().members_at("attributes")) {
      for (const std::string_view key : {"bools", "ints", "strings", "versions"}) {
        if (attribute.value.has(key)) device.child("attributes").child(attribute.key).remove(key);
      }
    }
    device.remove("nodeAllocatableResourceMappings");
  }
}
// A default in Kubernetes, but applied here only on writes: a stored object must read the same every time.
void add_taint_times(Context& context, Draft::Node object) {
  for (Draft::Node device : object.child("spec").list("devices")) {
    for (Draft::Node taint : device.list("taints")) {
      if (!is_set(taint.value(), "timeAdded")) taint.set("timeAdded", time_value(context.arena, context.now));
    }
  }
}

void create_slice(Context& context, Draft::Node object) {
  drop_gated_fields(object);
  add_taint_times(context, object);
}
void update_slice(Context& context, Draft::Node next, const Value&) {
  drop_gated_fields(next);
  add_taint_times(context, next);
}

void warn_about_slice(Context&, const Value& object, const Value*, Warnings& texts) {
  const std::string_view driver = object.text_at("spec", "driver");
  if (driver == to_lower(driver)) return;
  texts.add("spec.driver: driver names should be lowercase; " + go_quote(driver) + " contains uppercase characters");
}

}  // namespace

const Hooks kDeviceClassHooks = {.name = name_is_whole_subdomain,
                                 .generation = Generation::Spec,
                                 .update_checks = {.whole = 1},
                                 .validate = validate_device_class,
                                 .validate_update = validate_device_class_update};
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
const Hooks kResourceSliceHooks = {.generation = Generation::SpecAsSent,
                                   .create = create_slice,
                                   .update = update_slice,
                                   .validate = validate_slice,
                                   .validate_update = validate_slice_update,
                                   .warn = warn_about_slice};

}  // namespace holdfast::kinds
