// Addresses and node ports of a Service, which must be allocated before it can be written
// (registry/core/service/storage/alloc.go).

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/api_error.h"
#include "base/hash.h"
#include "codec/json.h"
#include "kinds/ip.h"
#include "kinds/service.h"

namespace holdfast::kinds {
namespace {

constexpr std::string_view kIpv4[] = {"IPv4"};

std::string_view family_of(std::string_view ip) {
  const auto parsed = IpAddress::parse(ip);
  return parsed && parsed->v6 ? "IPv6" : "IPv4";
}

bool same_list(const Value& a, const Value& b, std::string_view key) {
  const std::span<const Value> x = a.items_at("spec", key), y = b.items_at("spec", key);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Value& u, const Value& v) { return equal(u, v); });
}

void set_list(Arena& arena, Draft::Node spec, std::string_view key, std::span<const Value> items) {
  if (items.empty()) {
    spec.remove(key);
  } else {
    spec.set(key, Value::list(arena.copy(items)));
  }
}

Error refused(const Value& service, const FieldErrors& errors) {
  return errors.to_error("", "Service", service.text_at("metadata", "name"));
}

// Fills in families and policy; 422 if they are not available.
Result<Unit> complete_families(Context& context, Draft::Node service, const Value* old) {
  if (service_type(service.value()) == "ExternalName") return Unit{};
  const std::span<const std::string_view> configured =
      context.service_ip_families.empty() ? std::span<const std::string_view>(kIpv4) : context.service_ip_families;
  Draft::Node spec = service.child("spec");
  const bool selected = !is_empty(spec.value(), "selector");
  const bool none = spec.value().text_at("clusterIP") == "None";
  if (!is_set(spec.value(), "ipFamilyPolicy")) {
    if (old != nullptr && is_set(sub(*old, "spec"), "ipFamilyPolicy")) {
      restore(spec, sub(*old, "spec"), "ipFamilyPolicy");
    } else {
      spec.set("ipFamilyPolicy", Value::string(none && !selected ? "RequireDualStack" : "SingleStack"));
    }
  }
  FieldErrors errors;
  validate_cluster_ips(service.value(), old, errors);
  if (!errors.empty()) return refused(service.value(), errors);

  const Path at("spec"), policy_at = at.child("ipFamilyPolicy");
  const std::string_view policy = spec.value().text_at("ipFamilyPolicy");
  const auto count = [&](std::string_view key) { return spec.value().items_at(key).size(); };
  if (old != nullptr) {
    for (const auto& [key, what] :
         {std::pair<std::string_view, std::string_view>{"clusterIPs", "cluster IP"}, {"ipFamilies", "IP family"}}) {
      if (policy == "SingleStack") {
        if (same_list(*old, service.value(), key) && count(key) > 1) {
          set_list(context.arena, spec, key, spec.value().items_at(key).first(1));
        }
      } else if (count(key) != 0 && count(key) < old->items_at("spec", key).size()) {
        errors.invalid(policy_at, policy, "must be 'SingleStack' to release the secondary " + std::string(what));
      }
    }
  }
  if (policy == "SingleStack") {
    if (count("clusterIPs") == 2) {
      errors.invalid(policy_at, policy,
                     "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified");
    }
    if (count("ipFamilies") == 2) {
      errors.invalid(policy_at, policy,
                     "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified");
    }
  }
  const std::vector<Value> ips(spec.value().items_at("clusterIPs").begin(), spec.value().items_at("clusterIPs").end());
  for (size_t i = 0; i < ips.size(); ++i) {
    if (ips[i].as_string() == "None") break;
    if (i < count("ipFamilies")) continue;
    const std::string_view family = family_of(ips[i].as_string());
    if (contains(configured, family)) {
      spec.append("ipFamilies", Value::string(family));
    } else {
      errors.invalid(at.item("clusterIPs", i), sub(spec.value(), "clusterIPs"),
                     std::string(family) + " is not configured on this cluster");
    }
  }
  if (!errors.empty()) return refused(service.value(), errors);

  const auto add_other_family = [&] {
    const bool v4 = spec.value().items_at("ipFamilies")[0].as_string() == "IPv4";
    spec.append("ipFamilies", Value::string(v4 ? "IPv6" : "IPv4"));
  };
  if (none && !selected) {
    if (count("ipFamilies") == 0) spec.append("ipFamilies", Value::string(configured[0]));
    if (count("ipFamilies") < 2 && policy != "SingleStack") add_other_family();
    return Unit{};
  }
  if (policy == "RequireDualStack" && configured.size() < 2) {
    errors.invalid(policy_at, policy, "this cluster is not configured for dual-stack services");
  }
  const std::span<const Value> families = spec.value().items_at("ipFamilies");
  for (size_t i = 0; i < families.size(); ++i) {
    if (!contains(configured, families[i].as_string())) {
      errors.invalid(at.item("ipFamilies", i), families[i], "not configured on this cluster");
    }
  }
  if (!errors.empty()) return refused(service.value(), errors);
  if (families.empty()) spec.append("ipFamilies", Value::string(configured[0]));
  if (policy != "SingleStack" && count("ipFamilies") == 1 && configured.size() == 2) add_other_family();
  return Unit{};
}

void claim_ips(const Value& service, size_t first, ServiceClaims& claims) {
  if (service_type(service) == "ExternalName" || is_headless(service)) return;
  const std::span<const Value> families = service.items_at("spec", "ipFamilies"),
                               ips = service.items_at("spec", "clusterIPs");
  for (size_t i = first; i < families.size(); ++i) {
    claims.ips.push_back({families[i].as_string(), i < ips.size() ? ips[i].as_string() : std::string_view()});
  }
}

bool allocates_node_ports(const Value& service) {
  const std::string_view type = service_type(service);
  return type == "NodePort" ||
         (type == "LoadBalancer" && is_true(sub(service, "spec"), "allocateLoadBalancerNodePorts"));
}

std::string port_field(size_t index) { return "spec.ports[" + std::to_string(index) + "].nodePort"; }

// Ports with the same number (such as TCP and UDP of a DNS server) share a node port.
void claim_new_ports(const Value& service, ServiceClaims& claims) {
  const std::span<const Value> ports = service.items_at("spec", "ports");
  std::unordered_map<int64_t, size_t> claimed;       // Port number -> claim.
  std::unordered_map<int64_t, int64_t> asked_first;  // Port number -> the first node port requested.
  for (const Value& port : ports) {
    int64_t& first = asked_first[port.int_at_or(0, "port")];
    if (first == 0) first = port.int_at_or(0, "nodePort");
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const int64_t number = ports[i].int_at_or(0, "port"), wanted = ports[i].int_at_or(0, "nodePort");
    if (wanted == 0 && !allocates_node_ports(service)) continue;
    const auto same = claimed.find(number);
    if (same == claimed.end()) {
      claimed.emplace(number, claims.ports.size());
      claims.ports.push_back({static_cast<int32_t>(asked_first[number]), port_field(i), {static_cast<uint32_t>(i)}});
    } else if (wanted == 0 || wanted == claims.ports[same->second].wanted) {
      claims.ports[same->second].ports.push_back(static_cast<uint32_t>(i));
    } else {
      claims.ports.push_back({static_cast<int32_t>(wanted), port_field(i), {static_cast<uint32_t>(i)}});
    }
  }
}

// Without duplicates, in the order of the ports.
std::vector<int32_t> node_ports(const Value& service) {
  std::vector<int32_t> ports;
  std::unordered_set<int32_t> seen;
  for (const Value& port : service.items_at("spec", "ports")) {
    const auto number = static_cast<int32_t>(port.int_at_or(0, "nodePort"));
    if (number != 0 && seen.insert(number).second) ports.push_back(number);
  }
  return ports;
}

Result<Unit> claim_changed_ports(const Value& service, const Value& old, ServiceClaims& claims) {
  const std::vector<int32_t> before = node_ports(old), now = node_ports(service);
  const std::unordered_set<int32_t> held(before.begin(), before.end()), wanted_now(now.begin(), now.end());
  const std::span<const Value> ports = service.items_at("spec", "ports");
  std::unordered_set<int32_t> asked;
  std::unordered_set<std::string, KeyHash> protocols;  // "TCP 30080"
  for (size_t i = 0; i < ports.size(); ++i) {
    const auto wanted = static_cast<int32_t>(ports[i].int_at_or(0, "nodePort"));
    if (wanted == 0 && !allocates_node_ports(service)) continue;
    if (wanted != 0) {
      const std::string shown = std::string(ports[i].text_at("protocol")) + " " + std::to_string(wanted);
      if (!protocols.insert(shown).second) return untyped("duplicate nodePort: {" + shown + "}");
      if (held.contains(wanted) || !asked.insert(wanted).second) continue;
    }
    claims.ports.push_back({wanted, port_field(i), {static_cast<uint32_t>(i)}});
  }
  for (const int32_t port : before) {
    if (!wanted_now.contains(port)) claims.released_ports.push_back(port);
  }
  return Unit{};
}

void claim_health_port(const Value& service, ServiceClaims& claims) {
  if (!needs_health_check(service)) return;
  claims.ports.push_back(
      {static_cast<int32_t>(service.int_at_or(0, "spec", "healthCheckNodePort")), "spec.healthCheckNodePort", {}});
}

// Allocated values that a client omitted keep their value, except node ports of a Service that no longer asks for any:
// omitting one gives it back.
void take_allocated(Arena& arena, Draft::Node service, const Value& old) {
  Draft::Node spec = service.child("spec");
  const Value& before = sub(old, "spec");
  if (service_type(old) != "ExternalName" && service_type(service.value()) != "ExternalName") {
    if (spec.value().text_at("clusterIP").empty()) restore(spec, before, "clusterIP");
    if (is_empty(spec.value(), "clusterIPs")) restore(spec, before, "clusterIPs");
  }
  if (allocates_node_ports(old) && allocates_node_ports(service.value())) {
    const std::vector<int32_t> sent_now = node_ports(service.value());
    const std::unordered_set<int32_t> sent(sent_now.begin(), sent_now.end());
    std::unordered_map<std::string_view, int64_t, KeyHash> by_name;
    for (const Value& other : before.items_at("ports")) {
      by_name[other.text_at("name")] = other.int_at_or(0, "nodePort");
    }
    for (Draft::Node port : spec.list("ports")) {
      if (port.value().int_at_or(0, "nodePort") != 0) continue;
      const auto known = by_name.find(port.value().text_at("name"));
      if (known == by_name.end() || known->second == 0 || sent.contains(static_cast<int32_t>(known->second))) continue;
      port.set("nodePort", Value::integer(known->second));
    }
  }
  if (needs_health_check(old) && needs_health_check(service.value()) &&
      spec.value().int_at_or(0, "healthCheckNodePort") == 0) {
    restore(spec, before, "healthCheckNodePort");
  }
  // clusterIP and clusterIPs mirror each other: a change of the former by an old client applies to the latter.
  const std::string_view ip = spec.value().text_at("clusterIP"), old_ip = before.text_at("clusterIP");
  if (is_empty(spec.value(), "clusterIPs") && ip == old_ip) restore(spec, before, "clusterIPs");
  if (ip != old_ip && same_list(old, service.value(), "clusterIPs")) {
    if (ip.empty()) {
      spec.remove("clusterIPs");
    } else {
      const Value one = *spec.find("clusterIP");
      set_list(arena, spec, "clusterIPs", std::span(&one, 1));
    }
  }
}

// No change of addresses: both are PreferDualStack and have the same addresses and families.
bool keeps_dual_stack(const Value& service, const Value& old) {
  const std::string_view policy = service.text_at("spec", "ipFamilyPolicy"),
                         before = old.text_at("spec", "ipFamilyPolicy");
  return policy == "PreferDualStack" && (before.empty() || before == "PreferDualStack") &&
         service_type(service) == service_type(old) && service_type(service) != "ExternalName" &&
         same_list(old, service, "clusterIPs") && same_list(old, service, "ipFamilies");
}

}  // namespace

Result<ServiceClaims> claims_of_create(Context& context, Draft::Node service) {
  {
    Draft::Node spec = service.child("spec");
    if (!spec.value().text_at("clusterIP").empty() && is_empty(spec.value(), "clusterIPs")) {
      const Value one = *spec.find("clusterIP");
      set_list(context.arena, spec, "clusterIPs", std::span(&one, 1));
    }
  }
  if (Result<Unit> done = complete_families(context, service, nullptr); !done) return done.take_error();
  ServiceClaims claims;
  claim_ips(service.value(), 0, claims);
  if (needs_node_port(service.value())) claim_new_ports(service.value(), claims);
  claim_health_port(service.value(), claims);
  return claims;
}

Result<ServiceClaims> claims_of_update(Context& context, Draft::Node service, const Value& old) {
  take_allocated(context.arena, service, old);
  ServiceClaims claims;
  const bool was_named = service_type(old) == "ExternalName",
             is_named = service_type(service.value()) == "ExternalName";
  if (!keeps_dual_stack(service.value(), old)) {
    if (Result<Unit> done = complete_families(context, service, &old); !done) return done.take_error();
    const size_t before = old.items_at("spec", "ipFamilies").size();
    const size_t now = service.value().items_at("spec", "ipFamilies").size();
    const std::span<const Value> ips = old.items_at("spec", "clusterIPs");
    if (was_named && !is_named) {
      claim_ips(service.value(), 0, claims);
    } else if (is_headless(old)) {
      // Headless services hold no addresses.
    } else if (!was_named && is_named) {
      for (const Value& ip : ips) claims.released_ips.push_back(ip.as_string());
    } else if (before == 1 && now == 2) {
      claim_ips(service.value(), 1, claims);
    } else if (before == 2 && now == 1 && ips.size() > 1) {
      claims.released_ips.push_back(ips[1].as_string());
    }
  }
  if (needs_node_port(old) && !needs_node_port(service.value())) claims.released_ports = node_ports(old);
  if (needs_node_port(service.value())) {
    if (Result<Unit> done = claim_changed_ports(service.value(), old, claims); !done) return done.take_error();
  }
  if (!needs_health_check(old)) {
    claim_health_port(service.value(), claims);
  } else if (!needs_health_check(service.value())) {
    claims.released_ports.push_back(static_cast<int32_t>(old.int_at_or(0, "spec", "healthCheckNodePort")));
  }
  return claims;
}

ServiceClaims claims_of_delete(const Value& service) {
  ServiceClaims claims;
  if (service_type(service) != "ExternalName" && !is_headless(service)) {
    for (const Value& ip : service.items_at("spec", "clusterIPs")) claims.released_ips.push_back(ip.as_string());
  }
  claims.released_ports = node_ports(service);
  const auto health = static_cast<int32_t>(service.int_at_or(0, "spec", "healthCheckNodePort"));
  if (needs_health_check(service) && health > 0) claims.released_ports.push_back(health);
  return claims;
}

void fill_claims(Arena& arena, Draft::Node service, const ServiceClaims& claims, std::span<const std::string> ips,
                 std::span<const int32_t> ports) {
  assert(ips.size() == claims.ips.size() && ports.size() == claims.ports.size());
  Draft::Node spec = service.child("spec");
  const std::vector<Value> families(spec.value().items_at("ipFamilies").begin(),
                                    spec.value().items_at("ipFamilies").end());
  std::vector<Value> all(spec.value().items_at("clusterIPs").begin(), spec.value().items_at("clusterIPs").end());
  for (size_t i = 0; i < ips.size(); ++i) {
    for (size_t f = 0; f < families.size(); ++f) {
      if (families[f].as_string() != claims.ips[i].family) continue;
      if (all.size() <= f) all.resize(f + 1, Value::string(""));
      all[f] = Value::string(arena, ips[i]);
    }
  }
  if (!ips.empty()) {
    set_list(arena, spec, "clusterIPs", all);
    spec.set("clusterIP", all[0]);
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    if (claims.ports[i].ports.empty()) {
      spec.set("healthCheckNodePort", Value::integer(ports[i]));
      continue;
    }
    std::vector<Draft::Node> nodes = spec.list("ports");
    for (const uint32_t position : claims.ports[i].ports) nodes[position].set("nodePort", Value::integer(ports[i]));
  }
}

Error ip_refused(const Value& service, const ServiceClaims& claims, size_t claim, std::string_view why) {
  const std::string_view wanted = claims.ips[claim].wanted;
  if (wanted.empty() && why == "range is full") {
    return internal("failed to allocate a serviceIP for Service \"" + std::string(service.text_at("metadata", "name")) +
                    "\": range is full");
  }
  // The current list, with an empty string for each address to be allocated.
  std::string shown = "[";
  const std::span<const Value> ips = service.items_at("spec", "clusterIPs");
  const size_t count = std::max(ips.size(), service.items_at("spec", "ipFamilies").size());
  for (size_t i = 0; i < count; ++i) {
    shown += (i > 0 ? "," : "") + (i < ips.size() ? codec::encode_json(ips[i]) : std::string("\"\""));
  }
  FieldErrors errors;
  errors.invalid(
      Path("spec.clusterIPs"), Shown::verbatim(shown + "]"),
      "failed to allocate IP" + (wanted.empty() ? std::string() : " " + std::string(wanted)) + ": " + std::string(why));
  return refused(service, errors);
}

Error port_refused(const Value& service, const ServiceClaims& claims, size_t claim, std::string_view why) {
  const ServiceClaims::Port& port = claims.ports[claim];
  if (port.ports.empty()) {
    return internal(port.wanted == 0 ? "failed to allocate a HealthCheck NodePort 0: " + std::string(why)
                                     : "failed to allocate requested HealthCheck NodePort " +
                                           std::to_string(port.wanted) + ": " + std::string(why));
  }
  if (port.wanted == 0) return internal("failed to allocate a nodePort: " + std::string(why));
  FieldErrors errors;
  errors.invalid(Path(port.field), port.wanted, why);
  return refused(service, errors);
}

}  // namespace holdfast::kinds
