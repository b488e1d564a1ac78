#include "services/ip_objects.h"

#include <unordered_map>

#include "base/api_error.h"
#include "base/hash.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/strings.h"
#include "codec/codec.h"
#include "kinds/kinds.h"
#include "resource/managers.h"

namespace holdfast::services {
namespace {

constexpr std::string_view kGroup = "networking.k8s.io", kPlural = "ipaddresses";
constexpr std::string_view kManager = "kube-apiserver";  // Field manager; upstream's name.
constexpr std::string_view kFamily = "ipaddress.kubernetes.io/ip-family";
constexpr std::string_view kManagedBy = "ipaddress.kubernetes.io/managed-by", kAllocator = "ipallocator.k8s.io";
// An IP is allocated before its Service is stored, so it may have no Service for as long as a request takes.
constexpr int64_t kGraceSeconds = 60;

Value tree_for(Arena& arena, std::string_view ip, const IpObjects::Service& owner) {
  MapBuilder labels(arena), metadata(arena), parent(arena), spec(arena), object(arena);
  labels.add(kFamily, Value::string(ip.find(':') == std::string_view::npos ? "IPv4" : "IPv6"));
  labels.add(kManagedBy, Value::string(kAllocator));
  metadata.add("name", Value::string(arena, ip));
  metadata.add("labels", labels.build());
  parent.add("resource", Value::string("services"));
  parent.add("namespace", Value::string(arena, owner.ns));
  parent.add("name", Value::string(arena, owner.name));
  spec.add("parentRef", parent.build());
  object.add("kind", Value::string("IPAddress"));
  object.add("apiVersion", Value::string("networking.k8s.io/v1"));
  object.add("metadata", metadata.build());
  object.add("spec", spec.build());
  return object.build();
}

// nullopt if the parent is not a Service.
std::optional<IpObjects::Service> owner_of(const Value& object) {
  const Value* parent = object.get("spec", "parentRef");
  if (parent == nullptr || !parent->text_at("group").empty() || parent->text_at("resource") != "services") {
    return std::nullopt;
  }
  return IpObjects::Service{std::string(parent->text_at("namespace")), std::string(parent->text_at("name"))};
}

}  // namespace

IpObjects::IpObjects(const resource::Registry& registry, const Clock& clock)
    : registry_(registry.snapshot()),
      served_(*registry_->find(kGroup, "v1", kPlural)),
      storage_(*served_.storage),
      clock_(clock) {}

Result<cache::Snapshot> IpObjects::snapshot() const { return storage_.cache().snapshot(); }

bool IpObjects::has(const cache::Snapshot& objects, std::string_view ip) {
  return objects.find(ip) || objects.find_unreadable(ip) != nullptr;
}

Result<store::Blob> IpObjects::object_of(std::string_view ip, const Service& owner) const {
  Arena arena;
  const UnixTime now = clock_.now();
  const ownership::UpdateResult owned =
      served_.managers->at(kinds::Endpoint::Main)
          .update(arena, {.object = tree_for(arena, ip, owner), .manager = kManager, .now = now});
  Draft draft(arena, owned.object);
  Draft::Node metadata = draft.root().child("metadata");
  metadata.set("uid", Value::string(arena, random_uuid()));
  metadata.set("creationTimestamp", Value::string(arena, format_rfc3339(now)));
  Result<std::string> body = storage_.codec().body_of(arena, draft.value());
  if (!body) return body.take_error();
  Result<std::string> bytes = storage_.stored_value(*body, resource::stored_entries(arena, owned.managed, false));
  if (!bytes) return bytes.take_error();
  return store::make_blob(std::move(*bytes));
}

Result<Value> IpObjects::tree_of(Arena& arena, const cache::Entry& entry) const {
  const store::Blob body = entry.body();
  return storage_.codec().tree(arena, arena.copy(*body));
}

Task<Result<std::optional<Revision>>> IpObjects::claim(std::string ip, Service owner, Executor& executor) {
  Result<store::Blob> bytes = object_of(ip, owner);
  if (!bytes) co_return bytes.take_error();
  store::StoreResult<store::WriteResult> written =
      co_await storage_.write({store::create(storage_.key(ip), std::move(*bytes))}, executor);
  if (!written) {
    Error error = store::to_api_error(written.error());
    error.message = "the IPAddress " + ip + " cannot be written: " + error.message;
    co_return error;
  }
  std::optional<Revision> claimed;
  if (const auto* committed = std::get_if<store::Committed>(&*written)) claimed = committed->revision;
  co_return claimed;
}

Task<bool> IpObjects::write(store::Operation operation, Executor& executor) {
  const std::string key = operation.key;
  store::StoreResult<store::WriteResult> written = co_await storage_.write({std::move(operation)}, executor);
  if (written) co_return std::holds_alternative<store::Committed>(*written);
  // The next repair will fix it.
  log::warning("an IPAddress could not be changed", {{"key", key}, {"error", written.error().message}});
  co_return false;
}

Task<void> IpObjects::give_back(std::string ip, Revision claimed, Executor& executor) {
  co_await write(store::remove(storage_.key(ip), claimed), executor);
}

Task<void> IpObjects::release(std::vector<std::string> ips, Service owner, Executor& executor) {
  for (const std::string& ip : ips) {
    Result<cache::Cache::Latest> latest = co_await storage_.cache().latest(ip, executor);
    if (!latest || !latest->entry) continue;
    Arena arena;
    Result<Value> object = tree_of(arena, *latest->entry);
    if (!object || owner_of(*object) != owner) continue;
    co_await write(store::remove(storage_.key(ip), latest->entry->revision()), executor);
  }
}

// IPs in use according to the Services.
struct IpObjects::Held {
  cache::Snapshot services;
  std::unordered_map<std::string, std::vector<Service>, KeyHash> by_ip;

  bool by(const std::string& ip, const Service& service) const {
    const auto found = by_ip.find(ip);
    return found != by_ip.end() &&
           std::find(found->second.begin(), found->second.end(), service) != found->second.end();
  }
};

Task<Result<Unit>> IpObjects::repair(resource::Storage& services, Executor& executor) {
  // The order matters: Services must be at least as new as the IPAddresses.
  Result<cache::Snapshot> objects = co_await storage_.cache().consistent(executor);
  if (!objects) co_return objects.take_error();
  Result<cache::Snapshot> all = co_await services.cache().consistent(executor);
  if (!all) co_return all.take_error();
  Held held{*all, {}};
  for (const cache::EntryRef& entry : all->list({}).entries) {
    Arena arena;
    const store::Blob body = entry->body();
    Result<Value> service = services.codec().tree(arena, *body);
    if (!service) co_return corrupt_object(services.key(entry->key()), service.error().message);
    for (const std::string_view ip : kinds::claims_of_delete(*service).released_ips) {
      const std::optional<IpAddress> address = IpAddress::parse(ip);
      held.by_ip[address ? address->text() : std::string(ip)].push_back(
          {std::string(entry->namespace_name()), std::string(entry->name())});
    }
  }
  co_await repair_services(held, *objects, executor);
  co_await remove_orphans(held, *objects, executor);
  co_return Unit{};
}

Task<void> IpObjects::repair_services(const Held& held, cache::Snapshot objects, Executor& executor) {
  for (const auto& [ip, owners] : held.by_ip) {
    if (owners.size() > 1) {
      log::warning("a cluster IP is assigned to several services; please recreate one of them",
                   {{"ip", ip},
                    {"service", owners[0].ns + "/" + owners[0].name},
                    {"other", owners[1].ns + "/" + owners[1].name}});
    }
    const cache::EntryRef entry = objects.find(ip);
    if (!entry && objects.find_unreadable(ip) != nullptr) continue;
    if (entry) {
      Arena arena;
      Result<Value> object = tree_of(arena, *entry);
      if (!object) continue;
      const std::optional<Service> owner = owner_of(*object);
      if (owner && held.by(ip, *owner) && entry->label(kManagedBy) == kAllocator) continue;
    }
    Result<store::Blob> bytes = object_of(ip, owners.front());
    if (!bytes) continue;
    // If the object was created after the snapshot was taken, along with a newer Service, the write fails and it stays.
    const bool made = co_await write(entry ? store::update(storage_.key(ip), entry->revision(), std::move(*bytes))
                                           : store::create(storage_.key(ip), std::move(*bytes)),
                                     executor);
    if (!made) continue;
    log::warning("a cluster IP was not allocated to its service; repaired",
                 {{"ip", ip}, {"service", owners.front().ns + "/" + owners.front().name}});
  }
}

Task<void> IpObjects::remove_orphans(const Held& held, cache::Snapshot objects, Executor& executor) {
  for (const cache::EntryRef& entry : objects.list({}).entries) {
    const std::string ip(entry->key());
    if (entry->label(kManagedBy) != kAllocator || held.by_ip.contains(ip)) continue;
    Arena arena;
    Result<Value> object = tree_of(arena, *entry);
    if (!object) continue;
    const std::optional<Service> owner = owner_of(*object);
    if (owner && held.services.find_unreadable(owner->ns + "/" + owner->name) != nullptr) continue;
    const std::optional<UnixTime> created = parse_rfc3339(object->text_at("metadata", "creationTimestamp"));
    if (created && clock_.now().seconds - created->seconds <= kGraceSeconds) continue;
    if (co_await write(store::remove(storage_.key(ip), entry->revision()), executor)) {
      log::warning("released a leaked cluster IP", {{"ip", ip}});
    }
  }
}

}  // namespace holdfast::services
