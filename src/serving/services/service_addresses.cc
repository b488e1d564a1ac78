#include "services/service_addresses.h"

#include <charconv>
#include <random>

#include "base/api_error.h"
#include "base/text.h"

namespace holdfast::services {
namespace {

std::optional<Value> find(Arena& arena, resource::Storage& storage, std::string_view ns, std::string_view name) {
  Result<cache::Snapshot> snapshot = storage.cache().snapshot();
  if (!snapshot) return std::nullopt;
  const cache::EntryRef entry = snapshot->find(storage.short_key(ns, name));
  if (!entry) return std::nullopt;
  const store::Blob body = entry->body();
  Result<Value> tree = storage.codec().tree(arena, arena.copy(*body));
  if (!tree) return std::nullopt;
  return *tree;
}

Error unavailable(std::string message) { return {Reason::ServiceUnavailable, std::move(message)}; }

bool is_ready(const Value& endpoint) {
  const Value* ready = endpoint.get("conditions", "ready");
  return ready == nullptr || !ready->is_bool() || ready->as_bool();
}

// Any ready endpoint with this port.
Result<webhook::Address> endpoint_of(resource::Storage& slices, std::string_view ns, std::string_view name,
                                     std::string_view port_name) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  Arena arena;
  std::vector<webhook::Address> found;
  if (Result<cache::Snapshot> snapshot = slices.cache().snapshot()) {
    cache::ListRequest request;
    request.scope = slices.scope(ns);
    request.selector.labels.push_back(
        {"kubernetes.io/service-name", cache::LabelRequirement::Operator::In, {std::string(name)}});
    for (const cache::EntryRef& entry : snapshot->list(request).entries) {
      const store::Blob body = entry->body();
      Result<Value> slice = slices.codec().tree(arena, arena.copy(*body));
      if (!slice) continue;
      for (const Value& port : slice->items_at("ports")) {
        if (port.text_at("name") != port_name || port.int_at_or(0, "port") == 0) continue;
        for (const Value& endpoint : slice->items_at("endpoints")) {
          const std::span<const Value> addresses = endpoint.items_at("addresses");
          if (addresses.empty() || !addresses[0].is_string() || !is_ready(endpoint)) continue;
          found.push_back({std::string(addresses[0].as_string()), static_cast<uint16_t>(port.int_at_or(0, "port"))});
        }
      }
    }
  }
  if (found.empty()) return unavailable("no endpoints available for service " + go_quote(name));
  return found[random() % found.size()];
}

}  // namespace

Result<webhook::Address> ServiceAddresses::resolve(std::string_view ns, std::string_view name, uint16_t port) const {
  if (ns == "default" && name == "kubernetes" && port == 443) {
    webhook::Address address{own_.substr(0, own_.rfind(':')), 443};
    std::from_chars(own_.data() + own_.rfind(':') + 1, own_.data() + own_.size(), address.port);
    return address;
  }
  Arena arena;
  const resource::Registry::SnapshotRef served = registry_.snapshot();
  const std::optional<Value> service = find(arena, *served->storage_of("", "services"), ns, name);
  if (!service) return not_found({"", "service"}, name);
  const std::string_view type = service->text_at("spec", "type");
  if (type == "ExternalName" && !to_endpoints_)
    return webhook::Address{std::string(service->text_at("spec", "externalName")), port};
  if (type != "ClusterIP" && type != "NodePort" && type != "LoadBalancer") {
    return unavailable("unsupported service type " + go_quote(type));
  }
  const std::string_view cluster_ip = service->text_at("spec", "clusterIP");
  if (!to_endpoints_ && cluster_ip == "None") return unavailable("cannot route to service with ClusterIP \"None\"");
  const Value* known = nullptr;
  for (const Value& candidate : service->items_at("spec", "ports")) {
    if (candidate.int_at_or(0, "port") == port) {
      known = &candidate;
      break;
    }
  }
  if (known == nullptr) {
    return unavailable("no service port " + std::to_string(port) + " found for service " + go_quote(name));
  }
  if (!to_endpoints_) return webhook::Address{std::string(cluster_ip), port};
  return endpoint_of(*served->storage_of("discovery.k8s.io", "endpointslices"), ns, name, known->text_at("name"));
}

}  // namespace holdfast::services
