// Service: defaults, strategy, validation. For addresses and ports see service_claims.cc.

#include "kinds/service.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/hash.h"
#include "base/strings.h"
#include "codec/json.h"
#include "kinds/all.h"
#include "kinds/ip.h"
#include "kinds/names.h"
#include "kinds/pod.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kOnlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'";
constexpr std::string_view kTopologyHints = "service.kubernetes.io/topology-aware-hints";
constexpr std::string_view kTopologyMode = "service.kubernetes.io/topology-mode";
constexpr std::string_view kSourceRanges = "service.beta.kubernetes.io/load-balancer-source-ranges";

void default_service(Arena&, const types::Resource&, Draft::Node object) {
  Draft::Node spec = object.child("spec");
  spec.set_if_zero("sessionAffinity", Value::string("None"));
  const std::string_view affinity = spec.value().text_at("sessionAffinity");
  if (affinity == "None") spec.remove("sessionAffinityConfig");
  if (affinity == "ClientIP" && spec.value().get("sessionAffinityConfig", "clientIP", "timeoutSeconds") == nullptr) {
    spec.child("sessionAffinityConfig").child("clientIP").set("timeoutSeconds", Value::integer(10800));
  }
  spec.set_if_zero("type", Value::string("ClusterIP"));
  const std::string_view type = spec.value().text_at("type");
  for (Draft::Node port : spec.list("ports")) {
    port.set_if_zero("protocol", Value::string("TCP"));
    const Value* target = port.find("targetPort");
    const bool unset = target == nullptr || target->is_null() || (target->is_int() && target->as_int() == 0) ||
                       (target->is_string() && target->count() == 0);
    if (unset) port.set("targetPort", sub(port.value(), "port").is_null() ? Value::integer(0) : *port.find("port"));
  }
  if (is_externally_accessible(object.value())) spec.set_if_zero("externalTrafficPolicy", Value::string("Cluster"));
  if (type == "NodePort" || type == "LoadBalancer" || type == "ClusterIP") {
    spec.set_default("internalTrafficPolicy", Value::string("Cluster"));
  }
  if (type != "LoadBalancer") return;
  spec.set_default("allocateLoadBalancerNodePorts", Value::boolean(true));
  if (object.value().items_at("status", "loadBalancer", "ingress").empty()) return;
  for (Draft::Node ingress : object.child("status").child("loadBalancer").list("ingress")) {
    if (!ingress.value().text_at("ip").empty()) ingress.set_default("ipMode", Value::string("VIP"));
  }
}

bool same_texts(std::span<const Value> a, std::span<const Value> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Value& x, const Value& y) { return equal(x, y); });
}

// An ExternalName has no traffic policy; kube-apiserver drops it on read. Unknown values are left for validation to
// reject.
void drop_internal_policy(Draft::Node service) {
  const std::string_view policy = service.value().text_at("spec", "internalTrafficPolicy");
  if (service_type(service.value()) != "ExternalName" || (policy != "Cluster" && policy != "Local")) return;
  service.child("spec").remove("internalTrafficPolicy");
}

void create_service(Context&, Draft::Node object) { drop_internal_policy(object); }

// Drops what no longer applies to the new type of the service, unless the client changed it.
void update_service(Context& context, Draft::Node next, const Value& old) {
  const std::string_view type = service_type(next.value()), old_type = service_type(old);
  const Value& before = sub(old, "spec");
  Draft::Node spec = next.child("spec");
  drop_internal_policy(next);
  if (old_type != "ExternalName" && type == "ExternalName") {
    if (spec.value().text_at("clusterIP") == before.text_at("clusterIP") &&
        same_texts(spec.value().items_at("clusterIPs"), before.items_at("clusterIPs"))) {
      spec.remove("clusterIP");
      spec.remove("clusterIPs");
    }
    if (same_texts(spec.value().items_at("ipFamilies"), before.items_at("ipFamilies"))) spec.remove("ipFamilies");
    if (spec.value().text_at("ipFamilyPolicy") == before.text_at("ipFamilyPolicy")) spec.remove("ipFamilyPolicy");
  }
  if (needs_node_port(old) && !needs_node_port(next.value())) {
    bool known = true;
    std::unordered_set<int64_t> held;
    for (const Value& port : before.items_at("ports")) held.insert(port.int_at_or(0, "nodePort"));
    for (const Value& port : spec.value().items_at("ports")) {
      const int64_t number = port.int_at_or(0, "nodePort");
      known = known && (number == 0 || held.contains(number));
    }
    if (known) {
      for (Draft::Node port : spec.list("ports")) port.remove("nodePort");
    }
  }
  const Value now = next.value();
  const auto same = [&](std::string_view key) { return equal(sub(now, "spec", key), sub(before, key)); };
  if (needs_health_check(old) && !needs_health_check(now) && same("healthCheckNodePort")) {
    spec.remove("healthCheckNodePort");
  }
  if (old_type == "LoadBalancer" && type != "LoadBalancer") {
    if (same("allocateLoadBalancerNodePorts")) spec.remove("allocateLoadBalancerNodePorts");
    if (same("loadBalancerClass")) spec.remove("loadBalancerClass");
  }
  if (is_externally_accessible(old) && !is_externally_accessible(now) && same("externalTrafficPolicy")) {
    spec.remove("externalTrafficPolicy");
  }
  if (type != "LoadBalancer" && !is_empty(sub(next.value(), "status", "loadBalancer"), "ingress")) {
    next.child("status").set("loadBalancer", zero_value(context.arena, type_named("core/v1.LoadBalancerStatus")));
  }
}

// --- Validation ---

void validate_ports(const Value& service, const Path& at, FieldErrors& errors) {
  const std::span<const Value> ports = service.items_at("spec", "ports");
  std::unordered_set<std::string_view, KeyHash> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports[i];
    const Path here = at.item("ports", i);
    const std::string_view name = port.text_at("name");
    if (ports.size() > 1 && name.empty()) {
      errors.required(here.child("name"));
    } else if (!name.empty()) {
      errors.invalid_each(here.child("name"), name, dns_label_errors(name));
      if (!names.insert(name).second) errors.duplicate(here.child("name"), name);
    }
    const int64_t number = port.int_at_or(0, "port");
    errors.invalid_each(here.child("port"), number, port_number_errors(number));
    validate_enum(port, "protocol", {"SCTP", "TCP", "UDP"}, here, errors);
    validate_port(sub(port, "targetPort"), here.child("targetPort"), errors);
    if (is_set(port, "appProtocol")) {
      const std::string_view protocol = port.text_at("appProtocol");
      errors.invalid_each(here.child("appProtocol"), protocol, qualified_name_errors(protocol));
    }
  }
}

void validate_port_uniqueness(const Value& service, const Path& at, FieldErrors& errors) {
  const std::span<const Value> ports = service.items_at("spec", "ports");
  if (service_type(service) == "ClusterIP") {
    for (size_t i = 0; i < ports.size(); ++i) {
      const Path here = at.item("ports", i);
      if (ports[i].int_at_or(0, "nodePort") != 0) {
        errors.forbidden(here.child("nodePort"), "may not be used when `type` is 'ClusterIP'");
      }
    }
  }
  // Whether an earlier port has the same number and protocol; to be called for each port in order.
  std::map<std::string_view, std::set<std::pair<int64_t, std::string_view>>> known;
  const auto repeats = [&](size_t i, std::string_view key) {
    return !known[key].emplace(ports[i].int_at_or(0, key), ports[i].text_at("protocol")).second;
  };
  for (size_t i = 0; i < ports.size(); ++i) {
    const Path here = at.item("ports", i);
    const int64_t node_port = ports[i].int_at_or(0, "nodePort");
    if (node_port != 0 && repeats(i, "nodePort")) errors.duplicate(here.child("nodePort"), node_port);
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!repeats(i, "port")) continue;
    // The internal struct with only its key set, as printed by Go.
    errors.duplicate(
        at.item("ports", i),
        Shown::verbatim("{\"Name\":\"\",\"Protocol\":" + codec::encode_json_string(ports[i].text_at("protocol")) +
                        ",\"AppProtocol\":null,\"Port\":" + std::to_string(ports[i].int_at_or(0, "port")) +
                        ",\"TargetPort\":0,\"NodePort\":0}"));
  }
}

// The texts of a list in the spec of the old object, if there is one.
Names old_texts(const Value* old, std::string_view list) {
  Names texts;
  if (old == nullptr) return texts;
  for (const Value& item : old->items_at("spec", list)) texts.push_back(trim(item.as_string()));
  return texts;
}

void validate_external_ips(const Value& spec, const Value* old, const Path& at, FieldErrors& errors) {
  const std::span<const Value> ips = spec.items_at("externalIPs");
  const Names existing = old_texts(old, "externalIPs");
  for (size_t i = 0; i < ips.size(); ++i) {
    const Path here = at.item("externalIPs", i);
    const size_t before = errors.count();
    validate_ip(ips[i].as_string(), here, errors, existing);
    if (errors.count() == before) validate_endpoint_ip(ips[i].as_string(), here, errors);
  }
}

void validate_balancer_class(const Value& service, const Path& at, FieldErrors& errors) {
  const Value& spec = sub(service, "spec");
  if (!is_set(spec, "loadBalancerClass")) return;
  const std::string_view name = spec.text_at("loadBalancerClass");
  if (service_type(service) == "LoadBalancer") {
    errors.invalid_each(at.child("loadBalancerClass"), name, qualified_name_errors(name));
  } else {
    errors.forbidden(at.child("loadBalancerClass"), kOnlyLoadBalancer);
  }
}

void validate_topology_annotations(const Value& service, FieldErrors& errors) {
  const Path metadata("metadata"), at = metadata.child("annotations");
  const Value *mode = service.get("metadata", "annotations", kTopologyMode),
              *hints = service.get("metadata", "annotations", kTopologyHints);
  if (mode == nullptr || hints == nullptr || equal(*mode, *hints)) return;
  errors.invalid(at.key(kTopologyMode), *mode,
                 "must match annotations[" + std::string(kTopologyHints) + "] when both are specified");
}

// Ranges in the annotation are used if there are none in the spec; on update an unchanged annotation is not validated
// again.
void validate_annotated_ranges(const Value& service, const Value* old, FieldErrors& errors) {
  const Value* ranges = service.get("metadata", "annotations", kSourceRanges);
  if (ranges == nullptr) return;
  const Path metadata("metadata"), list = metadata.child("annotations"), at = list.key(kSourceRanges);
  if (service_type(service) != "LoadBalancer") errors.forbidden(at, kOnlyLoadBalancer);
  if (old != nullptr && old->text_at("metadata", "annotations", kSourceRanges) == ranges->as_string()) return;
  const std::string_view text = trim(ranges->as_string());
  if (text.empty()) return;
  for (const std::string_view range : split(text, ',')) validate_cidr(trim(range), at, errors);
}

void validate_load_balancer(const Value& service, const Value* old, const Path& at, FieldErrors& errors) {
  const Value& spec = sub(service, "spec");
  const bool balanced = service_type(service) == "LoadBalancer";
  const std::span<const Value> ranges = spec.items_at("loadBalancerSourceRanges");
  if (ranges.empty()) {
    validate_annotated_ranges(service, old, errors);
  } else {
    if (!balanced) errors.forbidden(at.child("LoadBalancerSourceRanges"), kOnlyLoadBalancer);
    const Names existing = old_texts(old, "loadBalancerSourceRanges");
    for (size_t i = 0; i < ranges.size(); ++i) {
      validate_cidr(trim(ranges[i].as_string()), at.item("LoadBalancerSourceRanges", i), errors, existing);
    }
  }
  if (is_set(spec, "allocateLoadBalancerNodePorts") && !balanced) {
    errors.forbidden(at.child("allocateLoadBalancerNodePorts"), kOnlyLoadBalancer);
  }
}

void validate_traffic(const Value& service, const Path& at, FieldErrors& errors) {
  const Value& spec = sub(service, "spec");
  const std::string_view policy = spec.text_at("externalTrafficPolicy");
  if (!is_externally_accessible(service)) {
    if (!policy.empty()) {
      errors.invalid(at.child("externalTrafficPolicy"), policy, "may only be set for externally-accessible services");
    }
  } else if (policy.empty()) {
    errors.required(at.child("externalTrafficPolicy"));
  } else {
    validate_enum(spec, "externalTrafficPolicy", {"Cluster", "Local"}, at, errors);
  }
  const int64_t health = spec.int_at_or(0, "healthCheckNodePort");
  if (!needs_health_check(service)) {
    if (health != 0) {
      errors.invalid(at.child("healthCheckNodePort"), health,
                     "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
    }
  } else if (health == 0) {
    errors.required(at.child("healthCheckNodePort"));
  } else {
    errors.invalid_each(at.child("healthCheckNodePort"), health, port_number_errors(health));
  }
  const std::string_view type = service_type(service);
  if (is_set(spec, "internalTrafficPolicy")) {
    validate_enum(spec, "internalTrafficPolicy", {"Cluster", "Local"}, at, errors);
  } else if (type == "NodePort" || type == "LoadBalancer" || type == "ClusterIP") {
    errors.required(at.child("internalTrafficPolicy"));
  }
  if (is_set(spec, "trafficDistribution")) {
    validate_enum(spec, "trafficDistribution", {"PreferClose", "PreferSameZone", "PreferSameNode"}, at, errors);
  }
}

// `old` is the previous service on update, null on create.
void validate_spec(const Value& service, const Value* old, FieldErrors& errors) {
  validate_topology_annotations(service, errors);
  const Path at("spec");
  const Value& spec = sub(service, "spec");
  const std::string_view type = service_type(service);
  const bool headless = is_headless(service);
  if (is_empty(spec, "ports") && !headless && type != "ExternalName") errors.required(at.child("ports"));
  if ((type == "LoadBalancer" || type == "NodePort") && headless) {
    errors.invalid(at.item("clusterIPs", 0), "None", "may not be set to 'None' for " + std::string(type) + " services");
  }
  if (type == "ExternalName") {
    for (const std::string_view key : {"clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      const bool given = key == "ipFamilyPolicy" ? is_set(spec, key) : !is_empty(spec, key);
      if (given) errors.forbidden(at.child(key), "may not be set for ExternalName services");
    }
    std::string_view name = spec.text_at("externalName");
    if (name.ends_with('.')) name.remove_suffix(1);
    errors.require_valid(at.child("externalName"), name, dns_subdomain_errors);
  }
  validate_ports(service, at, errors);
  validate_labels(spec.find("selector"), at.child("selector"), errors);
  const std::string_view affinity = spec.text_at("sessionAffinity");
  if (affinity.empty()) {
    errors.required(at.child("sessionAffinity"));
  } else {
    validate_enum(spec, "sessionAffinity", {"ClientIP", "None"}, at, errors);
  }
  if (affinity == "ClientIP") {
    const Path here = at.child("sessionAffinityConfig");
    const Value* timeout = spec.get("sessionAffinityConfig", "clientIP", "timeoutSeconds");
    if (timeout == nullptr) {
      errors.required(here, "when session affinity type is ClientIP");
    } else if (timeout->is_int() && (timeout->as_int() <= 0 || timeout->as_int() > 86400)) {
      errors.invalid(here.child("clientIP.timeoutSeconds"), *timeout, "must be greater than 0 and less than 86400");
    }
  } else if (affinity == "None" && is_set(spec, "sessionAffinityConfig")) {
    errors.forbidden(at.child("sessionAffinityConfig"), "must not be set when session affinity is None");
  }
  validate_cluster_ips(service, old, errors);
  validate_external_ips(spec, old, at, errors);
  if (type.empty()) {
    errors.required(at.child("type"));
  } else {
    validate_enum(spec, "type", {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}, at, errors);
  }
  validate_port_uniqueness(service, at, errors);
  validate_load_balancer(service, old, at, errors);
  validate_balancer_class(service, at, errors);
  validate_traffic(service, at, errors);
}

void validate_service(Context&, const Value& service, FieldErrors& errors) { validate_spec(service, nullptr, errors); }

void validate_ip_change(const Value& next, const Value& old, FieldErrors& errors) {
  if (service_type(next) == "ExternalName" || service_type(old) == "ExternalName") return;
  const Path at("spec");
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  const std::span<const Value> ips = spec.items_at("clusterIPs"), old_ips = before.items_at("clusterIPs");
  const Value& shown = sub(spec, "clusterIPs");
  const std::string_view policy = spec.text_at("ipFamilyPolicy");
  constexpr std::string_view kFixed = "may not change once set";
  if (!is_headless(next) || !is_headless(old)) {
    if (ips.size() == old_ips.size()) {
      for (size_t i = 0; i < ips.size(); ++i) {
        if (!equal(ips[i], old_ips[i])) errors.invalid(at.item("clusterIPs", i), shown, kFixed);
      }
    } else {
      if (ips.empty()) errors.invalid(at.item("clusterIPs", 0), shown, "primary clusterIP can not be unset");
      if (!ips.empty() && !old_ips.empty() && !equal(ips[0], old_ips[0])) {
        errors.invalid(at.item("clusterIPs", 0), shown, kFixed);
      }
      if (old_ips.size() > ips.size() && ips.size() == 1 && policy != "SingleStack") {
        errors.invalid(at.child("ipFamilyPolicy"), spec.find("ipFamilyPolicy"),
                       "must be set to 'SingleStack' when releasing the secondary clusterIP");
      }
    }
  }
  if (is_headless(next) || is_headless(old)) return;
  const std::span<const Value> families = spec.items_at("ipFamilies"), old_families = before.items_at("ipFamilies");
  const Value& shown_families = sub(spec, "ipFamilies");
  if (families.size() == old_families.size()) {
    for (size_t i = 0; i < families.size(); ++i) {
      if (!equal(families[i], old_families[i])) errors.invalid(at.item("ipFamilies", 0), shown_families, kFixed);
    }
    return;
  }
  if (old_families.size() > families.size() && ips.empty()) {
    errors.invalid(at.item("ipFamilies", 0), shown_families, "primary ipFamily can not be unset");
  }
  if (!families.empty() && !old_families.empty() && !equal(families[0], old_families[0])) {
    errors.invalid(at.item("ipFamilies", 0), shown, kFixed);
  }
  if (old_families.size() > families.size() && families.size() == 1 && policy != "SingleStack") {
    errors.invalid(at.child("ipFamilyPolicy"), spec.find("ipFamilyPolicy"),
                   "must be set to 'SingleStack' when releasing the secondary ipFamily");
  }
}

void validate_service_update(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  validate_ip_change(next, old, errors);
  const Path at("spec");
  const Value &spec = sub(next, "spec"), &before = sub(old, "spec");
  if (service_type(next) == "LoadBalancer" && service_type(old) == "LoadBalancer" &&
      !equal(sub(spec, "loadBalancerClass"), sub(before, "loadBalancerClass"))) {
    errors.invalid(at.child("loadBalancerClass"), spec.find("loadBalancerClass"), "may not change once set");
  }
  validate_balancer_class(next, at, errors);
  if (needs_health_check(next) && needs_health_check(old) &&
      spec.int_at_or(0, "healthCheckNodePort") != before.int_at_or(0, "healthCheckNodePort")) {
    errors.forbidden(at.child("healthCheckNodePort"), kImmutable);
  }
  validate_spec(next, &old, errors);
}

void validate_service_status(Context&, const Value& next, const Value& old, FieldErrors& errors) {
  const Path at("status.loadBalancer");
  const std::span<const Value> ingress = next.items_at("status", "loadBalancer", "ingress");
  if (service_type(next) != "LoadBalancer") {
    if (!ingress.empty()) {
      errors.forbidden(at.child("ingress"), "may only be used when `spec.type` is 'LoadBalancer'");
    }
    return;
  }
  const Names existing = balancer_ips(old);
  for (size_t i = 0; i < ingress.size(); ++i) {
    const Path here = at.item("ingress", i);
    const std::string_view ip = ingress[i].text_at("ip");
    if (!ip.empty()) validate_ip(ip, here.child("ip"), errors, existing);
    if (!is_set(ingress[i], "ipMode")) {
      if (!ip.empty()) errors.required(here.child("ipMode"), "must be specified when `ip` is set");
    } else if (ip.empty()) {
      errors.forbidden(here.child("ipMode"), "may not be specified when `ip` is not set");
    } else {
      validate_enum(ingress[i], "ipMode", {"Proxy", "VIP"}, here, errors);
    }
    validate_balancer_host(ingress[i], here, errors);
  }
}

void warn_service_status(const Value& service, Warnings& texts) {
  const Path at("status.loadBalancer");
  const std::span<const Value> ingress = service.items_at("status", "loadBalancer", "ingress");
  for (size_t i = 0; i < ingress.size(); ++i) {
    const std::string_view ip = ingress[i].text_at("ip");
    if (!ip.empty()) warn_about_ip(ip, at.item("ingress", i), texts);
  }
}

void warn_service(Context&, const Value& service, const Value*, Warnings& texts) {
  if (service.get("metadata", "annotations", kTopologyHints) != nullptr) {
    texts.add(
        "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
        "service.kubernetes.io/topology-mode instead");
  }
  const Value& spec = sub(service, "spec");
  const std::string_view type = service_type(service);
  const bool headless = type == "ClusterIP" && spec.text_at("clusterIP") == "None";
  const bool external = !is_empty(spec, "externalIPs");
  if (headless) {
    if (!spec.text_at("loadBalancerIP").empty()) {
      texts.add("spec.loadBalancerIP is ignored for headless services");
    }
    if (external) texts.add("spec.externalIPs is ignored for headless services");
    if (spec.text_at("sessionAffinity") != "None") {
      texts.add("spec.SessionAffinity is ignored for headless services");
    }
  }
  const Path at("spec");
  const auto warn_list = [&](std::string_view key, bool networks) {
    const std::span<const Value> items = spec.items_at(key);
    for (size_t i = 0; i < items.size(); ++i) {
      if (networks) {
        warn_about_cidr(items[i].as_string(), at.item(key, i), texts);
      } else {
        warn_about_ip(items[i].as_string(), at.item(key, i), texts);
      }
    }
  };
  warn_list("externalIPs", false);
  if (external && !headless && type != "ExternalName") {
    texts.add("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  }
  if (!spec.text_at("loadBalancerIP").empty()) {
    warn_about_ip(spec.text_at("loadBalancerIP"), at.child("loadBalancerIP"), texts);
  }
  warn_list("loadBalancerSourceRanges", true);
  if (external && type == "ExternalName") {
    texts.add("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  }
  if (type != "ExternalName" && !spec.text_at("externalName").empty()) {
    texts.add("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  }
  if (spec.text_at("trafficDistribution") == "PreferClose") {
    texts.add("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
  }
}

}  // namespace

bool is_headless(const Value& service) {
  const std::span<const Value> ips = service.items_at("spec", "clusterIPs");
  return ips.size() == 1 && ips[0].is_string() && ips[0].as_string() == "None";
}

bool is_externally_accessible(const Value& service) {
  const std::string_view type = service_type(service);
  return type == "LoadBalancer" || type == "NodePort" ||
         (type == "ClusterIP" && !is_empty(sub(service, "spec"), "externalIPs"));
}

bool needs_health_check(const Value& service) {
  return service_type(service) == "LoadBalancer" && service.text_at("spec", "externalTrafficPolicy") == "Local";
}

bool needs_node_port(const Value& service) {
  const std::string_view type = service_type(service);
  return type == "NodePort" || type == "LoadBalancer";
}

void validate_cluster_ips(const Value& service, const Value* old, FieldErrors& errors) {
  if (service_type(service) == "ExternalName") return;
  const Path at("spec"), ips_at = at.child("clusterIPs");
  const Value& spec = sub(service, "spec");
  const std::span<const Value> ips = spec.items_at("clusterIPs"), families = spec.items_at("ipFamilies");
  const Value& shown = sub(spec, "clusterIPs");
  const std::string_view single = spec.text_at("clusterIP");
  if (!single.empty()) {
    if (ips.empty()) {
      errors.required(ips_at);
    } else if (ips[0].as_string() != single) {
      errors.invalid(ips_at, shown, "first value must match `clusterIP`");
    }
  } else if (!ips.empty()) {
    errors.invalid(ips_at, shown, "must be empty when `clusterIP` is not specified");
  }
  Names seen;
  for (size_t i = 0; i < families.size(); ++i) {
    const std::string_view family = families[i].as_string();
    if (family != "IPv4" && family != "IPv6") errors.not_supported(at.item("ipFamilies", i), family, {"IPv4", "IPv6"});
    if (!seen.add(family)) errors.duplicate(at.item("ipFamilies", i), family);
  }
  if (is_set(spec, "ipFamilyPolicy")) {
    validate_enum(spec, "ipFamilyPolicy", {"PreferDualStack", "RequireDualStack", "SingleStack"}, at, errors);
  }
  bool wrong = false;
  const Names existing = old_texts(old, "clusterIPs");
  for (size_t i = 0; i < ips.size(); ++i) {
    if (i == 0 && ips[i].as_string() == "None") {
      if (ips.size() > 1) {
        wrong = true;
        errors.invalid(ips_at, shown, "'None' must be the first and only value");
      }
      continue;
    }
    const size_t before = errors.count();
    validate_ip(ips[i].as_string(), ips_at.index(i), errors, existing);
    wrong = wrong || errors.count() != before;
  }
  if (ips.size() > 2) errors.invalid(ips_at, shown, "may only hold up to 2 values");
  if (wrong) return;
  const auto is_v6 = [](const Value& ip) {
    const auto parsed = IpAddress::parse(ip.as_string());
    return parsed && parsed->v6;
  };
  if (ips.size() == 2 && is_v6(ips[0]) == is_v6(ips[1])) {
    errors.invalid(ips_at, shown, "may specify no more than one IP for each IP family");
  }
  if (is_headless(service)) return;
  for (size_t i = 0; i < ips.size() && i < families.size(); ++i) {
    const std::string_view family = families[i].as_string();
    if ((family == "IPv4" && is_v6(ips[i])) || (family == "IPv6" && !is_v6(ips[i]))) {
      errors.invalid(
          ips_at.index(i), ips[i],
          "expected an " + std::string(family) + " value as indicated by `ipFamilies[" + std::to_string(i) + "]`");
    }
  }
}

const Hooks kServiceHooks = {.name = name_is_dns_label,
                             .defaults = default_service,
                             .create = create_service,
                             .update = update_service,
                             .validate = validate_service,
                             .validate_update = validate_service_update,
                             .validate_status = validate_service_status,
                             .warn = warn_service,
                             .warn_status = warn_service_status};

}  // namespace holdfast::kinds
