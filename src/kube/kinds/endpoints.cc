// Endpoints and EndpointSlice.

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "base/strings.h"
#include "kinds/all.h"
#include "kinds/ip.h"

namespace holdfast::kinds {
namespace {

// --- Endpoints ---

void default_endpoints(Arena&, const types::Resource&, Draft::Node object) {
  for (Draft::Node subset : object.list("subsets")) {
    for (Draft::Node port : subset.list("ports")) port.set_if_zero("protocol", Value::string("TCP"));
  }
}

void validate_addresses(const Value& subset, std::string_view list, const Path& at, FieldErrors& errors) {
  const std::span<const Value> addresses = subset.items_at(list);
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Path here = at.item(list, i);
    const std::string_view ip = addresses[i].text_at("ip"), host = addresses[i].text_at("hostname");
    validate_ip(ip, here.child("ip"), errors);
    if (!host.empty()) errors.invalid_each(here.child("hostname"), host, dns_label_errors(host));
    if (is_set(addresses[i], "nodeName")) {
      const std::string_view node = addresses[i].text_at("nodeName");
      errors.invalid_each(here.child("nodeName"), node, dns_subdomain_errors(node));
    }
    validate_endpoint_ip(ip, here.child("ip"), errors);
  }
}

void validate_endpoints(Context&, const Value& object, FieldErrors& errors) {
  const std::span<const Value> subsets = object.items_at("subsets");
  const Path list("subsets");
  for (size_t i = 0; i < subsets.size(); ++i) {
    const Path at = list.index(i);
    if (is_empty(subsets[i], "addresses") && is_empty(subsets[i], "notReadyAddresses")) {
      errors.required(at, "must specify `addresses` or `notReadyAddresses`");
    }
    validate_addresses(subsets[i], "addresses", at, errors);
    validate_addresses(subsets[i], "notReadyAddresses", at, errors);
    const std::span<const Value> ports = subsets[i].items_at("ports");
    for (size_t j = 0; j < ports.size(); ++j) {
      const Path here = at.item("ports", j);
      const std::string_view name = ports[j].text_at("name");
      if (ports.size() > 1 && name.empty()) {
        errors.required(here.child("name"));
      } else if (!name.empty()) {
        errors.invalid_each(here.child("name"), name, dns_label_errors(name));
      }
      const int64_t number = ports[j].int_at_or(0, "port");
      errors.invalid_each(here.child("port"), number, port_number_errors(number));
      validate_enum(ports[j], "protocol", {"SCTP", "TCP", "UDP"}, here, errors);
      if (is_set(ports[j], "appProtocol")) {
        const std::string_view protocol = ports[j].text_at("appProtocol");
        errors.invalid_each(here.child("appProtocol"), protocol, qualified_name_errors(protocol));
      }
    }
  }
}

void validate_endpoints_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  if (!equal(sub(next, "subsets"), sub(old, "subsets"))) validate_endpoints(context, next, errors);
}

// --- EndpointSlice ---

// Only writable in v1beta1.
void drop_topology(Draft::Node object) {
  for (Draft::Node endpoint : object.list("endpoints")) endpoint.remove("deprecatedTopology");
}
void create_slice(Context&, Draft::Node object) { drop_topology(object); }
void update_slice(Context&, Draft::Node next, const Value& old) {
  if (!equal(sub(next.value(), "endpoints"), sub(old, "endpoints"))) drop_topology(next);
}

void default_slice(Arena&, const types::Resource&, Draft::Node object) {
  for (Draft::Node port : object.list("ports")) {
    port.set_default("name", Value::string(""));
    port.set_default("protocol", Value::string("TCP"));
  }
}

void validate_domain(std::string_view name, const Path& at, FieldErrors& errors) {
  if (name.empty()) return errors.required(at);
  if (name.ends_with('.')) name.remove_suffix(1);
  const std::string joined = join(dns_subdomain_errors(name), ",");
  if (!joined.empty()) return errors.invalid(at, name, joined);
  if (name.find('.') == std::string_view::npos) {
    errors.invalid(at, name, "should be a domain with at least two segments separated by dots");
  }
}

void validate_endpoint(const Value& endpoint, std::string_view type, const Path& at, FieldErrors& errors) {
  const std::span<const Value> addresses = endpoint.items_at("addresses");
  const Path list = at.child("addresses");
  if (addresses.empty()) errors.required(list, "must contain at least 1 address");
  if (addresses.size() > 100) errors.too_many(list, static_cast<int64_t>(addresses.size()), 100);
  for (size_t i = 0; i < addresses.size(); ++i) {
    const std::string_view address = addresses[i].as_string();
    const Path here = list.index(i);
    if (type == "FQDN") {
      validate_domain(address, here, errors);
    } else if (type == "IPv4" || type == "IPv6") {
      const std::string problem = type == "IPv6" ? canonical_ip_problem(address) : ip_problem(address);
      if (!problem.empty()) {
        errors.invalid(here, address, problem);
        continue;
      }
      const bool v6 = IpAddress::parse(address)->v6;
      if (v6 != (type == "IPv6")) errors.invalid(list, address, "must be an " + std::string(type) + " address");
      validate_endpoint_ip(address, here, errors);
    }
  }
  if (is_set(endpoint, "nodeName")) {
    const std::string_view node = endpoint.text_at("nodeName");
    errors.invalid_each(at.child("nodeName"), node, dns_subdomain_errors(node));
  }
  if (is_set(endpoint, "hostname")) {
    const std::string_view host = endpoint.text_at("hostname");
    errors.invalid_each(at.child("hostname"), host, dns_label_errors(host));
  }
  for (const std::string_view hints : {"forZones", "forNodes"}) {
    const std::span<const Value> items = endpoint.items_at("hints", hints);
    const Path hints_at = at.child("hints");
    if (items.size() > 8) return errors.too_many(hints_at.child(hints), static_cast<int64_t>(items.size()), 8);
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string_view name = items[i].text_at("name");
      const Path here = hints_at.item(hints, i);
      const std::span<const Value> before = items.first(i);
      if (std::any_of(before.begin(), before.end(),
                      [&](const Value& other) { return other.text_at("name") == name; })) {
        errors.duplicate(here.child("name"), name);
      }
      errors.invalid_each(here.child("name"), name,
                          hints == "forZones" ? label_value_errors(name) : dns_subdomain_errors(name));
    }
  }
}

void validate_slice_ports(const Value& object, FieldErrors& errors) {
  const std::span<const Value> ports = object.items_at("ports");
  const Path at("ports");
  if (ports.size() > 20000) return errors.too_many(at, static_cast<int64_t>(ports.size()), 20000);
  std::unordered_set<std::string_view, KeyHash> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path here = at.index(i);
    const std::string_view name = ports[i].text_at("name");
    if (!name.empty()) errors.invalid_each(here.child("name"), name, dns_label_errors(name));
    if (!names.insert(name).second) errors.duplicate(here.child("name"), name);
    validate_enum(ports[i], "protocol", {"SCTP", "TCP", "UDP"}, here, errors);
    if (is_set(ports[i], "appProtocol")) {
      const std::string_view protocol = ports[i].text_at("appProtocol");
      errors.invalid_each(here.child("appProtocol"), protocol, qualified_name_errors(protocol));
    }
  }
}

void validate_slice_endpoints(const Value& object, FieldErrors& errors) {
  const std::span<const Value> endpoints = object.items_at("endpoints");
  const Path at("endpoints");
  if (endpoints.size() > 1000) return errors.too_many(at, static_cast<int64_t>(endpoints.size()), 1000);
  const std::string_view type = object.text_at("addressType");
  for (size_t i = 0; i < endpoints.size(); ++i) validate_endpoint(endpoints[i], type, at.index(i), errors);
}

void validate_slice_but_endpoints(const Value& object, FieldErrors& errors) {
  const std::string_view type = object.text_at("addressType");
  if (type.empty()) {
    errors.required(Path("addressType"));
  } else if (type != "FQDN" && type != "IPv4" && type != "IPv6") {
    errors.not_supported(Path("addressType"), type, {"FQDN", "IPv4", "IPv6"});
  }
  validate_slice_ports(object, errors);
}

void validate_slice(Context&, const Value& object, FieldErrors& errors) {
  validate_slice_but_endpoints(object, errors);
  validate_slice_endpoints(object, errors);
}

void validate_slice_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_slice_but_endpoints(next, errors);
  if (!equal(sub(next, "endpoints"), sub(old, "endpoints"))) validate_slice_endpoints(next, errors);
  const std::string_view type = next.text_at("addressType");
  if (type != old.text_at("addressType")) errors.invalid(Path("addressType"), type, kImmutable);
}

bool is_managed_by(const Value& object, std::string_view label, std::initializer_list<std::string_view> controllers) {
  const std::string_view manager = object.text_at("metadata", "labels", label);
  for (const std::string_view controller : controllers) {
    if (manager == controller) return true;
  }
  return false;
}

void warn_endpoints(Context&, const Value& object, const Value*, Warnings& texts) {
  if (is_managed_by(object, "endpoints.kubernetes.io/managed-by", {"endpoint-controller"})) return;
  const std::span<const Value> subsets = object.items_at("subsets");
  const Path list("subsets");
  for (size_t i = 0; i < subsets.size(); ++i) {
    const Path at = list.index(i);
    for (const std::string_view key : {"addresses", "notReadyAddresses"}) {
      const std::span<const Value> addresses = subsets[i].items_at(key);
      for (size_t j = 0; j < addresses.size(); ++j) {
        const Path here = at.item(key, j);
        warn_about_ip(addresses[j].text_at("ip"), here.child("ip"), texts);
      }
    }
  }
}

void warn_slice(Context&, const Value& object, const Value* old, Warnings& texts) {
  if (old == nullptr && object.text_at("addressType") == "FQDN") {
    texts.add("spec.addressType: FQDN endpoints are deprecated");
  }
  if (is_managed_by(object, "endpointslice.kubernetes.io/managed-by",
                    {"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})) {
    return;
  }
  const std::span<const Value> endpoints = object.items_at("endpoints");
  const Path list("endpoints");
  for (size_t i = 0; i < endpoints.size(); ++i) {
    const Path at = list.index(i);
    const std::span<const Value> addresses = endpoints[i].items_at("addresses");
    for (size_t j = 0; j < addresses.size(); ++j) {
      warn_about_ip(addresses[j].as_string(), at.item("addresses", j), texts);
    }
  }
}

}  // namespace

const Hooks kEndpointsHooks = {.update_checks = {.whole = 1, .compares_first = true},
                               .defaults = default_endpoints,
                               .validate = validate_endpoints,
                               .validate_update = validate_endpoints_update,
                               .warn = warn_endpoints};
const Hooks kEndpointSliceHooks = {.generation = Generation::AllButMetadata,
                                   .update_checks = {.whole = 1, .compared = 0},
                                   .defaults = default_slice,
                                   .create = create_slice,
                                   .update = update_slice,
                                   .validate = validate_slice,
                                   .validate_update = validate_slice_update,
                                   .warn = warn_slice};

}  // namespace holdfast::kinds
