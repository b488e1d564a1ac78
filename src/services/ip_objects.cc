#include "services/ip_objects.h"

#include "codec/codec.h"
#include "resource/managers.h"

namespace holdfast::services {
namespace {

constexpr std::string_view kGroup = "networking.k8s.io", kPlural = "ipaddresses";
constexpr std::string_view kManager = "kube-apiserver";  // Who makes them in upstream's name.

Value object_of(Arena& arena, std::string_view ip, const Value& service) {
  MapBuilder labels(arena), metadata(arena), parent(arena), spec(arena), object(arena);
  labels.add("ipaddress.kubernetes.io/ip-family",
             Value::string(ip.find(':') == std::string_view::npos ? "IPv4" : "IPv6"));
  labels.add("ipaddress.kubernetes.io/managed-by", Value::string("ipallocator.k8s.io"));
  metadata.add("name", Value::string(arena, ip));
  metadata.add("labels", labels.build());
  parent.add("resource", Value::string("services"));
  parent.add("namespace", Value::string(service.text_at("metadata", "namespace")));
  parent.add("name", Value::string(service.text_at("metadata", "name")));
  spec.add("parentRef", parent.build());
  object.add("kind", Value::string("IPAddress"));
  object.add("apiVersion", Value::string("networking.k8s.io/v1"));
  object.add("metadata", metadata.build());
  object.add("spec", spec.build());
  return object.build();
}

Result<std::string> stored_bytes(call::Call& call, const resource::Served& served, std::string_view ip,
                                 const Value& service) {
  Arena& arena = call.arena;
  const ownership::UpdateResult owned =
      served.managers->at(kinds::Endpoint::Main)
          .update(arena, {.object = object_of(arena, ip, service), .manager = kManager, .now = call.view.now});
  Draft draft(arena, owned.object);
  Draft::Node metadata = draft.root().child("metadata");
  metadata.set("uid", Value::string(arena, resource::new_uid()));
  metadata.set("creationTimestamp", Value::string(arena, format_rfc3339(call.view.now)));
  Result<std::string> body = served.storage->codec().body_of(arena, draft.value());
  if (!body) return body;
  return served.storage->stored_value(*body, resource::stored_entries(arena, owned.managed, false));
}

}  // namespace

Task<void> make_ip_objects(call::Call& call, std::vector<std::string> ips, Value service) {
  if (ips.empty()) co_return;
  const resource::Served* served = call.registry->find(kGroup, "v1", kPlural);
  for (const std::string& ip : ips) {
    Result<std::string> bytes = stored_bytes(call, *served, ip, service);
    if (!bytes) co_return;
    const std::string key = served->storage->key(served->storage->short_key("", ip));
    // The Service is stored and holds the address whether or not this can be written.
    (void)co_await served->storage->write({store::create(key, store::make_blob(std::move(*bytes)))}, call.executor());
  }
}

Task<void> drop_ip_objects(call::Call& call, std::vector<std::string> ips) {
  resource::Storage* storage = ips.empty() ? nullptr : call.registry->storage_of(kGroup, kPlural);
  for (const std::string& ip : ips) {
    const std::string short_key = storage->short_key("", ip);
    Result<cache::Cache::Latest> latest = co_await storage->cache().latest(short_key, call.executor());
    if (!latest || !latest->entry) continue;
    (void)co_await storage->write({store::remove(storage->key(short_key), latest->entry->revision())}, call.executor());
  }
}

}  // namespace holdfast::services
