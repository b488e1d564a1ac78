// networking.k8s.io.

#include <algorithm>

#include "kinds/all.h"
#include "kinds/ip.h"
#include "kinds/pod.h"

namespace holdfast::kinds {
namespace {

// An object of another kind: apiGroup, kind and name.
void validate_reference(const Value& reference, const Path& at, FieldErrors& errors) {
  if (is_set(reference, "apiGroup")) {
    const std::string_view group = reference.text_at("apiGroup");
    errors.invalid_each(at.child("apiGroup"), group, dns_subdomain_errors(group));
  }
  for (const std::string_view key : {"kind", "name"}) {
    errors.require_valid(at.child(key), reference.text_at(key), path_segment_errors);
  }
}

// --- Ingress ---

void validate_backend(const Value& backend, const Path& at, FieldErrors& errors) {
  const bool resource = is_set(backend, "resource"), service = is_set(backend, "service");
  if (resource && service) return errors.invalid(at, "", "cannot set both resource and service backends");
  if (resource) {
    validate_reference(sub(backend, "resource"), at.child("resource"), errors);
  } else if (service) {
    const std::string_view name = backend.text_at("service", "name"), port = backend.text_at("service", "port", "name");
    const int64_t number = backend.int_at_or(0, "service", "port", "number");
    errors.require_valid(at.child("service.name"), name, dns_label_errors);
    if (!port.empty() && number != 0) {
      errors.invalid(at, "", "cannot set both port name & port number");
    } else if (!port.empty()) {
      errors.invalid_each(at.child("service.port.name"), port, port_name_errors(port));
    } else if (number != 0) {
      errors.invalid_each(at.child("service.port.number"), number, port_number_errors(number));
    } else {
      errors.required(at, "port name or number is required");
    }
  } else {
    errors.invalid(at, "", "resource or service backend is required");
  }
}

void validate_host(std::string_view host, const Path& at, FieldErrors& errors) {
  errors.invalid_each(
      at, host,
      host.find('*') != std::string_view::npos ? wildcard_subdomain_errors(host) : dns_subdomain_errors(host));
}

void validate_path(const Value& path, const Path& at, FieldErrors& errors) {
  if (!is_set(path, "pathType")) return errors.required(at.child("pathType"), "pathType must be specified");
  const std::string_view type = path.text_at("pathType"), text = path.text_at("path");
  const Path here = at.child("path");
  if (type == "Exact" || type == "Prefix") {
    if (!text.starts_with('/')) errors.invalid(here, text, "must be an absolute path");
    for (const std::string_view sequence : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (text.find(sequence) != std::string_view::npos) {
        errors.invalid(here, text, "must not contain '" + std::string(sequence) + "'");
      }
    }
    for (const std::string_view suffix : {"/..", "/."}) {
      if (text.ends_with(suffix)) errors.invalid(here, text, "cannot end with '" + std::string(suffix) + "'");
    }
  } else if (type == "ImplementationSpecific") {
    if (!text.empty() && !text.starts_with('/')) errors.invalid(here, text, "must be an absolute path");
  } else {
    errors.not_supported(at.child("pathType"), type, {"Exact", "ImplementationSpecific", "Prefix"});
  }
  validate_backend(sub(path, "backend"), at.child("backend"), errors);
}

void validate_ingress_spec(const Value& spec, const Path& at, FieldErrors& errors) {
  const std::span<const Value> rules = spec.items_at("rules"), tls = spec.items_at("tls");
  if (rules.empty() && !is_set(spec, "defaultBackend")) {
    errors.invalid(at, spec.find("rules"), "either `defaultBackend` or `rules` must be specified");
  }
  if (is_set(spec, "defaultBackend")) {
    validate_backend(sub(spec, "defaultBackend"), at.child("defaultBackend"), errors);
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    const Path here = at.item("rules", i), http = here.child("http");
    const std::string_view host = rules[i].text_at("host");
    if (!host.empty()) {
      if (IpAddress::parse(host)) errors.invalid(here.child("host"), host, "must be a DNS name, not an IP address");
      validate_host(host, here.child("host"), errors);
    }
    if (!is_set(rules[i], "http")) continue;
    const std::span<const Value> paths = rules[i].items_at("http", "paths");
    if (paths.empty()) errors.required(http.child("paths"));
    for (size_t j = 0; j < paths.size(); ++j) validate_path(paths[j], http.item("paths", j), errors);
  }
  for (size_t i = 0; i < tls.size(); ++i) {
    const Path here = at.item("tls", i);
    const std::span<const Value> hosts = tls[i].items_at("hosts");
    for (size_t j = 0; j < hosts.size(); ++j) validate_host(hosts[j].as_string(), here.item("hosts", j), errors);
    const std::string_view secret = tls[i].text_at("secretName");
    if (!secret.empty()) errors.invalid_each(here.child("secretName"), secret, dns_subdomain_errors(secret));
  }
  if (is_set(spec, "ingressClassName")) {
    const std::string_view name = spec.text_at("ingressClassName");
    errors.invalid_each(at.child("ingressClassName"), name, dns_subdomain_errors(name));
  }
}

constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";

void validate_ingress(Context&, const Value& object, FieldErrors& errors) {
  validate_ingress_spec(sub(object, "spec"), Path("spec"), errors);
  const Value* note = object.get("metadata", "annotations", kClassAnnotation);
  if (note != nullptr && is_set(sub(object, "spec"), "ingressClassName") &&
      note->as_string() != object.text_at("spec", "ingressClassName")) {
    const Path annotations("annotations");
    errors.invalid(annotations.child(kClassAnnotation), *note, "must match `ingressClassName` when both are specified");
  }
}

void validate_ingress_update(Context&, const Value& next, const Value&, FieldErrors& errors) {
  validate_ingress_spec(sub(next, "spec"), Path("spec"), errors);
}

void validate_ingress_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status.loadBalancer");
  const std::span<const Value> ingress = next.items_at("status", "loadBalancer", "ingress");
  const Names existing = balancer_ips(old);
  for (size_t i = 0; i < ingress.size(); ++i) {
    const Path here = at.item("ingress", i);
    const std::string_view ip = ingress[i].text_at("ip");
    if (!ip.empty()) validate_ip(ip, here.child("ip"), errors, existing);
    validate_balancer_host(ingress[i], here, errors);
  }
}

void warn_ingress(Context&, const Value& object, const Value* old, Warnings& texts) {
  if (old == nullptr && object.get("metadata", "annotations", kClassAnnotation) != nullptr) {
    texts.add("annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead");
  }
}

// --- IngressClass ---

void default_ingress_class(Arena&, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (Draft::Node parameters = spec.existing("parameters")) parameters.set_default("scope", Value::string("Cluster"));
}

void validate_ingress_class(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  const std::string_view controller = spec.text_at("controller");
  if (controller.size() > 250) errors.too_long(at.child("controller"), 250);
  validate_domain_prefixed_path(controller, at.child("controller"), errors);
  if (!is_set(spec, "parameters")) return;
  const Value& parameters = sub(spec, "parameters");
  const Path here = at.child("parameters");
  validate_reference(parameters, here, errors);
  if (!is_set(parameters, "scope")) return errors.required(here.child("scope"));
  const std::string_view scope = parameters.text_at("scope"), space = parameters.text_at("namespace");
  if (scope == "Namespace") {
    if (!is_set(parameters, "namespace")) {
      errors.required(here.child("namespace"), "`parameters.scope` is set to 'Namespace'");
    } else {
      errors.invalid_each(here.child("namespace"), space, dns_label_errors(space));
    }
  } else if (scope == "Cluster") {
    if (is_set(parameters, "namespace")) {
      errors.forbidden(here.child("namespace"), "`parameters.scope` is set to 'Cluster'");
    }
  } else {
    errors.not_supported(here.child("scope"), scope, {"Cluster", "Namespace"});
  }
}

void validate_ingress_class_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  const std::string_view controller = next.text_at("spec", "controller");
  if (controller != old.text_at("spec", "controller")) errors.invalid(Path("spec.controller"), controller, kImmutable);
  validate_ingress_class(context, next, errors);
}

// --- NetworkPolicy ---

void default_network_policy(Arena& arena, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  if (is_empty(spec.value(), "policyTypes")) {
    ListBuilder types(arena);
    types.add(Value::string("Ingress"));
    if (!is_empty(spec.value(), "egress")) types.add(Value::string("Egress"));
    spec.set("policyTypes", types.build());
  }
  for (const std::string_view direction : {"ingress", "egress"}) {
    for (Draft::Node rule : spec.list(direction)) {
      for (Draft::Node port : rule.list("ports")) port.set_default("protocol", Value::string("TCP"));
    }
  }
}

void validate_policy_port(const Value& port, const Path& at, FieldErrors& errors) {
  if (is_set(port, "protocol")) validate_enum(port, "protocol", {"TCP", "UDP", "SCTP"}, at, errors);
  const Value& number = sub(port, "port");
  const bool has_end = is_set(port, "endPort");
  const int64_t end = port.int_at_or(0, "endPort");
  if (number.is_int()) {
    errors.invalid_each(at.child("port"), number, port_number_errors(number.as_int()));
    if (has_end) {
      if (end < number.as_int()) errors.invalid(at.child("endPort"), number, "must be greater than or equal to `port`");
      errors.invalid_each(at.child("endPort"), end, port_number_errors(end));
    }
  } else if (number.is_string()) {
    if (has_end) errors.invalid(at.child("endPort"), end, "may not be specified when `port` is non-numeric");
    errors.invalid_each(at.child("port"), number, port_name_errors(number.as_string()));
  } else if (has_end) {
    errors.invalid(at.child("endPort"), end, "may not be specified when `port` is not specified");
  }
}

void validate_policy_peer(const Value& peer, const Path& at, const Names& existing_cidrs, FieldErrors& errors) {
  size_t count = 0;
  for (const std::string_view key : {"podSelector", "namespaceSelector"}) {
    if (!is_set(peer, key)) continue;
    ++count;
    validate_label_selector(peer.find(key), at.child(key), errors);
  }
  const bool block = is_set(peer, "ipBlock");
  if (block) {
    ++count;
    const Path here = at.child("ipBlock");
    const std::string_view cidr = peer.text_at("ipBlock", "cidr");
    if (cidr.empty()) {
      errors.required(here.child("cidr"));
    } else {
      validate_cidr(cidr, here.child("cidr"), errors, existing_cidrs);
      const std::optional<IpNetwork> network = IpNetwork::parse(cidr);
      const std::span<const Value> except = peer.items_at("ipBlock", "except");
      for (size_t i = 0; network && i < except.size(); ++i) {
        const Path except_at = here.item("except", i);
        validate_cidr(except[i].as_string(), except_at, errors, existing_cidrs);
        const std::optional<IpNetwork> inner = IpNetwork::parse(except[i].as_string());
        if (inner && (!network->contains(inner->address) || network->prefix >= inner->prefix)) {
          errors.invalid(except_at, except[i], "must be a strict subset of `cidr`");
        }
      }
    }
  }
  if (count == 0) {
    errors.required(at, "must specify a peer");
  } else if (count > 1 && block) {
    errors.forbidden(at, "may not specify both ipBlock and another peer");
  }
}

void validate_policy_spec(const Value& object, const Names& existing_cidrs, FieldErrors& errors) {
  const Path at("spec");
  const Value& spec = sub(object, "spec");
  validate_label_selector(spec.find("podSelector"), at.child("podSelector"), errors);
  for (const auto& [direction, side] :
       {std::pair<std::string_view, std::string_view>{"ingress", "from"}, {"egress", "to"}}) {
    const std::span<const Value> rules = spec.items_at(direction);
    for (size_t i = 0; i < rules.size(); ++i) {
      const Path here = at.item(direction, i);
      const std::span<const Value> ports = rules[i].items_at("ports"), peers = rules[i].items_at(side);
      for (size_t j = 0; j < ports.size(); ++j) validate_policy_port(ports[j], here.item("ports", j), errors);
      for (size_t j = 0; j < peers.size(); ++j)
        validate_policy_peer(peers[j], here.item(side, j), existing_cidrs, errors);
    }
  }
  const std::span<const Value> types = spec.items_at("policyTypes");
  if (types.size() > 2) {
    return errors.invalid(at.child("policyTypes"), spec.find("policyTypes"),
                          "may not specify more than two policyTypes");
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].as_string() != "Ingress" && types[i].as_string() != "Egress") {
      errors.not_supported(at.item("policyTypes", i), types[i], {"Ingress", "Egress"});
    }
  }
}

void validate_network_policy(Context&, const Value& object, FieldErrors& errors) {
  validate_policy_spec(object, {}, errors);
}

void validate_network_policy_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  Names existing_cidrs;
  for (const auto& [direction, side] :
       {std::pair<std::string_view, std::string_view>{"ingress", "from"}, {"egress", "to"}}) {
    for (const Value& rule : old.items_at("spec", direction)) {
      for (const Value& peer : rule.items_at(side)) {
        existing_cidrs.push_back(peer.text_at("ipBlock", "cidr"));
        for (const Value& except : peer.items_at("ipBlock", "except")) existing_cidrs.push_back(except.as_string());
      }
    }
  }
  validate_policy_spec(next, existing_cidrs, errors);
}

void warn_network_policy(Context&, const Value& object, const Value*, Warnings& texts) {
  const Path at("spec");
  for (const auto& [direction, side] :
       {std::pair<std::string_view, std::string_view>{"ingress", "from"}, {"egress", "to"}}) {
    const std::span<const Value> rules = object.items_at("spec", direction);
    for (size_t i = 0; i < rules.size(); ++i) {
      const Path rule = at.item(direction, i);
      const std::span<const Value> peers = rules[i].items_at(side);
      for (size_t j = 0; j < peers.size(); ++j) {
        if (!is_set(peers[j], "ipBlock")) continue;
        const Path peer = rule.item(side, j), block = peer.child("ipBlock");
        warn_about_cidr(peers[j].text_at("ipBlock", "cidr"), block.child("cidr"), texts);
        const std::span<const Value> except = peers[j].items_at("ipBlock", "except");
        for (size_t k = 0; k < except.size(); ++k)
          warn_about_cidr(except[k].as_string(), block.item("except", k), texts);
      }
    }
  }
}

// --- ServiceCIDR and IPAddress ---

void validate_cidrs(const Value& object, FieldErrors& errors) {
  const Path at("spec"), here = at.child("cidrs");
  const std::span<const Value> cidrs = object.items_at("spec", "cidrs");
  if (cidrs.empty()) return errors.required(here, "at least one CIDR required");
  if (cidrs.size() > 2) {
    return errors.invalid(here, shown_internal(type_named("networking/v1.ServiceCIDRSpec"), object.find("spec")),
                          "may only hold up to 2 values");
  }
  for (size_t i = 0; i < cidrs.size(); ++i) {
    const std::string problem = canonical_cidr_problem(cidrs[i].as_string());
    if (!problem.empty()) errors.invalid(here.index(i), cidrs[i], problem);
  }
  if (cidrs.size() < 2) return;
  const auto a = IpNetwork::parse(cidrs[0].as_string()), b = IpNetwork::parse(cidrs[1].as_string());
  if (a && b && a->address.v6 == b->address.v6) {
    errors.invalid(here, sub(object, "spec", "cidrs"),
                   "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
  }
}

void validate_service_cidr(Context&, const Value& object, FieldErrors& errors) { validate_cidrs(object, errors); }

void validate_service_cidr_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("spec");
  const std::span<const Value> now = next.items_at("spec", "cidrs"), was = old.items_at("spec", "cidrs");
  if (now.size() == was.size()) {
    for (size_t i = 0; i < now.size(); ++i) {
      if (!equal(now[i], was[i])) errors.invalid(at.item("cidrs", i), now[i], kImmutable);
    }
  } else if (was.size() == 1 && now.size() == 2) {
    if (!equal(now[0], was[0])) errors.invalid(at.item("cidrs", 0), now[0], kImmutable);
    validate_cidrs(next, errors);
  } else {
    errors.invalid(at.child("cidrs"), sub(next, "spec", "cidrs"), kImmutable);
  }
}

Messages name_is_ip(std::string_view name, bool) {
  std::string problem = canonical_ip_problem(name);
  return problem.empty() ? Messages{} : Messages{std::move(problem)};
}

void validate_ip_address(Context&, const Value& object, FieldErrors& errors) {
  const Path at("spec"), here = at.child("parentRef");
  if (!is_set(sub(object, "spec"), "parentRef")) return errors.required(here);
  const Value& parent = sub(object, "spec", "parentRef");
  const std::string_view group = parent.text_at("group"), space = parent.text_at("namespace");
  if (!group.empty()) errors.invalid_each(here.child("group"), group, dns_subdomain_errors(group));
  for (const std::string_view key : {"resource", "name"}) {
    errors.require_valid(here.child(key), parent.text_at(key), path_segment_errors);
  }
  if (!space.empty()) errors.invalid_each(here.child("namespace"), space, path_segment_errors(space));
}

void validate_ip_address_update(Context& context, const Value& next, const Value& old, FieldErrors& errors) {
  validate_ip_address(context, next, errors);
  if (!equal(sub(next, "spec", "parentRef"), sub(old, "spec", "parentRef"))) {
    errors.invalid(Path("spec.parentRef"),
                   shown_internal(type_named("networking/v1.IPAddressSpec"), sub(next, "spec"), "parentRef"),
                   kImmutable);
  }
}

}  // namespace

const Hooks kIngressHooks = {.generation = Generation::Spec,
                             .update_checks = {.whole = 1, .compares_first = true},
                             .validate = validate_ingress,
                             .validate_update = validate_ingress_update,
                             .validate_status = validate_ingress_status,
                             .warn = warn_ingress};
const Hooks kIngressClassHooks = {.generation = Generation::Spec,
                                  .update_checks = {.whole = 1, .compares_first = true},
                                  .defaults = default_ingress_class,
                                  .validate = validate_ingress_class,
                                  .validate_update = validate_ingress_class_update};
const Hooks kNetworkPolicyHooks = {.generation = Generation::Spec,
                                   .defaults = default_network_policy,
                                   .validate = validate_network_policy,
                                   .validate_update = validate_network_policy_update,
                                   .warn = warn_network_policy};
const Hooks kServiceCidrHooks = {.status_metadata = StatusMetadata::KeepObjectAndDeletion,
                                 .validate = validate_service_cidr,
                                 .validate_update = validate_service_cidr_update};
const Hooks kIpAddressHooks = {.name = name_is_ip,
                               .update_checks = {.whole = 1},
                               .validate = validate_ip_address,
                               .validate_update = validate_ip_address_update};

}  // namespace holdfast::kinds
